"""Journals move from store to store: none is lost, none is in two places, none is driven in both."""

from __future__ import annotations

import itertools

import pytest

import surefoot as sf
from surefoot.core.entry import RunLeft, RunMoved
from surefoot.core.seal import from_record
from surefoot.engine.process import config, journal
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.threads import Threads
from surefoot.engine.upkeep import adoption, tombstones
from surefoot.engine.upkeep.moving import Gone, Moved, Mover, Stays
from surefoot.engine.upkeep.verification import verify_store
from surefoot.errors import MovedAway, UsageError
from surefoot.store.contract import Extend, Head, RunQuery
from surefoot.store.open import open_store
from tests import moves

_numbers = itertools.count()


@pytest.fixture
def urls():
    number = next(_numbers)
    return [f"memory:{name}{number}" for name in "abc"]


def runtime(url):
    return config.runtime(url, create=True)


def mover(a, b):
    return Mover(runtime(a), runtime(b), by="ann")


def test_everything_moves_and_goes_on_there(urls):
    a, b, _ = urls
    moves.fill(a)

    outcomes = moves.move(a, b)

    assert {one.name.split("\x1f")[-1] for one in outcomes} == {*moves.RUNS, "night", "chat"}
    assert all(isinstance(one, Moved) for one in outcomes)
    moves.refused(a)
    assert verify_store(open_store(a, create=False)).flaws == []
    assert verify_store(open_store(b, create=False)).flaws == []
    moves.finish(b)


def test_target_names_the_source_and_its_last_seal(urls):
    """Whoever keeps an export of the source can prove that this is the same run."""
    a, b, _ = urls
    moves.fill(a)
    before, waiting = open_store(a, create=False).read_all(["order", "order-mail"])

    moves.move(a, b)

    there = open_store(b, create=False).read("order").records
    word = from_record(there[-1])
    assert isinstance(word, RunMoved)
    assert (word.store, word.entries, word.seal) == (
        open_store(a, create=False).id.hex(), before.head.seq, before.head.seal.hex(),
    )  # fmt: skip
    fields = ("seq", "epoch", "at", "kind", "schema", "codec", "key", "body")
    assert [[getattr(one, name) for name in fields] for one in there[:-1]] == [
        [getattr(one, name) for name in fields] for one in before.records
    ]
    (left,) = open_store(a, create=False).read("order").records
    assert from_record(left).seal == before.head.seal.hex()
    before, (left,) = waiting, open_store(a, create=False).read("order-mail").records
    stone = from_record(left)
    assert isinstance(stone, RunLeft)
    assert (stone.status, stone.workflow, stone.entries, stone.seal, stone.by) == (
        "waiting", "mail", before.head.seq, before.head.seal.hex(), "ann",
    )  # fmt: skip


def test_killed_at_every_point_it_is_in_one_place_and_goes_on(urls):
    """Before and after each request to the source and to the target: 11 questions, and the world is what it was."""
    a, b, _ = urls
    many = moves.points(a, b)
    assert many > 20

    for point in range(many):
        moves.killed_at(point, f"{a}-{point}", f"{b}-{point}")


def test_run_that_goes_on_at_the_target_before_the_source_is_emptied_is_not_disturbed(urls):
    """The copy died after the run had arrived. Workers at the target drive it meanwhile."""
    a, b, _ = urls
    moves.fill(a)
    for point in range(1000):
        try:
            moves.move(a, b, moves.Plan(point))
        except moves.Killed:
            if all(moves.where(run, a, b) == [b] for run in moves.RUNS):
                break
    with config.overridden(store=b):
        sf.get_run("order-mail").answer("ask#1", "yes")
        moves.order.run("order", "o")

    outcomes = moves.move(a, b)

    assert not any(isinstance(one, Stays) for one in outcomes)
    assert [moves.histories(run, a) for run in moves.RUNS] == [0] * len(moves.RUNS)
    moves.assert_once()


def test_it_comes_back_and_leaves_again(urls):
    """To another host and home again: each store knows that it is the same run."""
    a, b, c = urls
    moves.fill(a)

    for one, other in ((a, b), (b, c), (c, a), (a, b)):
        assert not any(isinstance(each, Stays) for each in moves.move(one, other))
        moves.refused(one)

    moves.finish(b)
    assert [moves.where("order", url) for url in (a, c)] == [[], []]


def test_moving_again_finds_nothing_to_do(urls):
    a, b, _ = urls
    moves.fill(a)
    moves.move(a, b)

    assert all(isinstance(one, Gone) for one in moves.move(a, b))


