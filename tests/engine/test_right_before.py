"""Right before an effect runs: what it touches is as the run expects it, and as a person was shown who said yes.

The foreign writers here are other processes, started from inside a step or from the look itself, so that they strike at
the same moment each time.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from hashlib import sha256
from pathlib import Path

import pytest

import surefoot as sf
from surefoot import aio, effects, witness
from surefoot.engine.effects import files
from surefoot.world.hashes import of_content


def elsewhere(path, text):
    """Another process writes a file."""
    code = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"
    subprocess.run([sys.executable, "-c", code, str(path), text], check=True)


@sf.effect(touches=[lambda path, _: witness.file(path)])
def write(path: str, text: str) -> int:
    return Path(path).write_text(text)


@sf.effect(touches=[lambda path, _: witness.file(path)])
async def write_async(path: str, text: str) -> int:
    return await asyncio.to_thread(Path(path).write_text, text)


@sf.step
def meanwhile(path: str) -> None:
    elsewhere(path, "two hours of work")


def editing(fn, **options):
    """Reads a file that it watches, and writes it after somebody else has."""

    @sf.workflow(name="editing", watch=[witness.file("c.txt")], **options)
    def wf() -> str:
        meanwhile("c.txt")
        fn("c.txt", "mine")
        return "done"

    return wf


@pytest.mark.parametrize("fn", [write, effects.write_file], ids=["own", "ready-made"])
def test_a_foreign_edit_is_not_overwritten(fn, kinds):
    """It was seen right before the write, and thrown away."""
    Path("c.txt").write_text("original")

    with pytest.raises(sf.Drifted, match=r"write(_file)?#1 was not executed") as stop:
        editing(fn).run("r")

    assert "file:c.txt: changed" in str(stop.value)
    assert Path("c.txt").read_text() == "two hours of work"
    assert "EffectIntended" not in kinds("r")


def test_a_foreign_edit_that_is_accepted_is_written_over():
    Path("c.txt").write_text("original")
    with pytest.raises(sf.Drifted):
        editing(write).run("r")
    with pytest.raises(sf.Drifted, match=r"Nothing was executed"):
        editing(write).run("r")

    sf.get_run("r").accept_drift(by="ann")

    assert editing(write).run("r") == "done"
    assert Path("c.txt").read_text() == "mine"


def test_async_effects_look_before_they_write_too(kinds):
    @sf.workflow(watch=[witness.file("c.txt")])
    async def wf() -> None:
        await asyncio.to_thread(elsewhere, "c.txt", "two hours of work")
        await write_async("c.txt", "mine")

    Path("c.txt").write_text("original")
    with pytest.raises(sf.Drifted):
        asyncio.run(wf.run("r"))
    assert Path("c.txt").read_text() == "two hours of work"
    assert "EffectIntended" not in kinds("r")


@pytest.mark.parametrize("policy", ["warn", "accept", lambda drift: "accept" if len(drift) == 1 else "stop"])
def test_on_drift_decides_before_an_effect_as_it_does_before_a_resume(policy):
    Path("c.txt").write_text("original")
    assert editing(write, on_drift=policy).run("r") == "done"
    assert Path("c.txt").read_text() == "mine"


def test_what_the_run_has_never_seen_is_no_drift():
    """Nobody relies on it: what an effect finds where the run looks for the first time is how things are."""

    @sf.workflow(watch=[witness.files("src/*.txt")])
    def wf() -> None:
        elsewhere("other.txt", "there already")
        write("other.txt", "mine")

    Path("src").mkdir()
    wf.run("r")
    assert Path("other.txt").read_text() == "mine"


def test_a_file_that_appears_where_the_run_saw_none_is_not_overwritten():
    """`absent` is a fact that the run relies on."""

    @sf.workflow(watch=[witness.file("new.txt")])
    def wf() -> None:
        meanwhile("new.txt")
        effects.write_file("new.txt", "mine")

    with pytest.raises(sf.Drifted, match="added"):
        wf.run("r")
    assert Path("new.txt").read_text() == "two hours of work"


class Meddled:
    """The witness of a file, whom another process forestalls at the looks that are named."""

    def __init__(self, path, *, at):
        self.name = f"meddled({path})"
        self.looks = 0
        self._path, self._at = path, at

    def fingerprint(self):
        self.looks += 1
        if self.looks in self._at:
            elsewhere(self._path, f"foreign {self.looks}")
        return witness.file(self._path).fingerprint()


def test_a_retry_looks_before_it_writes_again():
    """The first attempt did nothing; somebody else has worked on the file until the second one."""
    attempts = []
    look = Meddled("c.txt", at=[3])  # before the first attempt, after it, and now before the second

    @sf.effect(touches=[look], on_crash="retry", retries=1, backoff=sf.Backoff(first="1ms"))
    def save() -> None:
        attempts.append(Path("c.txt").read_text())
        raise sf.NotDone("busy")

    @sf.workflow
    def wf() -> None:
        save()

    Path("c.txt").write_text("original")
    with pytest.raises(sf.Drifted, match=r"save#1 was not executed"):
        wf.run("r")
    assert attempts == ["original"]


def test_an_undo_does_not_take_back_what_somebody_else_has_worked_on_since():
    @sf.workflow
    def wf() -> None:
        with sf.saga():
            effects.write_file("c.txt", "mine")
            meanwhile("c.txt")
            raise ValueError("undo")

    Path("c.txt").write_text("original")
    with pytest.raises(sf.Drifted, match=r"write_file.undo#1 was not executed"):
        wf.run("r")
    assert Path("c.txt").read_text() == "two hours of work"


def test_branches_that_write_one_folder_side_by_side_are_no_foreigners():
    """What other effects of this run have in flight, or have just done, is never taken for somebody else's work."""
    Path("src").mkdir()

    @sf.effect(touches=[witness.files("src/*.txt")])
    def put(name: int) -> int:
        return Path(f"src/{name}.txt").write_text(str(name))

    @sf.workflow(watch=[witness.files("src/*.txt")])
    def wf() -> int:
        return sum(sf.map(put, range(24), concurrency=6))

    assert wf.run("r") == sum(len(str(n)) for n in range(24))


