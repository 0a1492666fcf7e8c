"""The engine without a server: workers search the store, which announces ready runs by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surefoot.store.contract import IndexRow
from surefoot.store.findings import Finding

if TYPE_CHECKING:
    from surefoot.engine.worker.driver import Driver
    from surefoot.engine.worker.protocol import Engine, Server, Share


class Embedded:
    """Drives nothing unless a worker is started, so any process may end or undo a run that no process drives."""

    drives = False

    def __init__(self, url: str) -> None:
        self.url = url

    def ring(self, row: IndexRow, store: str) -> None:
        """The store has notified its listeners already (`Work.listen`)."""

    def reopen(self, row: IndexRow, store: str) -> None:
        """Nothing is ever closed here."""

    def examine(self) -> list[Finding]:
        return []

    def serve(self, driver: Driver, share: Share) -> Server:
        from surefoot.engine.worker.search import Search

        return Search(driver, share)


def open_engine(url: str) -> Engine:
    return Embedded(url)
