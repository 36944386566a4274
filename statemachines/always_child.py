"""What must hold on every transition of the machines that live as long as the child.

The properties restate the contract, not the tables: none of them looks a row up.
"""

from collections.abc import Iterator
from typing import Final

from statemachines.attachment import HELD
from statemachines.attachment import AttachmentState as Attachment
from statemachines.connection import LIVE
from statemachines.connection import ConnectionState as Connection
from statemachines.explore import Always, Model, Step, count
from statemachines.operation import BUSY, OperationState
from statemachines.output import ENDED, OutputState
from statemachines.rows import TERMINALS, Emit
from statemachines.run import OVER
from statemachines.snapshot import CURRENT, SnapshotState

_INIT_ANSWERS: Final = frozenset({Emit.INITIALIZE_RESULT, Emit.INITIALIZE_ERROR, Emit.INITIALIZE_CANCELLED})
_ANSWERS: Final = frozenset({Emit.OPERATION_RESULT, Emit.OPERATION_ERROR, Emit.OPERATION_CANCELLED})
_ADMITS: Final = frozenset(
    {
        Emit.START_STARTUP,
        Emit.START_OPERATION,
        Emit.START_TURN,
        Emit.TURN_START_RESULT,
        Emit.TURN_CANCEL_RESULT,
        Emit.APPROVAL_ANSWER_RESULT,
        Emit.CLIENT_TOOL_RESULT_RESULT,
        Emit.OPERATION_CANCEL_RESULT,
        Emit.STATUS_RESULT,
        Emit.SHUTDOWN_RESULT,
        Emit.ALLOW,
        Emit.RETURN_CALL,
    }
)


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
        answers = count(s, _INIT_ANSWERS)
        return answers == int(leaves) or (leaves and not answers and s.after[output] in lost)

    yield "an admitted initialize is answered exactly once, unless the transport failed", answered
    yield (
        "startup begins once, when initialize is admitted",
        lambda s: (
            count(s, frozenset({Emit.START_STARTUP})) == int(s.before[at] not in begun and s.after[at] in starting)
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
    yield "nothing is admitted after stopping", lambda s: s.before[at] in live or not count(s, _ADMITS)
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
            count(s, frozenset({Emit.START_CLEANUP})) == int(s.before[output] not in ended and s.after[output] in ended)
        ),
    )
    yield (
        "an ended output stays as it ended",
        lambda s: s.before[output] not in ended or s.after[output] == s.before[output],
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
            count(s, frozenset({Emit.RELEASE_ALL})) <= int(s.before[at] in releasing and s.after[at] not in releasing)
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
        lambda s: count(s, _ANSWERS) == int(s.before[at] in busy and s.after[at] not in busy),
    )
    yield (
        "a worker starts exactly when an operation is admitted",
        lambda s: count(s, frozenset({Emit.START_OPERATION})) == int(s.before[at] not in busy and s.after[at] in busy),
    )
    yield (
        "operation_cancelled is said of a cancelled operation only",
        lambda s: Emit.OPERATION_CANCELLED not in s.emits or s.before[at] not in working,
    )
    yield (
        "a cancelled operation's worker is told once",
        lambda s: (
            count(s, frozenset({Emit.CANCEL_OPERATION}))
            == int(s.before[at] in working and s.after[at] in busy and s.after[at] not in working)
        ),
    )
    kinds = {code: (code - 1) % 3 for code in busy}
    yield (
        "an operation keeps its kind",
        lambda s: s.before[at] not in busy or s.after[at] not in busy or kinds[s.before[at]] == kinds[s.after[at]],
    )


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
                not count(s, frozenset(TERMINALS)) or s.after[at] not in current or "WORKER_REVISED" in s.choice.label
            ),
        )
    if "catalog" in m.index:
        catalog, served = m.at("catalog"), m.code("catalog", *CURRENT)
        yield (
            "catalog: an admitted refresh outdates it",
            lambda s: not s.choice.label.startswith("model.refresh") or s.after[catalog] not in served,
        )


_SERVES: Final = ("FRESH_PAGE", "FRESH_LAST", "PAGE", "LAST_PAGE")


def _replaced(s: Step) -> bool:
    attached = ("WORKER_ATTACHED_LAZY", "WORKER_ATTACHED_DURABLE", "WORKER_SELECTED")
    return Emit.OPERATION_RESULT in s.emits and any(f"operation {each}" in s.choice.label for each in attached)
