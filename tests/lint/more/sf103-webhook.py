# expect: SF103
processed_events = set()

def hook(event):
    if event.id in processed_events:
        return "ok"
    charge_card(event.card, event.amount)
    processed_events.add(event.id)
    return "ok"