class Overtaken:
    """Sees the file, and comes back with it only after another branch has written the file."""

    name = "overtaken"

    def __init__(self):
        self.began, self.written = threading.Event(), threading.Event()

    def fingerprint(self):
        seen = witness.file("c.txt").fingerprint()
        if not self.began.is_set():
            self.began.set()
            self.written.wait(8)
        return seen


def test_a_look_that_another_branch_has_overtaken_is_taken_once_more():
    """What it saw was right when it looked, and is what the run itself has changed since."""
    look = Overtaken()

    @sf.effect(touches=[look])
    def append(text: str) -> int:
        return Path("c.txt").write_text(Path("c.txt").read_text() + text)

    def branch(name: str) -> None:
        if name == "slow":
            append("+ slow")
        else:
            look.began.wait(8)
            write("c.txt", "quick")
            look.written.set()

    @sf.workflow(watch=[witness.file("c.txt")])
    def wf() -> None:
        sf.map(branch, ["slow", "quick"], concurrency=2)

    Path("c.txt").write_text("original")
    wf.run("r")
    assert Path("c.txt").read_text() == "quick+ slow"


def test_async_branches_that_write_one_folder_are_no_foreigners():
    Path("src").mkdir()

    @sf.effect(touches=[witness.files("src/*.txt")])
    async def put(name: int) -> int:
        return await asyncio.to_thread(Path(f"src/{name}.txt").write_text, str(name))

    @sf.workflow(watch=[witness.files("src/*.txt")])
    async def wf() -> int:
        return sum(await aio.map(put, range(16), concurrency=6))

    assert asyncio.run(wf.run("r")) == sum(len(str(n)) for n in range(16))