def test_parents_children_threads_and_their_tasks_move_together(urls):
    """A parent that arrived without its child would begin the child again."""
    a, _, _ = urls
    moves.fill(a)
    store = open_store(a, create=False)
    found = mover(a, "memory:").groups(["order-mail"])

    assert sorted(found[0]) == ["order", "order-mail"]
    assert len(found) == 1
    assert store.names()


def test_child_that_may_not_move_holds_its_parent(urls, monkeypatch):
    a, b, _ = urls
    moves.fill(a)
    driven = "surefoot.engine.drive.claimant.is_driven"
    monkeypatch.setattr(driven, lambda _, state: state.run == "order-mail")

    outcomes = moves.move(a, b)

    assert sorted(one.name for one in outcomes if isinstance(one, Stays)) == ["order", "order-mail"]
    assert moves.where("order", a, b) == moves.where("order-mail", a, b) == [a]


def test_effect_whose_process_may_still_be_in_it_stays(urls, monkeypatch):
    """The target could not find out that the process lives: it would believe the effect's check too early."""
    a, b, _ = urls
    moves.fill(a)
    store = open_store(a, create=False)
    with config.overridden(store=a):
        state, head = journal.load(store, "doubtful")
    entry = moves_intent(state)
    journal_append(store, state, head, entry)
    monkeypatch.setattr(type(store), "alive", lambda *_: False)
    monkeypatch.setattr(type(store), "proven_dead", lambda *_: False)

    outcomes = {one.name: one for one in moves.move(a, b)}

    assert isinstance(outcomes["doubtful"], Stays)
    assert "not proven dead" in outcomes["doubtful"].why


def moves_intent(state):
    from surefoot.core.entry import EffectIntended, RunAdopted

    past = state.effect("post#1")
    adopted = RunAdopted("f" * 32, "elsewhere", 7, "c")
    return [adopted, EffectIntended(address="post#2", digest=past.digest, args=past.args, key="k", policy="ask")]


def journal_append(store, state, head, entries):
    from surefoot.core.seal import Sealer

    sealer, after, records, epoch = Sealer(store.id, state.run), (head.seq, head.seal), [], state.epoch + 1
    for entry in entries:
        record, _ = sealer.entry(entry, at=1, epoch=epoch, after=after)
        after = (record.seq, record.seal)
        records.append(record)
        state.fold(record)
    assert store.append([Extend(state.run, head, records, journal.index_row(state))]) == [None]


def test_thread_stays_while_another_process_works_in_the_store(urls, monkeypatch):
    """It may be about to begin the run of a task, which the thread would not find in its new store."""
    from surefoot.store.contract import WorkerSeen

    a, b, _ = urls
    moves.fill(a)
    store = open_store(a, create=False)
    monkeypatch.setattr(type(store), "workers", lambda _: [WorkerSeen("f" * 32, "elsewhere", 7, 1)])

    outcomes = {one.name.split("\x1f")[-1]: one for one in moves.move(a, b)}

    assert "process 7 on host elsewhere" in outcomes["chat"].why
    assert isinstance(outcomes["night"], Moved)


def begin_child(a):
    """A worker took the parent up, which began a child, and let it go."""
    from surefoot.core.entry import RunCreated

    store = open_store(a, create=False)
    record, _ = journal.Sealer(store.id, "late").entry(
        RunCreated("mail", journal.Raw(b"[]"), "d",
                   child_of="order"), at=1,
    )  # fmt: skip
    assert store.append([Extend("late", None, [record])]) == [None]


def test_child_that_was_begun_after_the_look_holds_its_parent(urls):
    """At the target the parent would not find it, and begin it again."""
    a, b, _ = urls
    moves.fill(a)
    one = mover(a, b)
    found = one.groups(["order"])
    begin_child(a)

    outcomes = list(one.move(found))

    assert all(isinstance(each, Stays) for each in outcomes)
    assert moves.where("order", b) == []
    assert {each.name for each in mover(a, b).move(mover(a, b).groups(["order"])) if isinstance(each, Moved)} == {
        "order", "order-mail", "late",
    }  # fmt: skip


def test_child_in_a_third_store_holds_its_parent(urls):
    """Somebody moved the child alone, before it was known whose it is."""
    a, b, c = urls
    moves.fill(a)
    alone = mover(a, c)
    assert alone.groups()
    assert [type(one) for one in alone.move([["order-mail"]])] == [Moved]

    outcomes = list(mover(a, b).move([["order"]]))

    assert "which is another store" in outcomes[0].why
    assert moves.where("order", a) == [a]


