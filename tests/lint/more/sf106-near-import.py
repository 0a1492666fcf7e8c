# expect: none
try:
    import orjson as json
except ImportError:
    json = None