# --- what was shown ------------------------------------------------------------------------------------------


deployed: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_deployed():
    deployed.clear()


@sf.effect(approve=True, touches=[witness.file])
def deploy(path: str) -> str:
    deployed.append(Path(path).read_text())
    return deployed[-1]


@sf.effect(approve=True, touches=[witness.file])
async def deploy_async(path: str) -> str:
    deployed.append(await asyncio.to_thread(Path(path).read_text))
    return deployed[-1]


@sf.workflow
def release(path: str) -> str:
    return deploy(path)


@sf.workflow
async def release_async(path: str) -> str:
    return await deploy_async(path)


def shown(run_id):
    return [entry.data["details"] for entry in sf.get_run(run_id).entries() if entry.kind == "QuestionAsked"]


def boss(run_id, address, *plans):
    """Says yes to each question, after another process has put these plans there, one for each question."""

    def answering():
        for asked, plan in enumerate(plans, 1):
            while len(questions := asked_so_far(run_id)) < asked:
                pause.wait(0.02)
            if plan is not None:
                elsewhere("plan.txt", plan)
            sf.get_run(run_id).answer(address, True, by="boss", shown=questions[-1])

    def asked_so_far(run_id):
        try:
            return [entry.data["shown"] for entry in sf.get_run(run_id).entries() if entry.kind == "QuestionAsked"]
        except sf.NotFound:
            return []

    pause = threading.Event()
    thread = threading.Thread(target=answering)
    thread.start()
    return thread


@pytest.mark.parametrize("kind", ["blocking", "async"])
def test_a_yes_is_void_if_what_was_shown_changes_while_the_process_waits_for_it(kind):
    """The boss said yes to the safe plan. The process stood by all the time, and nobody looked again."""
    Path("plan.txt").write_text("safe plan")
    address = "deploy#1.approval" if kind == "blocking" else "deploy_async#1.approval"
    answering = boss("r", address, "EVIL plan", None)
    if kind == "blocking":
        assert release.using(wait="40s").run("r", "plan.txt") == "EVIL plan"
    else:
        assert asyncio.run(release_async.using(wait="40s").run("r", "plan.txt")) == "EVIL plan"
    answering.join()

    first, second = (details["touches"]["file(plan.txt)"] for details in shown("r"))
    (intent,) = (entry.data for entry in sf.get_run("r").entries() if entry.kind == "EffectIntended")
    assert first != second == intent["before"][0]["parts"]


def test_what_was_shown_is_what_is_on_record_as_before_the_effect():
    """One look is held against the yes and recorded with the intent: between two, the world could change unseen."""
    look = Meddled("plan.txt", at=[3])  # asked; on resume: held against the yes; and then, if there were another look

    @sf.effect(approve=True, touches=[look])
    def ship() -> str:
        return Path("plan.txt").read_text()

    @sf.workflow
    def wf() -> str:
        return ship()

    Path("plan.txt").write_text("safe plan")
    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    sf.get_run("r").answer("ship#1.approval", True, by="boss")

    assert wf.run("r") == "safe plan"

    (details,) = shown("r")
    (intent,) = (entry.data for entry in sf.get_run("r").entries() if entry.kind == "EffectIntended")
    assert details["touches"] == {look.name: intent["before"][0]["parts"]}


def test_a_yes_is_void_for_a_further_attempt_on_something_else():
    """The first attempt did nothing, and said so. What the second one would run on was shown to nobody."""
    look = Meddled("plan.txt", at=[4])  # asked; held; after the failure; and, now, before the second attempt

    @sf.effect(approve=True, touches=[look], on_crash="retry", retries=1, backoff=sf.Backoff(first="1ms"))
    def ship() -> str:
        deployed.append(Path("plan.txt").read_text())
        raise sf.NotDone("busy")

    @sf.workflow(on_drift="accept")
    def wf() -> str:
        return ship()

    Path("plan.txt").write_text("safe plan")
    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    sf.get_run("r").answer("ship#1.approval", True, by="boss")
    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    assert deployed == ["safe plan"]
    assert len(shown("r")) == 2


