# expect: none
import surefoot as sf

items = []

@sf.workflow
def w(items: list) -> list:
    items.append(1)
    return items
