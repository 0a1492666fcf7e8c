"""User code is called with copies of what is recorded: nobody can change behind the journal's back what a call was about."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3

import pytest

import surefoot as sf
from surefoot import aio


def test_change_made_by_a_step_is_not_seen_by_its_caller_the_first_time_either(ledger):
    """On replay the step is not executed, so its caller would see the invoice unchanged: silently another amount."""

    @sf.step
    def add_vat(invoice: dict[str, int]) -> int:
        invoice["total"] = 119
        return invoice["total"]

    @sf.workflow
    def bill() -> int:
        invoice = {"net": 100, "total": 100}
        ledger.write(f"{add_vat(invoice)} {invoice['total']}")
        return invoice["total"]

    assert bill.run("r") == 100
    assert ledger.lines == ["119 100"]


def test_change_made_by_an_async_step_is_not_seen_by_its_caller():
    @sf.step
    async def add(names: list[str]) -> int:
        names.append("bob")
        return len(names)

    @sf.workflow
    async def wf() -> list[int]:
        names = ["ada"]
        return [await add(names), len(names)]

    assert asyncio.run(wf.run("r")) == [2, 1]


def test_undo_gets_what_the_effect_got_and_gave(ledger):
    """The workflow uses up the list that the effect gave it; all of it has to be undone."""

    @sf.effect
    def create(names: list[str]) -> list[str]:
        return [f"i-{names.pop()}" for _ in range(len(names))]

    @create.undo
    def _(names: list[str], result: list[str]) -> None:
        ledger.write(f"delete {names} {result}")

    @sf.workflow
    def deploy() -> None:
        names = ["a", "b"]
        with sf.saga():
            servers = create(names)
            names.clear()
            while servers:
                servers.pop()
            raise ValueError("quota")

    with pytest.raises(ValueError, match="quota"):
        deploy.run("r")
    assert ledger.lines == ["delete ['a', 'b'] ['i-b', 'i-a']"]


def test_what_was_approved_is_what_is_executed(ledger):
    """Another branch fills the cart while the boss thinks about it."""

    @sf.effect(approve=True)
    def order(cart: dict[str, int]) -> int:
        ledger.write(f"order {cart}")
        return cart["tea"]

    @sf.step
    def quick() -> int:
        return 100

    @sf.workflow
    def shop() -> list[int]:
        cart = {"tea": 1}

        def more() -> int:
            cart["tea"] = quick()
            run = sf.get_run("r")
            while not run.state().questions():
                quick()
            run.answer("gather#1.0/order#1.approval", True, by="boss")
            return cart["tea"]

        return list(sf.gather(lambda: order(cart), more))

    assert shop.using(wait="30s").run("r") == [1, 100]
    assert ledger.lines == ["order {'tea': 1}"]


def test_check_gets_what_the_effect_got(ledger):
    """One that looks for what the effect has taken out of its argument would say "not happened" after it had."""

    @sf.effect
    def refund(request: dict[str, str]) -> str:
        ledger.write(request.pop("order"))
        raise TimeoutError

    @refund.check
    def _(request: dict[str, str]) -> object:
        return sf.happened("refunded") if request["order"] in ledger.lines else sf.not_happened()

    @sf.workflow
    def wf() -> str:
        return refund({"order": "o-7"})

    assert wf.run("r") == "refunded"
    assert ledger.lines == ["o-7"]


def test_check_of_an_effect_with_a_secret_gets_what_the_effect_got(ledger):
    """A secret is recorded as stars, so its copy is not made of the record."""

    @sf.effect
    def send(request: dict[str, object]) -> str:
        ledger.write(f"{request.pop('to')} {request.pop('key').reveal()}")
        raise TimeoutError

    @send.check
    def _(request: dict[str, object]) -> object:
        line = f"{request['to']} {request['key'].reveal()}"
        return sf.happened("sent") if line in ledger.lines else sf.not_happened()

    @sf.workflow
    def wf() -> str:
        return send({"to": "ada", "key": sf.Secret("k-1")})

    assert wf.run("r") == "sent"
    assert ledger.lines == ["ada k-1"]


def test_undo_of_a_transaction_gets_what_it_got():
    """The function uses up its list; its rows are found by it."""
    database = "sqlite:///rows.db"

    @sf.transaction(database)
    def insert(db, rows: list[str]) -> int:
        db.execute("CREATE TABLE IF NOT EXISTS t (x)")
        while rows:
            db.execute("INSERT INTO t VALUES (?)", (rows.pop(),))
        return 1

    @insert.undo
    def _(db, rows: list[str], result: int) -> None:
        for row in rows:
            db.execute("DELETE FROM t WHERE x = ?", (row,))

    @sf.workflow
    def wf() -> None:
        with sf.saga():
            insert(["a", "b"])
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        wf.run("r")
    with contextlib.closing(sqlite3.connect("rows.db")) as connection:
        assert connection.execute("SELECT * FROM t").fetchall() == []


def test_second_attempt_gets_what_the_first_one_got(ledger):
    """The intent names the arguments once, for all attempts."""

    @sf.step(retries=1, backoff=sf.Backoff(first="1ms"))
    def send(names: list[str]) -> int:
        ledger.write(" ".join(names))
        names.pop()
        if len(ledger.lines) < 2:
            raise OSError("busy")
        return len(names)

    @sf.workflow
    def wf() -> int:
        return send(["ada", "bob"])

    assert wf.run("r") == 1
    assert ledger.lines == ["ada bob", "ada bob"]


def test_every_way_to_pass_arguments_is_kept(ledger):
    """By position or by name, the rest of either kind, and what is ignored, which is nobody's copy."""
    client = object()
    seen = []

    @sf.step(ignore=("client",))
    def call(a: list[int], /, client: object, b: list[int], *rest: list[int], c: list[int], **more: list[int]) -> int:
        seen.append((a, client, b, rest, c, more))
        return 1

    given = ([1], client, [2], ([3], [4]), [5], {"a": [6], "d": [7]})

    @sf.workflow
    def wf() -> None:
        a, client, b, rest, c, more = given
        call(a, client, b, *rest, c=c, **more)

    wf.run("r")

    assert seen == [given]
    assert seen[0][1] is client
    assert all(mine is not theirs for mine, theirs in zip(seen[0][::2], given[::2], strict=True))


