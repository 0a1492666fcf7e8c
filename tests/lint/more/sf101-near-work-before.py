# expect: none
async def handle(queue, msg, bus):
    await process_message(msg)
    await queue.ack(msg)
    await bus.publish_event("done", msg.id)
