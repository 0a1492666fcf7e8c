# expect: none
from langgraph.types import interrupt
import logging

logger = logging.getLogger()

def node(state):
    logger.info("asking")
    print("asking")
    return {"x": interrupt("?")}
