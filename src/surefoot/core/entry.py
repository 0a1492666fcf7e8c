"""The facts a journal is made of: a closed set, one class each, numbered for ever.

A number in KINDS is never reused and a field is never given another meaning; a new meaning is a new
kind or a higher SCHEMA. When a fact was recorded, by which claimant and at which position is not
here: every record carries that in its sealed header (`seal.py`).

Values of user code ride along as `Raw`: encoded once, decoded only when replay asks for them. A large one is kept
by parts (`parts.py`): then `large` names the field and holds the reference, and the field itself says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Raw, Struct

from surefoot import errors
from surefoot.core.cure import Cure
from surefoot.core.parts import Reference

NOTHING: Final = Raw(b"null")
ELSEWHERE: Final = Raw(b'{"$large":true}')
"""Replaces a value that is kept by parts. It is no value: decoding it is an error that says so."""
LARGE: Final = 1024
"""Values of more bytes than this are kept by parts."""


class Kept(Struct, frozen=True):
    """A value that is kept by parts, as an entry that was read names it."""

    entry: int
    reference: Reference


if TYPE_CHECKING:
    Value = Raw | Kept
    """A value of user code: its bytes, or their place. Written and read as bytes; `seal.py` puts in the place."""
else:
    Value = Raw


class Due(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A moment to wait for. Within one boot the boot clock decides, else the wall clock."""

    at: int
    """Wall clock, microseconds since 1970."""
    boot: str = ""
    """Which boot of which machine `boot_at` belongs to; empty: wall clock only."""
    boot_at: int = 0
    """Boot clock, microseconds."""


