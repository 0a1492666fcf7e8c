"""The engine on Temporal. What users import from here: the choice of a cell."""

from surefoot.temporal.cells import Cell, cell_of

__all__ = ["Cell", "cell_of"]