def test_nobody_is_asked_to_agree_to_what_has_drifted():
    """First somebody says whether the change is all right; then what is shown is how things are."""

    @sf.workflow(watch=[witness.file("plan.txt")])
    def wf() -> str:
        meanwhile("plan.txt")
        return deploy("plan.txt")

    Path("plan.txt").write_text("safe plan")
    with pytest.raises(sf.Drifted):
        wf.run("r")
    assert shown("r") == []


# --- what an effect says it left ---------------------------------------------------------------------------------


def strikes_after(monkeypatch, name, text, *, times=1):
    """Another process writes the file right after this inner function of `write_file` has done its part."""
    inner, struck = getattr(files, name), []

    def then(target):
        inner(target)
        if len(struck) < times:
            struck.append(target)
            elsewhere("a.py", text)

    monkeypatch.setattr(files, name, then)


def outcome(run_id, kind="EffectDone"):
    return next(entry.data for entry in sf.get_run(run_id).entries() if entry.kind == kind)


@sf.workflow
def formatted() -> str:
    result = effects.write_file("a.py", "mine\n")
    sf.wait_event("go")
    return result


def test_what_is_found_right_after_write_file_and_is_not_its_own_is_drift_at_the_next_look(monkeypatch):
    """Format-on-save, a linter, another agent: what they write was taken for the run's own work."""
    Path("a.py").write_text("orig\n")
    strikes_after(monkeypatch, "_sync_folder", "FOREIGN\n")
    with pytest.raises(sf.WaitingForAnswer):
        formatted.run("r")
    sf.send_event("r", "go")

    with pytest.raises(sf.Drifted, match=r"file:a.py: changed"):
        formatted.run("r")

    done = outcome("r")
    (after,), (found,) = done["after"], done["found"]
    assert after["parts"]["file:a.py"] == of_content(b"mine\n")
    assert found["parts"]["file:a.py"] == of_content(b"FOREIGN\n")

    sf.get_run("r").accept_drift(by="ann")
    assert formatted.run("r") == sha256(b"mine\n").hexdigest()


def test_a_foreign_change_right_after_is_not_overwritten_by_the_next_effect(monkeypatch):
    @sf.workflow
    def wf() -> None:
        effects.write_file("a.py", "mine\n")
        effects.delete_file("a.py")

    strikes_after(monkeypatch, "_sync_folder", "FOREIGN\n")
    with pytest.raises(sf.Drifted, match=r"delete_file#1 was not executed"):
        wf.run("r")
    assert Path("a.py").read_text() == "FOREIGN\n"


def test_a_file_made_again_right_after_it_was_deleted_is_foreign(monkeypatch):
    @sf.workflow
    def wf() -> None:
        effects.delete_file("a.py")
        effects.write_file("a.py", "mine\n")

    Path("a.py").write_text("orig\n")
    strikes_after(monkeypatch, "_sync_folder", "FOREIGN\n")
    with pytest.raises(sf.Drifted, match="added"):
        wf.run("r")
    assert outcome("r")["after"][0]["parts"] == {"file:a.py": "absent"}
    assert Path("a.py").read_text() == "FOREIGN\n"


def test_what_a_check_finds_written_and_is_changed_before_the_look_is_foreign_too(monkeypatch):
    """The process died after the write. The check sees its own content; a moment later it is somebody else's."""

    def dies(target):
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(files, "_sync_folder", dies)
        with pytest.raises(KeyboardInterrupt):
            formatted.run("r")
    strikes_after(monkeypatch, "_clear", "FOREIGN\n")
    with pytest.raises(sf.WaitingForAnswer):
        formatted.run("r")
    sf.send_event("r", "go")
    with pytest.raises(sf.Drifted, match=r"file:a.py: changed"):
        formatted.run("r")


