"""The HTTP API: `table.py` has its routes, `shapes.py` what they answer."""
