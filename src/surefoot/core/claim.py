"""The outcomes of a claim on a run. They are values: a run that is taken, or there already, is an ordinary outcome."""

from __future__ import annotations

from msgspec import Struct


class Claimed(Struct, frozen=True):
    """This process drives the run from here on."""


class Exists(Struct, frozen=True):
    """The run was to be created, and is there already."""

    why: str


class Lost(Struct, frozen=True):
    """Another process has claimed the run."""

    why: str


class Driven(Struct, frozen=True):
    """A living process drives the run: this one, in another thread or task, or another process."""


Refusal = Exists | Lost
"""Why the journal of a run refuses an entry of ours."""
