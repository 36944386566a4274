"""The properties every slice is judged by.

``ALWAYS`` holds, in plain words, what must be true of every transition; each is made for a compiled slice and left
out where the slice lacks a machine it speaks of. ``goals`` says what must stay reachable. The properties restate the
contract, not the tables: none of them looks a row up.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from statemachines.activity import ActivityState as Activity
from statemachines.activity import CardState as Card
from statemachines.approval import ApprovalState as Approval
from statemachines.attachment import HELD
from statemachines.attachment import AttachmentState as Attachment
from statemachines.channel import ChannelState as Channel
from statemachines.client_call import ClientCallState as Call
from statemachines.connection import LIVE
from statemachines.connection import ConnectionState as Connection
from statemachines.explore import Always, Judges, Model, State, Step
from statemachines.message import MessageState as Message
from statemachines.operation import BUSY, OperationState
from statemachines.output import ENDED, OutputState
from statemachines.persistence import PersistenceState as Persistence
from statemachines.rows import KINDS, TERMINALS, Emit, Kind
from statemachines.run import ACTIVE, CANCELLABLE, OVER, RunState
from statemachines.run import CANCELLING as RUN_CANCELLING
from statemachines.snapshot import CURRENT, SnapshotState
from statemachines.step import machine_of

Judge = Callable[[Step], bool]
_INIT_ANSWERS: Final = frozenset({Emit.INITIALIZE_RESULT, Emit.INITIALIZE_ERROR, Emit.INITIALIZE_CANCELLED})
_ANSWERS: Final = frozenset({Emit.OPERATION_RESULT, Emit.OPERATION_ERROR, Emit.OPERATION_CANCELLED})
_ADMITS: Final = frozenset(
    {Emit.START_STARTUP, Emit.START_OPERATION, Emit.START_TURN, Emit.TURN_START_RESULT, Emit.TURN_CANCEL_RESULT,
     Emit.APPROVAL_ANSWER_RESULT, Emit.CLIENT_TOOL_RESULT_RESULT, Emit.OPERATION_CANCEL_RESULT, Emit.STATUS_RESULT,
     Emit.SHUTDOWN_RESULT, Emit.ALLOW, Emit.RETURN_CALL}
)  # fmt: skip
_EVENTS: Final = frozenset(emit for emit in Emit if KINDS[emit] is Kind.EVENT)
_REPORTS: Final = frozenset({Emit.MESSAGE_DELTA, Emit.MESSAGE_RECONCILE, Emit.ACTIVITY, Emit.TOOL_CARD})
_ASKS: Final = frozenset({Emit.APPROVAL_REQUESTED, Emit.CLIENT_TOOL_CALL})


def _count(step: Step, wanted: frozenset[Emit]) -> int:
    return sum(emit in wanted for emit in step.emits)


def connection(m: Model) -> Iterator[Always]:
    """The connection, its startup, its way out."""
    at, output, attachment = m.at("connection"), m.at("output"), m.at("attachment")
    live, starting = m.code("connection", *LIVE), m.code("connection", Connection.STARTING)
    closed = m.code("connection", Connection.CLOSED)
    begun = m.code("connection", Connection.STARTING, Connection.READY, Connection.FAILED)
    ended, lost = m.code("output", *ENDED), m.code("output", OutputState.LOST)
    pumping = m.code("output", OutputState.OPEN, OutputState.STALLED)
    let_go = m.code("attachment", Attachment.RELEASING, Attachment.SEALED)
    sealed = m.code("attachment", Attachment.SEALED)

    def answered(s: Step) -> bool:
        leaves = s.before[at] in starting and s.after[at] not in starting
        answers = _count(s, _INIT_ANSWERS)
        return answers == int(leaves) or (leaves and not answers and s.after[output] in lost)

    yield "an admitted initialize is answered exactly once, unless the transport failed", answered
    yield (
        "startup begins once, when initialize is admitted",
        lambda s: (
            _count(s, frozenset({Emit.START_STARTUP})) == int(s.before[at] not in begun and s.after[at] in starting)
        ),
    )
    yield (
        "ready follows the result, failed the error",
        lambda s: (
            s.before[at] == s.after[at]
            or (
                (s.after[at] not in m.code("connection", Connection.READY) or Emit.INITIALIZE_RESULT in s.emits)
                and (s.after[at] not in m.code("connection", Connection.FAILED) or Emit.INITIALIZE_ERROR in s.emits)
            )
        ),
    )
    yield "nothing is admitted after stopping", lambda s: s.before[at] in live or not _count(s, _ADMITS)
    yield "stopping is for good", lambda s: s.before[at] in live or s.after[at] not in live
    yield (
        "a live connection pumps output, a stopping one drains it",
        lambda s: (s.after[at] in live) == (s.after[output] in pumping),
    )
    yield (
        "a stopping connection holds no attachment",
        lambda s: (s.after[at] in live) == (s.after[attachment] not in let_go),
    )
    yield (
        "closed is the end of everything",
        lambda s: s.after[at] not in closed or (s.after[output] in ended and s.after[attachment] in sealed),
    )
    yield (
        "exit comes last and only with closed",
        lambda s: (
            (Emit.EXIT in s.emits) == (s.before[at] not in closed and s.after[at] in closed)
            and Emit.EXIT not in s.emits[:-1]
        ),
    )
    yield (
        "cleanup starts once, when the output has ended",
        lambda s: (
            _count(s, frozenset({Emit.START_CLEANUP}))
            == int(s.before[output] not in ended and s.after[output] in ended)
        ),
    )
    yield "status changes nothing", lambda s: Emit.STATUS_RESULT not in s.emits or s.before == s.after
    yield (
        "status answers only an admitted connection",
        lambda s: Emit.STATUS_RESULT not in s.emits or s.before[at] in begun,
    )
    yield (
        "a cancelled startup is told so",
        lambda s: (Emit.CANCEL_STARTUP in s.emits) == (s.before[at] in starting and s.after[at] not in begun),
    )
    yield (
        "shutdown is answered first",
        lambda s: Emit.SHUTDOWN_RESULT not in s.emits or s.emits[0] is Emit.SHUTDOWN_RESULT,
    )


def attachment(m: Model) -> Iterator[Always]:
    """The attachment and its leases."""
    at, operation, conn = m.at("attachment"), m.at("operation"), m.at("connection")
    held = m.code("attachment", *HELD)
    durable, lazy = m.code("attachment", Attachment.DURABLE), m.code("attachment", Attachment.LAZY)
    attach = m.code("operation", OperationState.WORKING_ATTACH, OperationState.CANCELLING_ATTACH)
    live = m.code("connection", *LIVE)

    def attached(s: Step) -> bool:
        return s.before[operation] in attach and Emit.OPERATION_RESULT in s.emits

    yield (
        "only a successful attach replaces the attachment, and releases the previous one",
        lambda s: (
            (Emit.RELEASE_PREVIOUS in s.emits) == (attached(s) and s.before[at] in held and s.before[conn] in live)
        ),
    )
    yield (
        "an attach that comes too late releases what it took",
        lambda s: (Emit.RELEASE_NEW in s.emits) == (attached(s) and s.before[conn] not in live),
    )
    yield (
        "an attachment begins with an attach",
        lambda s: s.before[at] in held or s.after[at] not in held or attached(s),
    )
    yield (
        "a successful attach on a live connection attaches",
        lambda s: not (attached(s) and s.before[conn] in live) or s.after[at] in held,
    )
    yield (
        "a durable attachment turns lazy only by another attach",
        lambda s: not (s.before[at] in durable and s.after[at] in lazy) or attached(s),
    )
    yield (
        "leases are released with the teardown, before exit",
        lambda s: Emit.RELEASE_ALL not in s.emits or s.emits.index(Emit.RELEASE_ALL) < s.emits.index(Emit.EXIT),
    )
    releasing = m.code("attachment", Attachment.RELEASING)
    yield (
        "held leases are let go exactly once",
        lambda s: (
            _count(s, frozenset({Emit.RELEASE_ALL})) <= int(s.before[at] in releasing and s.after[at] not in releasing)
        ),
    )


def operation(m: Model) -> Iterator[Always]:
    """The session worker slot."""
    at, run = m.at("operation"), m.at("run")
    busy, over = m.code("operation", *BUSY), m.code("run", *OVER)
    working = m.code("operation", OperationState.WORKING_ATTACH, OperationState.WORKING_READ,
                     OperationState.WORKING_SELECT)  # fmt: skip
    yield "a session worker and a run exclude each other", lambda s: s.after[at] not in busy or s.after[run] in over
    yield (
        "an accepted operation is answered exactly once, with its worker's end",
        lambda s: _count(s, _ANSWERS) == int(s.before[at] in busy and s.after[at] not in busy),
    )
    yield (
        "a worker starts exactly when an operation is admitted",
        lambda s: _count(s, frozenset({Emit.START_OPERATION})) == int(s.before[at] not in busy and s.after[at] in busy),
    )
    yield (
        "operation_cancelled is said of a cancelled operation only",
        lambda s: Emit.OPERATION_CANCELLED not in s.emits or s.before[at] not in working,
    )
    yield (
        "a cancelled operation's worker is told once",
        lambda s: (
            _count(s, frozenset({Emit.CANCEL_OPERATION}))
            == int(s.before[at] in working and s.after[at] in busy and s.after[at] not in working)
        ),
    )
    kinds = {code: (code - 1) % 3 for code in busy}
    yield (
        "an operation keeps its kind",
        lambda s: s.before[at] not in busy or s.after[at] not in busy or kinds[s.before[at]] == kinds[s.after[at]],
    )


def run(m: Model) -> Iterator[Always]:
    """The run, its terminal, its persistence."""
    at, stored, attached = m.at("run"), m.at("persistence"), m.at("attachment")
    over, active = m.code("run", *OVER), m.code("run", *ACTIVE)
    finished, executing = m.code("run", RunState.FINISHED), m.code("run", RunState.EXECUTING)
    cancellable, cancelling = m.code("run", *CANCELLABLE), m.code("run", *RUN_CANCELLING)
    unstored = m.code("persistence", Persistence.UNSTORED)
    degraded = m.code("persistence", Persistence.DEGRADED)
    held, output = m.code("attachment", *HELD), m.at("output")
    drained = m.code("output", OutputState.DRAINED)
    decided = m.code("run", RunState.FINISHING_COMPLETED, RunState.FINISHING_FAILED, RunState.FINISHING_CANCELLED)
    given_up = m.code("run", RunState.CANCELLING_UNDELIVERABLE, RunState.FINISHING_UNDELIVERABLE)

    def started(s: Step) -> bool:
        return Emit.TURN_START_RESULT in s.emits

    yield (
        "exactly one terminal, when the run ends",
        lambda s: _count(s, frozenset(TERMINALS)) == int(s.after[at] in finished and (s.before[at] in active)),
    )
    yield (
        "a run's events come while it is active, the terminal last",
        lambda s: (
            not _count(s, _EVENTS)
            or (s.before[at] in active and not any(e in _EVENTS for e in _after_terminal(s.emits)))
        ),
    )
    yield (
        "a run begins with its answer, attached, and with nothing of an earlier one",
        lambda s: (
            started(s) == (Emit.START_TURN in s.emits)
            and started(s) == (s.before[at] in over and s.after[at] in active)
            and (not started(s) or (s.before[attached] in held and s.after[stored] in unstored))
        ),
    )
    yield (
        "input.persisted is said once, when the input is stored",
        lambda s: (
            _count(s, frozenset({Emit.INPUT_PERSISTED}))
            == int(s.before[stored] in unstored and s.after[stored] not in unstored and not started(s))
        ),
    )
    yield (
        "nothing of the provider's before the input is stored",
        lambda s: s.before[stored] not in unstored or not _count(s, _REPORTS | _ASKS),
    )
    yield (
        "persistence never claims more than what was stored",
        lambda s: (
            started(s)
            or not (
                (s.before[stored] in degraded and s.after[stored] not in degraded)
                or (s.before[stored] not in unstored and s.after[stored] in unstored)
            )
        ),
    )
    yield (
        "completed and not_started never meet",
        lambda s: Emit.RUN_COMPLETED not in s.emits or s.after[stored] not in unstored,
    )
    yield "executing means stored", lambda s: s.after[at] not in executing or s.after[stored] not in unstored
    yield (
        "a cancelled run's worker is told once",
        lambda s: (
            _count(s, frozenset({Emit.CANCEL_TURN})) == int(s.before[at] in cancellable and (s.after[at] in cancelling))
        ),
    )
    yield (
        "the runner's last word stands",
        lambda s: (
            s.before[at] not in decided
            or s.after[at] in finished | given_up
            or s.after[at] == s.before[at]
            or started(s)
        ),
    )
    yield (
        "an undeliverable run ends cancelled and reconciles nothing more",
        lambda s: (
            s.before[at] not in given_up
            or not (Emit.RUN_COMPLETED in s.emits or Emit.RUN_FAILED in s.emits or _count(s, _REPORTS))
        ),
    )
    yield "a run never goes back", lambda s: started(s) or _rank(m, s.before[at]) <= _rank(m, s.after[at])
    yield (
        "turn.cancel answers an active run",
        lambda s: Emit.TURN_CANCEL_RESULT not in s.emits or s.before[at] in active,
    )
    yield "drained leaves no run behind", lambda s: s.after[output] not in drained or s.after[at] in over
    conn, live = m.at("connection"), m.code("connection", *LIVE)
    yield (
        "a stopped connection leaves no run uncancelled",
        lambda s: s.after[conn] in live or s.after[at] not in cancellable,
    )
    yield (
        "who asks when asking is over is denied",
        lambda s: (
            not (s.choice.label.startswith("run WORKER_ASK") and s.before[at] in active - executing)
            or Emit.DENY in s.emits
        ),
    )


def _rank(m: Model, code: int) -> int:
    state = m.states[m.at("run")][code]
    order = (OVER[:1], CANCELLABLE[:1], CANCELLABLE[1:], RUN_CANCELLING, ACTIVE, OVER)
    return next(i for i, group in enumerate(order) if state in group)


def _after_terminal(emits: tuple[Emit, ...]) -> tuple[Emit, ...]:
    for i, emit in enumerate(emits):
        if emit in TERMINALS:
            return emits[i + 1 :]
    return ()


def approvals(m: Model) -> Iterator[Always]:
    """Approvals: granted at most once, never after expiry, cancellation or the end."""
    run, executing = m.at("run"), m.code("run", RunState.EXECUTING)
    requested, allowed = m.code("approval", Approval.REQUESTED), m.code("approval", Approval.ALLOWED)
    none = m.code("approval", Approval.NONE)
    for at in m.of("approval"):
        label = m.instances[at]

        def asked(s: Step, at: int = at) -> bool:
            return s.before[at] in none and s.after[at] in requested

        def settles(s: Step, at: int = at) -> bool:
            return s.before[at] in requested and s.after[at] not in requested

        yield (
            f"{label}: allowed only from requested, while executing",
            lambda s, at=at: (  # type: ignore[misc]
                s.after[at] not in allowed
                or s.before[at] in allowed
                or (s.before[at] in requested and s.before[run] in executing and Emit.ALLOW in s.emits)
            ),
        )
        yield (
            f"{label}: pending only while executing",
            lambda s, at=at: (  # type: ignore[misc]
                s.after[at] not in requested or s.after[run] in executing
            ),
        )
        yield (
            f"{label}: once settled, settled",
            lambda s, at=at: (  # type: ignore[misc]
                s.before[at] in none | requested or s.after[at] == s.before[at] or Emit.TURN_START_RESULT in s.emits
            ),
        )
        yield (
            f"{label}: asking is announced",
            lambda s, asked=asked: (  # type: ignore[misc]
                not asked(s) or Emit.APPROVAL_REQUESTED in s.emits
            ),
        )
        yield (
            f"{label}: settling tells the asker",
            lambda s, settles=settles, at=at: (  # type: ignore[misc]
                not settles(s) or (Emit.ALLOW if s.after[at] in allowed else Emit.DENY) in s.emits
            ),
        )
    where = m.of("approval")
    yield (
        "each permission is granted once",
        lambda s: s.emits.count(Emit.ALLOW) == sum(s.before[i] in requested and s.after[i] in allowed for i in where),
    )
    yield (
        "each answer is recorded once",
        lambda s: s.emits.count(Emit.APPROVAL_ANSWER_RESULT) == int(s.choice.label.startswith("approval.answer")),
    )
    yield (
        "each request is announced once",
        lambda s: (
            s.emits.count(Emit.APPROVAL_REQUESTED)
            == sum(s.before[i] in none and s.after[i] in requested for i in where)
        ),
    )


def talk(m: Model) -> Iterator[Always]:
    """Segment, activity, card, client call, channel."""
    run, executing = m.at("run"), m.code("run", RunState.EXECUTING)
    message, activity, card = (m.of(name)[0] for name in ("message", "activity", "card"))
    call, channel = m.of("client_call")[0], m.at("channel")
    published, accepted = m.code("client_call", Call.PUBLISHED), m.code("client_call", Call.ACCEPTED)
    given_up = m.code("channel", Channel.GIVEN_UP)
    reconciling, reconciled = m.code("message", Message.RECONCILING), m.code("message", Message.RECONCILED)
    abandoned, streaming = m.code("message", Message.ABANDONED), m.code("message", Message.STREAMING)
    finished, absent = m.code("card", Card.FINISHED), m.code("card", Card.ABSENT)
    unstarted, started = m.code("activity", Activity.NONE), m.code("activity", Activity.STARTED)

    def fresh(s: Step) -> bool:
        return Emit.TURN_START_RESULT in s.emits

    yield (
        "a call is pending only while executing",
        lambda s: s.after[call] not in published or s.after[run] in executing,
    )
    yield (
        "a call ends once, by result or by notice",
        lambda s: (
            _count(s, frozenset({Emit.CLIENT_TOOL_RESULT_RESULT, Emit.CLIENT_TOOL_CANCEL}))
            == int(s.before[call] in published and s.after[call] not in published)
            == _count(s, frozenset({Emit.RETURN_CALL, Emit.FAIL_CALL}))
        ),
    )
    yield (
        "a call is accepted by its result",
        lambda s: (Emit.RETURN_CALL in s.emits) == (s.before[call] in published and s.after[call] in accepted),
    )
    yield (
        "a call is published once",
        lambda s: (
            (Emit.CLIENT_TOOL_CALL in s.emits) == (s.after[call] in published and s.before[call] not in published)
            and (
                s.before[call] == s.after[call] or s.before[call] in published or s.after[call] in published or fresh(s)
            )
        ),
    )
    yield (
        "after giving up nothing is reconciled and the run is cancelled",
        lambda s: (
            s.before[channel] not in given_up
            or fresh(s)
            or not (_count(s, _REPORTS) or Emit.RUN_COMPLETED in s.emits or Emit.RUN_FAILED in s.emits)
        ),
    )
    yield (
        "giving up is for the rest of the run",
        lambda s: s.before[channel] not in given_up or s.after[channel] in given_up or fresh(s),
    )
    yield (
        "a part leads to reconciling, the last one to reconciled, a delta to streaming",
        lambda s: (
            (Emit.MESSAGE_RECONCILE not in s.emits or s.after[message] in reconciling | reconciled)
            and (Emit.MESSAGE_DELTA not in s.emits or s.after[message] in streaming)
            and (
                (s.before[message] == s.after[message])
                or fresh(s)
                or bool(_count(s, _REPORTS))
                or s.after[message] in abandoned
            )
        ),
    )
    yield (
        "an abandoned segment is silent",
        lambda s: s.before[message] not in abandoned or not s.emits or fresh(s) or s.after[message] in abandoned,
    )
    yield (
        "a segment is abandoned only with its run",
        lambda s: (
            s.before[message] in abandoned or s.after[message] not in abandoned or bool(_count(s, frozenset(TERMINALS)))
        ),
    )
    yield (
        "no segment is left open by a run that ended",
        lambda s: not _count(s, frozenset(TERMINALS)) or s.after[message] not in streaming | reconciling,
    )
    yield (
        "an activity says each of its changes once",
        lambda s: fresh(s) or (Emit.ACTIVITY in s.emits) == (s.before[activity] != s.after[activity]),
    )
    yield (
        "an activity ends at most once, after its start",
        lambda s: (
            fresh(s)
            or s.before[activity] == s.after[activity]
            or s.after[activity] in started
            or (s.before[activity] in started and s.after[activity] not in unstarted)
        ),
    )
    yield "a card follows its activity's start", lambda s: s.after[card] in absent or s.after[activity] not in unstarted
    yield (
        "a finished card never runs again, and a card begins by running",
        lambda s: (
            fresh(s)
            or (
                (s.before[card] not in finished or s.after[card] in finished)
                and not (s.before[card] in absent and s.after[card] in finished)
            )
        ),
    )
    yield "a card's change is sent", lambda s: fresh(s) or s.before[card] == s.after[card] or Emit.TOOL_CARD in s.emits


def snapshots(m: Model) -> Iterator[Always]:
    """Snapshots: stale is sticky, and what is found changed is served no more."""
    new = ("WORKER_REVISED", "WORKER_FRESH_PAGE", "WORKER_FRESH_LAST")
    operation = m.at("operation")
    reading = m.code("operation", OperationState.WORKING_READ, OperationState.CANCELLING_READ)
    for name in ("history", "list", "discover", "catalog"):
        if name not in m.index:
            continue
        at, current = m.at(name), m.code(name, *CURRENT)
        none = m.code(name, SnapshotState.NONE)

        def spoilt(s: Step, name: str = name) -> bool:
            found = any(f"{name} WORKER_{each}" in s.choice.label for each in ("CHANGED", "DROPPED"))
            return found and s.before[operation] in reading

        yield (
            f"{name}: a stale snapshot is never fresh again without a new revision",
            lambda s, at=at, c=current: (  # type: ignore[misc]
                s.before[at] in c or s.after[at] not in c or any(each in s.choice.label for each in new)
            ),
        )
        yield (
            f"{name}: a snapshot never vanishes",
            lambda s, at=at, none=none: (  # type: ignore[misc]
                s.before[at] in none or s.after[at] not in none
            ),
        )
        yield (
            f"{name}: what changed or was dropped is not current",
            lambda s, at=at, c=current, spoilt=spoilt: (  # type: ignore[misc]
                not spoilt(s) or s.after[at] not in c
            ),
        )
        yield (
            f"{name}: a new attachment outdates it",
            lambda s, at=at, c=current, name=name: (  # type: ignore[misc]
                name == "catalog" or not _replaced(s) or s.after[at] not in c or "WORKER_REVISED" in s.choice.label
            ),
        )
    if "history" in m.index:
        at, current = m.at("history"), m.code("history", *CURRENT)
        yield (
            "history: a finished run makes the old revision stale",
            lambda s: (
                not _count(s, frozenset(TERMINALS)) or s.after[at] not in current or "WORKER_REVISED" in s.choice.label
            ),
        )
    if "catalog" in m.index:
        catalog, served = m.at("catalog"), m.code("catalog", *CURRENT)
        yield (
            "catalog: an admitted refresh outdates it",
            lambda s: not s.choice.label.startswith("model.refresh") or s.after[catalog] not in served,
        )


def _replaced(s: Step) -> bool:
    attached = ("WORKER_ATTACHED_LAZY", "WORKER_ATTACHED_DURABLE", "WORKER_SELECTED")
    return Emit.OPERATION_RESULT in s.emits and any(f"operation {each}" in s.choice.label for each in attached)


_GROUPS: Final[tuple[tuple[str, Callable[[Model], Iterable[Always]]], ...]] = (
    ("connection", connection),
    ("connection", attachment),
    ("connection", operation),
    ("connection", run),
    ("approval", approvals),
    ("message", talk),
    ("connection", snapshots),
)


def always(model: Model) -> tuple[Judges, ...]:
    """The properties that speak of the machines of this slice, grouped by what they read."""
    groups = []
    for needs, group in _GROUPS:
        if any(machine_of(name) == needs for name in model.instances):
            model.asked.clear()
            properties = tuple(group(model))
            groups.append(Judges(tuple(sorted(model.asked)), properties))
    return tuple(groups)


Goal = tuple[str, frozenset[str], Callable[[State], bool], Callable[[State], bool]]


def goals(m: Model) -> Iterator[Goal]:
    """What must stay reachable: a name, whose choices may be used, where it applies, and what is to be reached."""
    conn, op, run = m.at("connection"), m.at("operation"), m.at("run")
    closed = m.code("connection", Connection.CLOSED)
    starting = m.code("connection", Connection.STARTING)
    busy, active = m.code("operation", *BUSY), m.code("run", *ACTIVE)
    anyone_else, workers = frozenset({"worker", "other"}), frozenset({"worker"})
    yield "closed, without the client", anyone_else, lambda s: True, lambda s: s[conn] in closed
    yield (
        "an owed answer, by workers alone",
        workers,
        lambda s: s[conn] not in closed and s[op] in busy,
        lambda s: s[op] not in busy,
    )
    yield (
        "an owed terminal, by workers alone",
        workers,
        lambda s: s[conn] not in closed and s[run] in active,
        lambda s: s[run] not in active,
    )
    yield "an owed startup, by workers alone", workers, lambda s: s[conn] in starting, lambda s: s[conn] not in starting