def test_argument_that_cannot_be_read_back_is_refused_before_there_is_an_intent(ledger):
    """Else a person would be asked about an effect that never began."""

    class Sealed:
        pass

    def refuse(_: object) -> Sealed:
        raise OSError("no key")

    sf.register(Sealed, encode=lambda _: "sealed", decode=refuse)

    @sf.effect
    def send(what: Sealed) -> None:
        ledger.write("send")

    @sf.workflow
    def wf() -> None:
        send(Sealed())

    with pytest.raises(sf.SchemaMismatch, match=r"send#1.*no key"):
        wf.run("r")
    assert ledger.lines == []
    assert "EffectIntended" not in [entry.kind for entry in sf.get_run("r").entries()]


def test_random_id_is_on_disk_before_another_run_is_named_by_it():
    """Else the resumed run draws another one, and starts the other run a second time under another name."""
    seen = []

    @sf.workflow
    def inner() -> None:
        seen.append([entry.kind for entry in sf.get_run("outer").entries()])

    @sf.workflow
    def outer() -> None:
        inner.run(f"job-{sf.uuid4()}")

    outer.run("outer")

    assert "ValueNoted" in seen[0]


def test_random_id_is_on_disk_before_an_async_run_is_named_by_it():
    seen = []

    @sf.workflow
    async def inner() -> None:
        run = await aio.get_run("outer")
        seen.append([entry.kind for entry in await run.entries()])

    @sf.workflow
    async def outer() -> None:
        await inner.run(f"job-{sf.uuid4()}")

    asyncio.run(outer.run("outer"))

    assert "ValueNoted" in seen[0]


class Died(BaseException):
    """Unwinds like Ctrl-C: the run is left where it is."""


def posting(ledger, request, *, ending, **options):
    """A workflow that posts `request` in a saga. `ending`: where it dies, or fails."""

    @sf.effect(name="post", on_crash="retry", **options)
    def post(order: str, request: dict[str, object]) -> str:
        ledger.write(f"post {order} {request['amount']} {request['auth'].reveal()}")
        if ending == "dies":
            raise Died
        return "id"

    @post.undo
    def _(order: str, request: dict[str, object], result: str) -> None:
        ledger.write(f"refund {order} {request['amount']} {request['auth'].reveal()}")

    @sf.step(name="end")
    def end() -> None:
        raise Died if ending == "dies later" else ValueError(ending)

    @sf.workflow(name="posting")
    def wf() -> None:
        with sf.saga():
            post("o-1", request)
            end()

    return wf