def test_permissions_and_links_are_part_of_what_write_file_leaves():
    """What it says and what is found agree to the letter, or each of its writes would be called foreign."""
    Path("run.sh").write_text("a")
    Path("run.sh").chmod(0o755)
    Path("to").mkdir()
    Path("link.txt").symlink_to("to/there.txt")
    Path("to/ro.txt").write_text("a")
    Path("to/ro.txt").chmod(0o444)

    @sf.workflow
    def wf() -> None:
        with sf.saga():
            for path in ("run.sh", "link.txt", "to/ro.txt", "new.txt"):
                effects.write_file(path, "b" * 5000)
                effects.write_file(path, "c")
            effects.delete_file("link.txt")
            effects.delete_file("run.sh")
            raise ValueError("undo")

    with pytest.raises(ValueError, match="undo"):
        wf.run("r")
    entries = [entry.data for entry in sf.get_run("r").entries() if entry.kind == "EffectDone"]
    assert len(entries) == 20
    assert [entry["found"] for entry in entries if entry.get("found")] == []


def test_a_yes_that_is_void_is_told_with_the_name_of_who_gave_it(caplog):
    """The boss believes that the run goes on. It stands still again, and nobody would look why."""

    @sf.workflow
    def wf() -> str:
        return deploy("plan.txt")

    Path("plan.txt").write_text("safe plan")
    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    sf.get_run("r").answer("deploy#1.approval", True, by="boss")
    assert "is void" not in caplog.text
    elsewhere("plan.txt", "EVIL plan")

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    told = "run r, deploy#1.approval: the answer given by boss is void: something else is shown now"
    (warned,) = (record.getMessage() for record in caplog.records if "is void" in record.getMessage())
    assert warned.startswith(told)  # Once, and not in the rehearsal as well.


# --- what touches= is asked with ---------------------------------------------------------------------------------


def of_the_first(path):
    return witness.file(path)


def with_the_rest(path, *_):
    return witness.file(path)


def by_name(mode, path):
    return witness.file(path if mode == "w" else "nowhere")


def with_named_rest(path, **others):
    return witness.file(path if others["sync"] else "nowhere")


def of_a_keyword(path, sync):
    return witness.file(path if sync else "nowhere")


def under_other_names(first, _second, _third, *, sync):
    return witness.file(first if sync else "nowhere")


@pytest.mark.parametrize(
    "touched", [of_the_first, with_the_rest, by_name, with_named_rest, of_a_keyword, under_other_names]
)
def test_what_is_touched_need_not_depend_on_every_parameter(touched):
    """Defaults in force are passed too: a function of the first parameters would not take them."""

    @sf.effect(touches=[touched])
    def put(path: str, text: str, mode: str = "w", *, sync: bool = True) -> None:
        Path(path).write_text(text)

    @sf.workflow
    def wf() -> None:
        put("a.txt", "new")

    Path("a.txt").write_text("old")
    wf.run("r")

    (intent,) = (entry.data for entry in sf.get_run("r").entries() if entry.kind == "EffectIntended")
    assert [sight["witness"] for sight in intent["before"]] == ["file(a.txt)"]


def named_at_another_place(text, _):
    return witness.file(text)


def too_many(path, _text, _more):
    return witness.file(path)


def a_keyword_that_is_not_there(path, *, size):
    return witness.file(path, size)


@pytest.mark.parametrize("touched", [named_at_another_place, too_many, a_keyword_that_is_not_there])
def test_a_function_that_would_be_asked_with_something_else_is_refused_when_decorated(touched):
    """It would watch another file than it says, or fail at night."""
    with pytest.raises(sf.UsageError, match=r"a function in touches= takes parameters of the effect, \(path, text\)"):

        @sf.effect(touches=[touched])
        def put(path, text):
            """Never called."""
