# expect: SF101
def fulfil(session, order, warehouse):
    order.shipped = True
    session.commit()
    warehouse.ship_order(order.id)
