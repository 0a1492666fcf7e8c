# expect: SF305
from dataclasses import dataclass
import surefoot as sf

@dataclass
class Order:
    paid: bool

@sf.step
def f(order: Order) -> bool:
    order.paid = True
    return True
