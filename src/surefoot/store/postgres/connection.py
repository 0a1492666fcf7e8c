"""One connection to a PostgreSQL server, with a limit to every wait.

A statement is sent whole, in autocommit: it is one transaction, and no interruption leaves a lock behind. If
the connection breaks or the server is silent for too long, the connection is given up with `Lost`: the statement may have
been carried out. `Rejected` is the server's answer that it was not.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, Final

from surefoot.core.urls import Url
from surefoot.errors import UsageError
from surefoot.store.failure import Lost, Rejected
from surefoot.store.listener import readable
from surefoot.store.postgres.wire import Param

_PORT: Final = "5432"
_DEFAULTS: Final = {
    "application_name": "surefoot",
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""Settings that a URL may override."""

Params = Sequence[Param]
Decoders = Sequence[Callable[[bytes | None], Any]]
"""For each column, the function from its bytes to a value."""
Rows = list[tuple[Any, ...]]


def driver() -> Any:
    try:
        return import_module("psycopg")  # no import statement: its types are not at hand everywhere
    except ImportError:
        raise UsageError("a store in PostgreSQL needs psycopg: pip install 'surefoot[postgres]'") from None


class Connection:
    """Used by one thread at a time."""

    def __init__(self, url: Url, *, seconds: int, silence: float) -> None:
        """Connect. `Lost`, if that fails, or takes longer than `seconds`. `silence`: how long an answer may take."""
        psycopg = driver()
        self._url = url
        self._silence = silence
        try:
            given = psycopg.conninfo.conninfo_to_dict(url.given)
        except psycopg.Error as error:
            raise UsageError(f"{url.shown}: {self._said(error)}") from None
        try:
            # The URL cannot override the encoding: texts are sent and read as UTF-8.
            given = {**_DEFAULTS, "connect_timeout": seconds, **given, "client_encoding": "utf8"}
            self._owner = psycopg.Connection.connect(**given)
        except psycopg.Error as error:
            raise Lost(self._said(error)) from None
        self._pg = self._owner.pgconn
        self._failure = psycopg.Error
        self._fatal = psycopg.pq.ExecStatus.FATAL_ERROR
        self._diagnosis = psycopg.pq.DiagnosticField
        self._poll = select.poll()
        self._poll.register(self._pg.socket, select.POLLIN)

    def ask(self, statement: bytes, params: Params = (), decoders: Decoders = (), *, silence: float = 0) -> Rows:
        """The rows of one statement. `Lost`, after `silence` seconds without a byte from the server."""
        values, kinds = [value for _, value in params], [kind for kind, _ in params]
        send = partial(self._pg.send_query_params, statement, values, kinds, [1] * len(params), 1)
        results = self._exchange(send, silence or self._silence)
        if not results:
            self.close()
            raise Lost("the connection was closed")
        result = results[-1]
        get = result.get_value
        columns = list(enumerate(decoders))
        return [tuple([decode(get(row, at)) for at, decode in columns]) for row in range(result.ntuples)]

    def run_script(self, script: str, *, silence: float) -> None:
        """Several statements, as one transaction unless they begin and end their own."""
        self._exchange(partial(self._pg.send_query, script.encode()), silence)

    def wait_for_notice(self, seconds: float, *also: int) -> bool:
        """Whether a notification came; or one of the other descriptors became readable, or the time is up."""
        with suppress(self._failure):
            self._pg.consume_input()
            if self._noticed():
                return True
            if not readable(seconds, self._pg.socket, *also):
                return False
            self._pg.consume_input()
            return self._noticed()
        self.close()
        raise Lost("the connection was closed")

    def _noticed(self) -> bool:
        found = False
        while self._pg.notifies() is not None:
            found = True
        return found

    def _exchange(self, send: Callable[[], object], silence: float) -> list[Any]:
        """The server's answers. `Rejected`, if one of them is an error."""
        try:
            send()
            results = self._answers(silence)
        except self._failure as error:
            self.close()
            raise Lost(self._said(error)) from None
        except BaseException:
            self.close()  # in the middle of an exchange: the next statement must not read this one's answer
            raise
        for result in results:
            if result.status == self._fatal:
                raise self._rejected(result)
        return results

    def _answers(self, silence: float) -> list[Any]:
        pg = self._pg
        while pg.flush():
            self._wait(select.POLLIN | select.POLLOUT, silence)
            pg.consume_input()
        results: list[Any] = []
        while True:
            if pg.is_busy():
                self._wait(select.POLLIN, silence)
                pg.consume_input()
            elif (result := pg.get_result()) is not None:
                results.append(result)
            else:
                return results

    def _wait(self, events: int, silence: float) -> None:
        self._poll.modify(self._pg.socket, events)
        if not self._poll.poll(silence * 1000):
            self.close()
            raise Lost(f"no answer for {silence:g} s")

    def _rejected(self, result: Any) -> Exception:
        fields = (self._diagnosis.SQLSTATE, self._diagnosis.MESSAGE_PRIMARY, self._diagnosis.CONSTRAINT_NAME)
        code, message, constraint = ((result.error_field(field) or b"").decode("utf-8", "replace") for field in fields)
        if not code or code[:2] == "08" or code in ("57P01", "57P02", "57P03", "57P05", "25P03"):
            # The session or the connection was ended: the statement may have been executed by then.
            self.close()
            return Lost(self._url.hide(message) or "the connection was closed")
        return Rejected(code, self._url.hide(message), constraint)

    def _said(self, error: BaseException) -> str:
        return self._url.hide(" ".join(str(error).split())) or type(error).__name__

    @property
    def place(self) -> str:
        """The database, by the settings in force: those of the URL and of the environment."""
        return place_of({option.keyword.decode(): (option.val or b"").decode() for option in self._pg.info})

    @property
    def closed(self) -> bool:
        return bool(self._owner.closed)

    def close(self) -> None:
        with suppress(self._failure):
            self._owner.close()


def place_of(options: dict[str, str]) -> str:
    """The database of these connection settings, the same for every spelling of them."""
    hosts = (options.get("host") or options.get("hostaddr") or "").lower().split(",")
    ports = (options.get("port") or _PORT).split(",")
    ports = ports if len(ports) == len(hosts) else ports[:1] * len(hosts)
    servers = {f"{host}:{port or _PORT}" for host, port in zip(hosts, ports, strict=True)}
    return f"{','.join(sorted(servers))}/{options.get('dbname') or options.get('user') or ''}"
