"""The journal as a story: one line for each entry, in the words of the glossary."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct

from surefoot.view import answers, text

if TYPE_CHECKING:
    from surefoot.engine.operate.handle import JournalEntry

DETAIL_WIDTH = 100

Data = Mapping[str, Any]


class Line(Struct, frozen=True):
    """One entry. Nothing here can act on a terminal."""

    seq: int
    at: str
    what: str
    address: str
    detail: str
    loud: bool
    """Whether it is important for a person."""


class _Words(NamedTuple):
    what: str
    detail: Callable[[Data], str] = lambda _: ""
    loud: bool = False


def line(entry: JournalEntry) -> Line:
    words = _WORDS.get(entry.kind) or _Words(entry.kind, _everything)
    return Line(
        seq=entry.seq,
        at=entry.at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3],
        what=text.visible(words.what),
        address=text.visible(str(entry.data.get("address", ""))),
        detail=text.shorten(words.detail(entry.data), DETAIL_WIDTH),
        loud=words.loud,
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _everything(data: Data) -> str:
    rest = {key: value for key, value in data.items() if key != "address"}
    return _json(rest) if rest else ""


def _created(data: Data) -> str:
    forked = f", forked from {data['parent']} before {data.get('at')}" if data.get("parent") else ""
    parent = f", child of {data['child_of']}" if data.get("child_of") else ""
    begins = f", starts at {text.clock_time(int(data['due']['at']))}" if data.get("due") else ""
    return f"workflow {data.get('workflow')} with {_json(data.get('args'))}{_defaults(data)}{forked}{parent}{begins}"


def _adopted(data: Data) -> str:
    return f"worker {str(data.get('worker'))[:8]} on host {data.get('host')} (pid {data.get('pid')})"


def _stopped(data: Data) -> str:
    return "; ".join(f"{stop.get('reason')}: {stop.get('message')}" for stop in data.get("stops", ()))


def _value(data: Data) -> str:
    return answers.told(data.get("value")) or _json(data.get("value"))


def _args(data: Data) -> str:
    return _json(data.get("args")) + _defaults(data) + _attempt(data)


def _defaults(data: Data) -> str:
    return f", by default {_json(data['defaults'])}" if data.get("defaults") else ""


def _done(data: Data) -> str:
    parts = ", ".join(part for sight in data.get("found", ()) for part in sight.get("parts", ()))
    return _value(data) + (f"; somebody else has changed it right after: {parts}" if parts else "")


def _attempt(data: Data) -> str:
    return f" (attempt {data['attempt']})" if data.get("attempt", 1) != 1 else ""


def _error(data: Data) -> str:
    recorded: Data = data.get("error") or {}
    error: Data = recorded.get("$error", recorded)
    again = ", parked" if data.get("parked") else ", will be tried again" if data.get("due") else ""
    return f"{error.get('type')}: {error.get('message')}{again}{_attempt(data)}"


def _checkpoint(data: Data) -> str:
    return f"{data.get('id')}" + (f" of {data['ns']}" if data.get("ns") else "")


def _by(data: Data) -> str:
    who = f"by {data.get('by')}" + (f" ({data['via']})" if data.get("via") else "")
    return who + (f": {data['note']}" if data.get("note") else "")


def _settled(data: Data) -> str:
    not_happened = "did not happen, and fails" if data.get("failed") else "did not happen"
    outcome = f"happened, value {_json(data.get('value'))}" if data.get("happened") else not_happened
    return f"{outcome}; said {_by(data)}"


def _due(data: Data) -> str:
    due = data.get("due")
    return "" if not due else f"until {text.clock_time(int(due['at']))}"


def _suspended(data: Data) -> str:
    if data.get("why"):
        return f"parked {_due(data)}: {data['why']}"
    children = ", ".join(map(str, data.get("children", ())))
    return f"until one of these has ended: {children}" if children else _due(data)


def _wait(data: Data) -> str:
    return f"for {data.get('name')} {_due(data)}".rstrip()


def _progress(data: Data) -> str:
    total = "" if data.get("total") is None else f" of {data['total']:g}"
    return f"{data.get('done'):g}{total} {data.get('note', '')}".rstrip()


def _published(data: Data) -> str:
    return f"{data.get('name')} = {_value(data)}"


def _fell_back(data: Data) -> str:
    lost = data.get("lost", 0)
    count = "an unknown number of" if lost < 0 else lost
    return f"after entry {data.get('after')} ({data.get('why')}); {count} entries lost, set aside and kept"


def _rewound(data: Data) -> str:
    return f"to before {data.get('address')}; {_by(data)}"


def _sights(data: Data) -> str:
    """The witnesses, and the size of each observation."""
    told = [f"{sight.get('witness')} ({len(sight.get('parts', ()))} parts)" for sight in data.get("sights", ())]
    return ", ".join(told) + (f": {data['why']}" if data.get("why") else "")


def _accepted(data: Data) -> str:
    unwatched = [f"{witness} no longer watched ({why})" for witness, why in data.get("unwatched", {}).items()]
    return f"{', '.join([*unwatched, *filter(None, [_sights(data)])])}; {_by(data)}"


def _asked(data: Data) -> str:
    who = f"for {', '.join(data['by'])}: " if data.get("by") else ""
    return f"{who}{data.get('question')} {_due(data)}".rstrip()


def _addresses(data: Data) -> str:
    return ", ".join(map(str, data.get("addresses", ())))


def _reopened(data: Data) -> str:
    return f"{_addresses(data) or 'the workflow itself'}; {_by(data)}"


def _matched(data: Data) -> str:
    other = f" {data['other']}" if data.get("other") else ""
    return f"{data.get('how', '')}{other} {_by(data)}".strip()


def _landed_late(data: Data) -> str:
    return f"{data.get('outcome', '')} in worker {data.get('worker', '')[:8]} on host {data.get('host', '')}"


_WORDS: Final = {
    "RunCreated": _Words("run created", _created),
    "RunAdopted": _Words("claimed", _adopted),
    "RunReleased": _Words("released", lambda data: str(data.get("why", ""))),
    "RunStopped": _Words("STOPPED", _stopped, loud=True),
    "RunSuspended": _Words("let go", _suspended),
    "QuarantineLifted": _Words("quarantine lifted", _by),
    "RunDone": _Words("run done", _value),
    "RunFailed": _Words("run FAILED", _error, loud=True),
    "CancelRequested": _Words("cancel asked", _by),
    "RunCancelled": _Words("run cancelled"),
    "RunContinued": _Words("continued as new", _args),
    "CallsReopened": _Words("to be tried again", _reopened, loud=True),
    "Acknowledged": _Words("seen", lambda data: f"{', '.join(data.get('about', ()))} {_by(data)}".strip()),
    "CallKept": _Words("kept", lambda data: str(data.get("why", ""))),
    "CodeMatched": _Words("matched", _matched),
    "CallCancelled": _Words("cancelled from inside"),
    "EffectLandedLate": _Words("EXECUTED TOO LATE", _landed_late),
    "FellBack": _Words("FELL BACK", _fell_back, loud=True),
    "RunPruned": _Words("run pruned", lambda data: f"had ended {data.get('status')}; {_by(data)}"),
    "RunLeft": _Words("MOVED AWAY", lambda data: f"to {data.get('url')}; {_by(data)}", loud=True),
    "RunMoved": _Words("moved here", lambda data: f"from {data.get('url')}; {_by(data)}"),
    "RunRewound": _Words("sent back", _rewound, loud=True),
    "CallsUnclaimed": _Words("not asked for any more", _addresses),
    "StepStarted": _Words("step started", _args),
    "StepDone": _Words("step done", _value),
    "StepRaised": _Words("step raised", _error),
    "EffectIntended": _Words("effect intended", _args),
    "EffectDone": _Words("effect done", _done),
    "EffectRaised": _Words("effect raised", _error),
    "EffectDoubted": _Words("effect IN DOUBT", _error, loud=True),
    "SagaCancelled": _Words("saga cancelled", lambda _: "what was done in it is undone"),
    "EffectUnstorable": _Words("effect done, value not stored", lambda data: str(data.get("why", "")), loud=True),
    "EffectSettled": _Words("effect settled", _settled),
    "EffectSuspected": _Words("effect IN DOUBT", lambda _: "its record may be among those that were lost", loud=True),
    "EffectRecovered": _Words("effect proven", lambda data: f"by an intact entry that was set aside: {_value(data)}"),
    "ValueNoted": _Words("value noted", _value),
    "Progressed": _Words("progress", _progress),
    "Published": _Words("published", _published),
    "TimerSet": _Words("sleeping", _due),
    "TimerFired": _Words("woke up"),
    "WaitStarted": _Words("waiting", _wait),
    "EventSent": _Words("event sent", lambda data: f"{_published(data)} {_by(data)}"),
    "EventTaken": _Words("event taken"),
    "WaitExpired": _Words("wait expired"),
    "ChildEnded": _Words("child ended", lambda data: f"run {data.get('child')}"),
    "WorldSeen": _Words("world seen", _sights),
    "DriftAccepted": _Words("drift accepted", _accepted),
    "QuestionAsked": _Words("question asked", _asked),
    "AnswerGiven": _Words("answered", lambda data: f"{_value(data)} {_by(data)}"),
    "QuestionExpired": _Words("question expired", lambda _: "nobody answered in time"),
    "GenerationSaved": _Words("generation saved", lambda data: f"number {data.get('generation')}"),
    "ThreadSaved": _Words("checkpoint saved", _checkpoint),
    "ThreadWrote": _Words("task wrote", lambda data: f"{_checkpoint(data)}, task {data.get('task')}"),
    "ThreadCleared": _Words("CLEARED", lambda data: str(data.get("why", "")), loud=True),
    "StoreAdopted": _Words("OLDER STATE adopted", lambda data: f"by {data.get('by')}: {data.get('reason')}", loud=True),
}