@pytest.mark.parametrize("options", [{"noted": "request"}, {"on_change": "keep"}])
def test_an_undo_takes_back_the_recorded_amount_beside_a_secret(ledger, options):
    """What is undone is what was done. Only the secret is not on record: that one is today's."""
    with pytest.raises(Died):
        posting(ledger, {"amount": 5, "auth": sf.Secret("old")}, ending="dies later", **options).run("r")
    with pytest.raises(ValueError, match="fails"):
        posting(ledger, {"amount": 9999, "auth": sf.Secret("new")}, ending="fails", **options).run("r")

    assert ledger.lines == ["post o-1 5 old", "refund o-1 5 new"]


def test_a_retry_sends_the_recorded_amount_beside_a_secret(ledger):
    """Under a used key another amount would be another request, and the record would not say so."""
    with pytest.raises(Died):
        posting(ledger, {"amount": 5, "auth": sf.Secret("old")}, ending="dies", noted="request").run("r")
    with pytest.raises(ValueError, match="fails"):
        posting(ledger, {"amount": 9999, "auth": sf.Secret("new")}, ending="fails", noted="request").run("r")

    assert ledger.lines == ["post o-1 5 old", "post o-1 5 new", "refund o-1 5 new"]


@pytest.mark.parametrize("where", ["dies", "dies later"])
def test_a_secret_that_is_no_longer_where_it_was_stops_the_run(ledger, where):
    """Neither the retry nor the undo can be made as recorded, and nobody guesses which secret is meant."""
    old = {"amount": 5, "auth": sf.Secret("old")}
    with pytest.raises(Died):
        posting(ledger, old, ending=where, noted="request").run("r")
    before = ledger.lines

    moved = {"amount": 5, "login": {"auth": sf.Secret("new")}}
    with pytest.raises(sf.CodeChanged, match="a secret, which is not recorded, was in request at a place where"):
        posting(ledger, moved, ending="fails", noted="request").run("r")
    assert ledger.lines == before

    with pytest.raises(ValueError, match="fails"):
        posting(ledger, old, ending="fails", noted="request").run("r")
    assert ledger.lines == [*before, *(before if where == "dies" else []), "refund o-1 5 old"]


def test_a_recorded_default_stays_as_recorded_around_its_secret(ledger):
    """A default is part of what is executed, and the code may have another one by the time of a retry."""

    def paying(default, *, dies):
        @sf.effect(name="pay", on_crash="retry")
        def pay(who: str, how: dict[str, object] = default) -> None:
            ledger.write(f"{who} {how['amount']} {how['auth'].reveal()}")
            if dies:
                raise Died

        @sf.workflow(name="paying")
        def wf() -> None:
            pay("ann")

        return wf

    with pytest.raises(Died):
        paying({"amount": 5, "auth": sf.Secret("old")}, dies=True).run("r")
    with pytest.raises(sf.CodeChanged, match="was in how at a place where"):
        paying({"amount": 5}, dies=False).run("r")
    paying({"amount": 9999, "auth": sf.Secret("new")}, dies=False).run("r")

    assert ledger.lines == ["ann 5 old", "ann 5 new"]


def test_a_keyword_may_have_the_name_of_a_positional_only_parameter(ledger):
    """Python allows it, `**` takes it: and what is left out is the parameter, so that its default is recorded."""

    def paying(default, *, dies):
        @sf.effect(name="pay", on_crash="retry")
        def pay(amount: int = default, /, **tags: str) -> None:
            ledger.write(f"{amount} {tags}")
            if dies:
                raise Died

        @sf.workflow(name="paying")
        def wf() -> None:
            pay(amount="note", who="ann")

        return wf

    with pytest.raises(Died):
        paying(5, dies=True).run("r")
    paying(9999, dies=False).run("r")

    assert ledger.lines == ["5 {'amount': 'note', 'who': 'ann'}"] * 2