def test_source_is_not_emptied_if_the_target_lost_something_since(urls):
    """The call was killed after the run had arrived, and the target was damaged before the next one."""
    a, b, _ = urls
    moves.fill(a)
    begin_to_move(a, b, "done", arrive=True)
    store = open_store(b, create=False)
    whole = store._journals["done"]
    store._journals["done"] = [*whole[:1], replaced(whole[1]), *whole[2:]]

    with pytest.raises(sf.StoreNotDurable, match="does not give back"):
        list(mover(a, b).move([["done"]]))

    assert moves.histories("done", a) == 1


def test_damaged_run_stays_and_the_others_move(urls):
    a, b, _ = urls
    moves.fill(a)
    store = open_store(a, create=False)
    whole = store._journals["done"]
    store._journals["done"] = [*whole[:2], *(replaced(one) for one in whole[2:3]), *whole[3:]]

    outcomes = {one.name: one for one in moves.move(a, b)}

    assert outcomes["done"].damaged
    assert isinstance(outcomes["order"], Moved)
    assert moves.histories("done", b) == 0


def replaced(record):
    import msgspec

    return msgspec.structs.replace(record, at=record.at + 1)


def test_name_that_is_taken_at_the_target_stays(urls):
    """Somebody began a run of that name there: it is another run."""
    a, b, _ = urls
    moves.fill(a)
    with config.overridden(store=b):
        moves.plain.run("done", 2)

    outcomes = {one.name: one for one in moves.move(a, b)}

    assert "another one of that name" in outcomes["done"].why
    assert moves.where("done", a) == [a]


def test_name_that_is_taken_at_the_last_moment_is_called_back(urls):
    """It was fenced at the source already. It stands still, loudly, until a person gives the move up."""
    a, b, _ = urls
    moves.fill(a)
    begin_to_move(a, b, "done")
    with config.overridden(store=b):
        moves.plain.run("done", 2)
    (stays,) = [one for one in mover(a, b).move([["done"]]) if isinstance(one, Stays)]
    assert "--back" in stays.why
    assert moves.where("done", a) == []

    assert [type(one) for one in mover(a, b).call_back([["done"]])] == [Moved]

    with config.overridden(store=a):
        assert moves.plain.run("done", 1)
    assert verify_store(open_store(a, create=False)).flaws == []


def test_move_that_was_given_up_cannot_arrive_any_more(urls):
    """Another process is about to write it into the target: it finds the word that took its place."""
    a, b, _ = urls
    moves.fill(a)
    begin_to_move(a, b, "done")
    late = mover(a, b)
    _, (group,) = late._read([["done"]])

    assert [type(one) for one in mover(a, b).call_back([["done"]])] == [Moved]
    sent, again = late._arrive([group])

    assert (sent, again) == ([], [["done"]])
    assert moves.where("done", a, b) == [a]
    assert [type(one) for one in mover(a, b).move([["done"]])] == [Moved]
    assert moves.where("done", a, b) == [b]


def test_move_that_has_arrived_cannot_be_given_up(urls):
    a, b, _ = urls
    moves.fill(a)
    begin_to_move(a, b, "done", arrive=True)

    (stays,) = mover(a, b).call_back([["done"]])

    assert "it has arrived" in stays.why
    assert moves.where("done", a, b) == [b]


def begin_to_move(a, b, run, *, arrive=False):
    """What a call leaves that is killed on its way."""
    one = mover(a, b)
    _, ready = one._read([[run]])
    left, _ = one._leave(ready)
    if arrive:
        one._arrive(left)


def test_move_goes_to_one_store_only(urls):
    """Two people move it at the same time, to different places."""
    a, b, c = urls
    moves.fill(a)
    begin_to_move(a, b, "done")

    (stays,) = mover(a, c).move([["done"]])

    assert "which is another store" in stays.why
    assert moves.where("done", a, b, c) == []


def test_run_on_its_way_is_refused_everywhere_and_says_how_to_go_on(urls):
    a, b, _ = urls
    moves.fill(a)
    begin_to_move(a, b, "order-mail")

    with config.overridden(store=a), pytest.raises(MovedAway, match=f"surefoot copy --from {a} --to {b}"):
        sf.get_run("order-mail").answer("ask#1", "yes")


def test_somebody_writes_meanwhile_and_it_is_read_again(urls):
    """An answer that comes between the look and the fence moves too."""
    a, b, _ = urls
    moves.fill(a)
    one = mover(a, b)
    _, ready = one._read([["order", "order-mail"]])
    with config.overridden(store=a):
        sf.get_run("order-mail").answer("ask#1", "yes")

    left, again = one._leave(ready)

    assert left == []
    assert sorted(again[0]) == ["order", "order-mail"]
    assert moves.where("order", a) == [a]


