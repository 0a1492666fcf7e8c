# expect: SF101
def on_message(channel, method, body):
    channel.basic_ack(method.delivery_tag)
    charge_card(body.card, body.amount)