class Sight(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What one witness saw: a fingerprint, part by part."""

    witness: str
    """Its name, which reads like its constructor: `files(src/*.txt)`."""
    parts: dict[str, str]
    """Part -> hash. A part that is known to be missing has the hash ABSENT."""
    spec: dict[str, str] = {}
    """How to look again without the code that asked for it; empty: only that code can."""


ABSENT: Final = "absent"


class Drift(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One part of the world that is not as the run left it."""

    witness: str
    part: str
    what: str
    """`added`, `removed`, `changed` or `not observable`."""
    expected: str
    actual: str
    by: str
    """Which call recorded what was expected."""
    host: str = ""
    """The host on which it was found."""

    def line(self) -> str:
        return errors.in_words(self, "")


class Stop(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Why a run stopped, as recorded: the name of an error of the `Stopped` family, and its facts.

    `str()` of it is what people read: the message, and what has drifted.
    """

    reason: str
    message: str
    address: str = ""
    facts: dict[str, str] = {}
    cures: tuple[Cure, ...] = ()
    drift: tuple[Drift, ...] = ()

    def __str__(self) -> str:
        return errors.in_words(self, "")


class Entry(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A recorded fact about a run."""

    large: dict[str, str] = {}
    """Field -> reference, for values that are kept by parts."""


# --- the life of a run ---------------------------------------------------------------------------


class RunCreated(Entry, frozen=True):
    workflow: str
    args: Value
    digest: str
    version: int = 1
    namespace: str = ""
    queue: str = ""
    labels: dict[str, str] = {}
    due: Due | None = None
    parent: str = ""
    """The run this one was forked from, if it was."""
    parent_seal: str = ""
    """Hex: the parent's last record that was copied."""
    at: str = ""
    """The address it was forked at."""
    child_of: str = ""
    """The run that started this one with `sf.child` and waits for it, if one does."""
    module: str = ""
    """`module:qualname` of the function, so that another module's workflow of the same name is not mistaken for it."""
    named: bool = False
    """Whether the name was given with `name=`: then the name alone identifies the workflow."""
    defaults: Value = NOTHING
    """The defaults of the parameters that were not passed, by name. Not part of the digest."""
    hosted: str = ""
    """The framework that decides when it is executed, and hands in what is executed; empty: it is a workflow's."""


class RunAdopted(Entry, frozen=True):
    """A process claims the run. The record's epoch is one higher than any before it."""

    worker: str
    host: str
    pid: int
    claim: str
    """Random, so that a claim whose acknowledgement was lost can be distinguished from another process's claim."""
    folder: str = ""
    """Its working folder, the base of the witnesses' relative paths."""
    code: str = ""
    """A digest of the project's loaded modules. It decides nothing about a call, only which worker tries first."""
    rehearses: bool = False
    """Whether the code is rehearsed under this claim, before anything is executed."""


class RunReleased(Entry, frozen=True):
    """The claimant releases the run unfinished: interrupted, or a fault in the calling code."""

    why: str


class RunStopped(Entry, frozen=True):
    stops: tuple[Stop, ...]
    due: Due | None = None
    """When the run goes on by itself in any case: another branch sleeps, or a question has a time limit."""
    children: tuple[str, ...] = ()
    """Child runs that other branches wait for. Their end wakes the run too."""


class RunSuspended(Entry, frozen=True):
    """A worker releases a run that only waits. Until the wait is over, the run costs nothing."""

    due: Due | None = None
    """When the run goes on by itself."""
    children: tuple[str, ...] = ()
    """The child runs that the run waits for. Their end wakes the run too."""
    why: str = ""
    """What the workflow itself needs and is away (`sf.Unavailable`): the run is parked. Recorded also where no worker
    drives the run."""


class RunDone(Entry, frozen=True):
    value: Value
    left: tuple[str, ...] = ()
    """Effects that a person should look at: failed in doubt, or not undone by a saga that did not succeed."""


class RunFailed(Entry, frozen=True):
    error: Raw
    left: tuple[str, ...] = ()
    """As for `RunDone`."""


class CancelRequested(Entry, frozen=True):
    by: str
    note: str = ""
    via: str = ""
    """By which way: a console, and who was signed in there. Empty: the command line, or code."""


class RunCancelled(Entry, frozen=True):
    left: tuple[str, ...] = ()


class RunContinued(Entry, frozen=True):
    """One segment ended and the next began, in one append. Recorded calls count per segment."""

    args: Value
    digest: str
    defaults: Value = NOTHING
    """As in `RunCreated`."""
    left: tuple[str, ...] = ()
    """As for `RunDone`, in the segment that ends here."""


class FellBack(Entry, frozen=True):
    """Entries after `after` were damaged; they and all that followed are quarantined, and the run goes on here.

    An effect that has no record may have been recorded in an entry that cannot be read any more: then
    it is in doubt (see `EffectSuspected`).
    """

    after: int
    quarantined: int
    """How many entries were found there and set aside, readable or not."""
    lost: int
    """How many entries there were; -1: not known."""
    why: str
    hidden: int = -1
    """How many of them cannot be read; -1: not known."""
    in_doubt: tuple[str, ...] = ()
    """Effects that were begun according to intact entries among them, without an outcome that can be trusted."""
    by: str = ""
    note: str = ""


class RunPruned(Entry, frozen=True):
    """What is left of a run whose journal was deleted: that the run existed, and how it ended."""

    workflow: str
    digest: str
    status: str
    entries: int
    created: int
    ended: int
    seal: str
    """Hex: the seal of its last entry: it identifies an export of the run."""
    labels: dict[str, str] = {}
    by: str = ""
    note: str = ""
    archive: str = ""
    """The URL of the object that holds the run now; empty: what it recorded is gone."""
    sha256: str = ""
    """Hex: of that object."""


class RunLeft(Entry, frozen=True):
    """The journal moves to another store: from here on nobody writes into it here, or drives the run here.

    First it is the last entry of the journal. Once the other store has all entries, it is the only one that is left.
    """

    store: str
    """Hex: the id of the other store."""
    url: str
    """Where that store is, without a password."""
    entries: int
    seal: str
    """Hex: the seal of the last entry that moves."""
    status: str = ""
    """How the run stood; empty: it is no run."""
    workflow: str = ""
    digest: str = ""
    created: int = 0
    labels: dict[str, str] = {}
    came: tuple[str, ...] = ()
    """Where the journal had come from before, as `STORE:SEAL` in hex, oldest first."""
    by: str = ""
    note: str = ""


class RunMoved(Entry, frozen=True):
    """All entries before this one stood in another store, and are sealed anew for this one. Their contents are the same."""

    store: str
    """Hex: the id of the store that they come from."""
    url: str
    """Where that store is, without a password; or the name of a file."""
    entries: int
    seal: str
    """Hex: the seal of the last entry there."""
    by: str = ""
    note: str = ""

    @property
    def origin(self) -> str:
        return f"{self.store}:{self.seal}"


class RunRewound(Entry, frozen=True):
    """A person rewound the run to before a call. What was recorded from there on is set aside, not deleted."""

    address: str
    by: str
    note: str = ""
    seq: int = 0
    """The entry from which on calls are set aside."""
    via: str = ""
    """As in `CancelRequested`."""


class CallsReopened(Entry, frozen=True):
    """A person requested that failed calls are tried again. All that succeeded stays on record."""

    addresses: tuple[str, ...]
    by: str
    note: str = ""
    via: str = ""
    """As in `CancelRequested`."""


class QuarantineLifted(Entry, frozen=True):
    """A person allows another try of a run that was taken up many times and never made progress."""

    by: str
    note: str = ""
    via: str = ""
    """As in `CancelRequested`."""


class Acknowledged(Entry, frozen=True):
    """A person has seen what is only to be known of the run (`core/need.py`), as far as it was on record by then."""

    by: str
    note: str = ""
    about: tuple[str, ...] = ()
    """Which kinds of news. Of others, and of what comes later, people are told all the same."""
    via: str = ""
    """As in `CancelRequested`."""


class CallsUnclaimed(Entry, frozen=True):
    """Recorded steps that the code no longer asks for: allowed, but noted for people."""

    addresses: tuple[str, ...]


# --- calls ---------------------------------------------------------------------------------------


class OfCall(Entry, frozen=True):
    """A fact about one call."""

    address: str


class CallMade(OfCall, frozen=True):
    """What was called, and with what."""

    digest: str
    args: Value


class EffectBegun(CallMade, frozen=True):
    """An effect that was executed, or may have been."""

    key: str
    policy: str


class StepStarted(CallMade, frozen=True):
    """Lazy: written only if something else is committed, or a second passes, while the step runs."""

    attempt: int = 1


class StepDone(CallMade, frozen=True):
    value: Value
    started: int
    attempt: int = 1
    asked_as: int = 0
    """The number under which the code asked for the step, if another record had that number."""


class StepRaised(CallMade, frozen=True):
    """An attempt failed. Without `due` there is no further attempt: the step failed for good."""

    error: Raw
    attempt: int = 1
    due: Due | None = None
    parked: bool = False
    """Something that the step needs is away (`sf.Unavailable`): this attempt uses up no retry."""
    asked_as: int = 0
    started: int = 0
    """When the attempt began, microseconds since 1970."""


class EffectIntended(EffectBegun, frozen=True):
    """Durable before the call: if the process dies now, the effect is known to be in doubt."""

    attempt: int = 1
    deadline: Due | None = None
    before: tuple[Sight, ...] = ()
    """What the effect touches, as it was before."""
    expires: Due | None = None
    """Until when a retry under this key is safe, counted from its first use; None: for ever."""
    defaults: Value = NOTHING
    """The defaults of the parameters that were not passed, by name: every attempt, check and undo uses them."""
    lands: Due | None = None
    """For an effect with a check: until when the call may still be on its way if it is cut off. Recorded where its
    time-out alone does not say, or the other side may go on after it."""
    marked: str = ""
    """Of a transaction: the database in which its marker commits with it, without passwords. Empty: no transaction."""
    origin: str = ""
    """`module:qualname` of the function. Empty: no more than its name in the workflow's module, or not known. It
    decides nothing about the call. It says where to look whether the function has lost its decorator."""


class EffectDone(OfCall, frozen=True):
    value: Value
    attempt: int = 1
    after: tuple[Sight, ...] = ()
    """What the effect touches, as the effect left it: as declared by the effect, or as found after it."""
    found: tuple[Sight, ...] = ()
    """What was found right after, where it differs from what the effect declared: others changed it."""


class EffectRaised(OfCall, frozen=True):
    """The attempt failed and that proves nothing happened. Without `due`: failed for good."""

    error: Raw
    attempt: int = 1
    due: Due | None = None
    parked: bool = False
    """As in `StepRaised`."""
    denied: bool = False
    """A person refused this attempt, so it was not begun: there is no intent, and these fields record what was refused.
    An earlier attempt that was in doubt is still in doubt."""
    digest: str = ""
    args: Value = NOTHING
    defaults: Value = NOTHING


class EffectDoubted(OfCall, frozen=True):
    """The attempt ended in a way that proves nothing (a time-out, a lost connection)."""

    error: Raw
    attempt: int = 1
    runs_in: str = ""
    """The worker in whose process the attempt was still running after its time was over; empty: it had ended."""
    due: Due | None = None
    """When it is tried again, if its policy allows that."""


class EffectUnstorable(OfCall, frozen=True):
    """The effect happened, but its result cannot be stored. It is never run again."""

    why: str
    attempt: int = 1


class EffectSettled(OfCall, frozen=True):
    """The answer about an in-doubt effect. It is used once, for the attempt that it names."""

    happened: bool
    attempt: int
    value: Value = NOTHING
    learned_by: str = "person"
    by: str = ""
    note: str = ""
    failed: bool = False
    """It did not happen, and it is not run again: the call fails with its exception."""
    after: tuple[Sight, ...] = ()
    """What the effect touches, found by its check, as in `EffectDone`. A person's answer does not contain it."""
    via: str = ""
    """As in `CancelRequested`."""


class EffectSuspected(EffectBegun, frozen=True):
    """An effect reached right after a fallback: it may have been executed, and recorded in an entry that is lost."""

    attempt: int = 1
    defaults: Value = NOTHING


class EffectRecovered(EffectBegun, frozen=True):
    """An effect reached after a fallback. An intact record of the very same call was found among those set aside."""

    value: Value
    attempt: int = 1
    defaults: Value = NOTHING


class SagaCancelled(OfCall, frozen=True):
    """A cancellation (a time-out, a failing sibling) left a saga: from here on, the saga's effects are undone.

    Durable before the first undo: in a replay a time-out may strike at another place.
    """

    seconds: float = 0.0
    """How long the code had been running in its process. The same cancellation may take that long in a replay."""


class CallKept(CallMade, frozen=True):
    """The code asks for a recorded call with other arguments, and the record stands. Lazy."""

    why: str


class CodeMatched(Entry, frozen=True):
    """A person declares which calls of changed code and which recorded calls are the same."""

    address: str
    """A call of the code as it is now; `*` stands for any characters."""
    how: str
    """`is` (it is the recorded call `other`), `new`, `keep` or `rerun`."""
    by: str
    other: str = ""
    note: str = ""
    shown: tuple[str, ...] = ()
    """Digests of the arguments with which the run stopped at such calls: the declaration is about those. Empty: about
    any. `unasked`: it is about recorded calls that the code did not ask for, and leaves out."""
    via: str = ""
    """As in `CancelRequested`."""


class CallCancelled(OfCall, frozen=True):
    """A call was cut off by a cancellation from inside the run (a time-out, a failing sibling). Lazy."""

    seconds: float = 0.0
    """How long the code had been running in its process. The same cancellation may take that long in a replay."""
    before: bool = False
    """It struck between two calls, before this one was asked for; this one was not cut off."""


class EffectLandedLate(OfCall, frozen=True):
    """A process that had lost its claim finished an effect: executed there, too late to record its outcome."""

    key: str
    attempt: int
    worker: str
    host: str
    pid: int
    outcome: str
    """`returned`, or the exception in words."""


# --- recorded values, time, waiting ---------------------------------------------------------------


class ValueNoted(OfCall, frozen=True):
    """The result of now, random, uuid4 or patched. Lazy."""

    value: Value


ITEMS_DONE: Final = "map.progress"
"""The address of progress that the code did not report itself: how far `sf.map` is. It is no call, and is not replayed."""


class Progressed(OfCall, frozen=True):
    """How far the run is, for people. Lazy."""

    done: float
    total: float | None = None
    note: str = ""


class Published(OfCall, frozen=True):
    name: str
    value: Value


class TimerSet(OfCall, frozen=True):
    due: Due


class TimerFired(OfCall, frozen=True):
    """The moment of a timer has come."""


class WaitStarted(OfCall, frozen=True):
    name: str
    due: Due | None = None


class EventSent(Entry, frozen=True):
    """`id` makes sending idempotent: a second event with the same id is the same event."""

    name: str
    value: Value
    id: str
    by: str = ""
    via: str = ""
    """As in `CancelRequested`."""


class EventTaken(OfCall, frozen=True):
    id: str


class WaitExpired(OfCall, frozen=True):
    """No event came in time."""


class ChildEnded(Entry, frozen=True):
    """Written by the process that drove the child: its parent may go on."""

    child: str


# --- the world -------------------------------------------------------------------------------------


class WorldSeen(Entry, frozen=True):
    """The world as the run found it, or as accepted from here on. Without an address: before the first call."""

    sights: tuple[Sight, ...]
    address: str = ""
    why: str = ""
    value: Value = NOTHING
    """What `sf.watch` gave."""


class DriftAccepted(Entry, frozen=True):
    """A person accepts the changes found outside."""

    sights: tuple[Sight, ...]
    by: str
    note: str = ""
    unwatched: dict[str, str] = {}
    """Witness -> why it could not be observed. From here on the run does not look there any more."""
    via: str = ""
    """As in `CancelRequested`."""


# --- people ----------------------------------------------------------------------------------------


class QuestionAsked(OfCall, frozen=True):
    """`approve` and `ask`. The run waits until the question is answered or the time is over."""

    form: str
    """`approve` or `ask`."""
    question: str
    shown: str
    """Digest of everything a person is shown; an answer is bound to it."""
    details: Value = NOTHING
    schema: str = ""
    """The type of an answer, in words; for `ask`."""
    by: tuple[str, ...] = ()
    """Who may answer; empty: any person."""
    due: Due | None = None


class AnswerGiven(OfCall, frozen=True):
    """The first answer to an open question, bound to what was shown, counts; any other is ignored."""

    shown: str
    value: Value
    by: str
    note: str = ""
    groups: tuple[str, ...] = ()
    """Those that whoever answered was in: a question may be for a group."""
    via: str = ""
    """As in `CancelRequested`."""


class QuestionExpired(OfCall, frozen=True):
    """No answer came in time."""


# --- journals that are no runs ---------------------------------------------------------------------


class GenerationSaved(Entry, frozen=True):
    """One generation of an explicit checkpoint."""

    generation: int
    schema: int
    state: Value
    host: str
    pid: int
    watch: dict[str, dict[str, str]] = {}
    """What each witness saw when the state was saved: witness -> part -> fingerprint."""
    specs: dict[str, dict[str, str]] = {}
    """How to look again without the code that asked for it, for the witnesses that know it."""
    by: str = ""
    """Who accepted the changes found outside: then the state is that of the generation before."""
    note: str = ""


class StoreAdopted(Entry, frozen=True):
    """A person accepted a store that is older than it once was."""

    by: str
    reason: str
    expected: int
    """Up to which record the store was known to have reached."""
    found: int
    runs: tuple[str, ...] = ()
    """Unfinished runs that may have lost entries."""


class ThreadSaved(Entry, frozen=True):
    """One checkpoint of a thread of a framework that keeps its own state: a whole state, not what changed."""

    ns: str
    """Which graph within the thread; empty: the outermost."""
    id: str
    parent: str
    """The checkpoint it came from, in the same namespace; empty: none."""
    state: Value
    meta: Value
    host: str
    pid: int
    adopted: str = ""
    """Hex: the seal of the last `StoreAdopted` at that time, if there was one."""


class ThreadWrote(Entry, frozen=True):
    """What a task of a thread gave, before the next checkpoint has it."""

    ns: str
    id: str
    """The checkpoint that the task belongs to. It may be saved later than this."""
    task: str
    path: str
    value: Value
    """Triples of number, channel and value. Numbers below zero are for channels that the framework reserves."""


class ThreadCleared(Entry, frozen=True):
    """First in a journal of a thread that was rewritten: what stood here before was deleted, or set aside as damaged."""

    why: str


KINDS: Final[dict[int, type[Entry]]] = {
    1: RunCreated,
    2: RunAdopted,
    3: RunReleased,
    4: RunStopped,
    5: RunDone,
    6: RunFailed,
    7: CancelRequested,
    8: RunCancelled,
    9: RunContinued,
    10: CallsUnclaimed,
    11: FellBack,
    12: RunPruned,
    13: RunRewound,
    14: CallsReopened,
    15: Acknowledged,
    16: RunLeft,
    17: RunSuspended,
    18: QuarantineLifted,
    19: RunMoved,
    20: StepStarted,
    21: StepDone,
    22: StepRaised,
    23: EffectIntended,
    24: EffectDone,
    25: EffectRaised,
    26: EffectDoubted,
    27: EffectSettled,
    28: EffectUnstorable,
    29: EffectSuspected,
    30: EffectRecovered,
    31: SagaCancelled,
    32: CallKept,
    33: CodeMatched,
    34: CallCancelled,
    35: EffectLandedLate,
    40: ValueNoted,
    41: Progressed,
    42: Published,
    43: TimerSet,
    44: TimerFired,
    45: WaitStarted,
    46: EventSent,
    47: EventTaken,
    48: WaitExpired,
    49: ChildEnded,
    50: WorldSeen,
    51: DriftAccepted,
    52: QuestionAsked,
    53: AnswerGiven,
    54: QuestionExpired,
    60: GenerationSaved,
    61: StoreAdopted,
    70: ThreadSaved,
    71: ThreadWrote,
    72: ThreadCleared,
}

BY_PARTS: Final = ("args", "value", "state", "details", "defaults", "meta")
"""The fields of entries that may be kept by parts. Failures are not: people need to read them in any case."""

KIND_OF: Final[dict[type[Entry], int]] = {cls: number for number, cls in KINDS.items()}

VISITORS: Final = frozenset(
    {
        CancelRequested,
        EffectSettled,
        EventSent,
        DriftAccepted,
        AnswerGiven,
        QuarantineLifted,
        ChildEnded,
        CodeMatched,
        EffectLandedLate,
        Acknowledged,
        RunMoved,
    }
)
"""Entries that others than the claimant may write into a run. A closed set."""
SAID: Final[frozenset[type[Entry]]] = frozenset(
    {
        *(CancelRequested, EffectSettled, EventSent, DriftAccepted, AnswerGiven, QuarantineLifted, CodeMatched),
        *(Acknowledged, RunRewound, CallsReopened, RunPruned, StoreAdopted, FellBack, EffectLandedLate),
    }
)
"""Entries that say what people did, and what fell back or came too late: an audit lists them. Stores find them by index."""
LETTING_GO: Final = frozenset({RunReleased, RunStopped, RunSuspended, RunDone, RunFailed, RunCancelled})
"""Entries with which a process gives up its claim on a run. The process writes nothing after them."""
FENCES: Final = frozenset({RunCreated, RunAdopted, FellBack, RunRewound, CallsReopened, RunPruned, RunLeft})
"""Entries that end every claim made before them, whatever their epoch."""
MADE_BY_ENGINE: Final = frozenset(
    {StepStarted, StepDone, StepRaised, EffectIntended, EffectDone, EffectRaised, TimerSet, TimerFired}
)
"""Entries whose fields the engine makes or encodes itself. All others are read back before they are written."""