def test_open_handles_at_the_source_are_fenced(urls):
    """A graph and a loop that have the store open go on saving: not there."""
    a, b, _ = urls
    moves.fill(a)
    night, chat = sf.Checkpoint("night", store=a), Threads(a)
    night.load()
    chat.newest("chat", "")

    moves.move(a, b)

    with pytest.raises(MovedAway):
        night.save({"n": 9})
    with pytest.raises(MovedAway):
        chat.save("chat", "", "3", "2", state=b"{}", meta=b"{}")
    assert sf.Checkpoint("night", store=b).load()["n"] == 2


def test_checkpoint_goes_on_at_the_target_for_many_generations(urls):
    """Old generations are deleted there; the word where they come from stays."""
    a, b, _ = urls
    moves.fill(a)
    moves.move(a, b)
    night = sf.Checkpoint("night", store=b)
    night.load()

    for n in range(10):
        night.save({"n": n})

    assert sf.Checkpoint("night", store=b).load() == {"n": 9}
    moves.move(b, a)
    assert sf.Checkpoint("night", store=a).load() == {"n": 9}


def test_list_of_the_source_says_moved(urls):
    a, b, _ = urls
    moves.fill(a)
    moves.move(a, b)
    store = open_store(a, create=False)

    rows = {one.run: one.row for one in store.runs(RunQuery(status="moved"))}

    assert set(rows) == set(moves.RUNS)
    assert {row.wake for row in rows.values()} == {None}
    assert {row.need for row in rows.values()} == {""}
    assert store.lost_rows() == []


def test_retention_leaves_the_word_where_it_went(urls):
    a, b, _ = urls
    moves.fill(a)
    moves.move(a, b)
    one = runtime(a)

    assert list(tombstones.candidates(one.store, one.clock, older_than_seconds=0)) == []
    tombstones.sweep(one.store)

    moves.refused(a)


def test_same_store_is_refused(urls):
    with pytest.raises(UsageError, match="the same store"):
        mover(urls[0], urls[0])


def test_damage_behind_the_fence_does_not_let_it_go_on_here(urls):
    """A fallback to before the word that it leaves would have the run in both stores."""
    a, b, _ = urls
    moves.fill(a)
    begin_to_move(a, b, "done", arrive=True)
    store = open_store(a, create=False)
    whole = store._journals["done"]
    store._journals["done"] = [*whole[:2], replaced(whole[2]), *whole[3:]]

    with config.overridden(store=a), pytest.raises(sf.JournalCorrupt, match="moves to another store"):
        moves.plain.run("done", 1)
    assert moves.where("done", b) == [b]


def test_journal_of_the_store_itself_stays(urls):
    a, b, _ = urls
    moves.fill(a)
    store = open_store(a, create=False)
    record, _ = adoption.Sealer(store.id, adoption.AUDIT).entry(adoption.StoreAdopted("ann", "why", 9, 8), at=1)
    assert store.append([Extend(adoption.AUDIT, None, [record])]) == [None]

    outcomes = {one.name.split("\x1f")[-1]: one for one in moves.move(a, b)}

    assert adoption.AUDIT not in open_store(b, create=False).names()
    assert "load it and save it first" in outcomes["night"].why  # a newer one may be lost: the target could not tell
    assert "go on with its graph" in outcomes["chat"].why
    assert isinstance(outcomes["done"], Moved)


def test_broken_target_is_found_before_anything_is_deleted(urls):
    """A store that does not give back what it was given."""
    a, b, _ = urls
    moves.fill(a)
    target = moves.Watched(open_store(b, create=True), moves.Plan())
    whole = target.read_all

    class Lossy:
        def __getattr__(self, name):
            return getattr(target, name)

        def read_all(self, names):
            from msgspec.structs import replace

            return [replace(one, records=one.records[:-1]) if one.records else one for one in whole(names)]

    one = Mover(runtime(a), Runtime(Lossy()))
    with pytest.raises(sf.StoreNotDurable, match="does not give back"):
        list(one.move([["done"]]))
    assert moves.histories("done", a) == 1
    assert isinstance(open_store(a, create=False).read("done").head, Head)


def test_move_without_its_fence_is_caught(urls, monkeypatch):
    """A control: if the source is not fenced first, a kill leaves the runs in both stores, and the look at it fails."""
    from msgspec.structs import replace

    a, b, _ = urls

    def unfenced(self, ready):
        return [[replace(one, left=self._word(one)) for one in group] for group in ready], []

    monkeypatch.setattr(Mover, "_leave", unfenced)
    moves.fill(a)
    plan = moves.Plan()
    moves.move(a, b, plan)

    with pytest.raises(AssertionError, match="could be driven in both"):
        for point in reversed(range(plan.seen)):
            moves.killed_at(point, f"{a}{point}", f"{b}{point}")
