"""When no row explains a frame: what to say of it, and how to go on.

The blame falls on the row that swallowed the input (it bears the clauses that forbid the frame), on the check of
admission that should have said something else, or on an answer that came out of turn. Then the frame is taken as
told: the states become those in which it would have been right, so that what follows is still read.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from typing import Final, NamedTuple

from statemachines.activity import CARD_FINISHED, SHOWS, ActivityInput, ActivityState, CardState
from statemachines.admission import LISTENING, Check
from statemachines.approval import ApprovalState
from statemachines.attachment import HELD, AttachmentState
from statemachines.client_call import ClientCallState
from statemachines.connection import ConnectionInput, ConnectionState
from statemachines.operation import WORKING, OperationState
from statemachines.persistence import REPORTED, PersistenceState
from statemachines.registry import MACHINES
from statemachines.rows import TERMINALS, Emit
from statemachines.run import ACTIVE, CANCELLABLE, CANCELLING, OVER, RunInput, RunState
from statemachines.snapshot import SnapshotState
from statemachines.step import ImpossibleInputError, Move, World, machine_of, step
from statemachines.witness.facts import admission_of, checks, instance_of, obstacle
from statemachines.witness.frames import CODE_OF, Told
from statemachines.witness.ledger import SNAPSHOT_OF, Asked, Ledger
from statemachines.witness.search import Guess, accept, admitting, explain, new_run, take, unmet, view
from statemachines.witness.shapes import STARTUP_CODES, WORKER_CODES


class Blame(NamedTuple):
    """What is wrong, and which machine in which state excludes it, by which clauses."""

    what: str
    machine: str
    state: str
    clauses: tuple[str, ...]


def _at(guess: Guess, machine: str, what: str, *clauses: str) -> Blame:
    state = guess.world.get(machine)
    return Blame(what, machine, state.value if state else "none", clauses)


def _check(guess: Guess, check: Check, what: str, asked: Asked) -> Blame:
    """The machine that a check looks at, or the one of the method."""
    machine = next((instance_of(name, asked) for name, _ in check.allowed), "connection")
    admission = admission_of(asked)
    if not check.allowed and admission is not None and check in admission.checks:
        machine = instance_of(admission.choices[0].machine, asked)
    return _at(guess, machine, what, *check.clauses)


def blame_event(guess: Guess, ledger: Ledger, told: Told) -> Blame:
    """Why an event has no row: the last row that its own input meets."""
    if told.kind == "event/run.finished" and guess.world["run"] in ACTIVE:
        return _blame_terminal(guess, ledger, told)
    if admitting(guess) is not None or _unannounced(guess, ledger, told):
        return _at(guess, "run", f"{told.label} comes before the answer of turn.start", "EVT-03")
    blame = _at(guess, "connection", f"{told.label} after the end", "FLOW-20")
    named = {name: MACHINES[machine_of(name)].initial for name in told.instances} | guess.world
    for feed, subject in told.feeds:
        with suppress(ImpossibleInputError):
            last = step(named, feed, subject)[1][-1]
            clauses = _card_clauses(named, last) if told.emits == {Emit.TOOL_CARD} else last.row.clauses
            blame = Blame(f"{told.label} has no row here", last.instance, last.row.source.value, clauses)
    return blame


def _unannounced(guess: Guess, ledger: Ledger, told: Told) -> bool:
    """An event of a run that is not known, while a ``turn.start`` waits for its answer."""
    asked = any(each.method == "turn.start" for each in guess.queue)
    return asked and guess.world["run"] in OVER and told.data.get("run_id") not in ledger.runs


_UNFOUNDED: Final[Mapping[tuple[Enum, Enum], tuple[str, ...]]] = {
    **{(ActivityState.NONE, given): ("TC-162",) for given in SHOWS},
    (ActivityState.STARTED, ActivityInput.WORKER_CARD_SUCCESS): ("TC-172", "TC-60"),
    (ActivityState.STARTED, ActivityInput.WORKER_CARD_FAILURE): ("TC-172", "TC-62"),
    (ActivityState.FAILED, ActivityInput.WORKER_CARD_SUCCESS): ("TC-60",),
}
"""What an activity has shown, and a snapshot that contradicts it by a clause."""


def _card_clauses(world: World, last: Move) -> tuple[str, ...]:
    """What excludes a snapshot: where no clause does, the reading of an open point alone."""
    machine, _, label = last.instance.partition(":")
    row = last.row
    if machine == "card":
        return row.clauses if row.source is not CardState.ABSENT else ("TC-OP-14",)
    if machine != "activity":
        return row.clauses
    table, card = MACHINES["card"].table, world.get(f"card:{label}", CardState.ABSENT)
    shown = next(given for taken, given in SHOWS.items() if taken is row.input)
    if card in CARD_FINISHED and table[CardState.RUNNING, shown].dest is not card:
        return ("TC-175", "TC-176", "TC-178")
    return _UNFOUNDED.get((row.source, row.input), ("TC-OP-15",))


def _blame_terminal(guess: Guess, ledger: Ledger, told: Told) -> Blame:
    """Why a run cannot end so: what it says of persistence, what is still open, or who would have cancelled it."""
    for due in REPORTED.values():
        if explain([guess], ledger, replace(told, data={**told.data, "persistence": due})):
            what = f"{told.label} says {told.data.get('persistence')}, where {due} is due"
            return _at(guess, "persistence", what, "EVT-44", "TURN-26", "TURN-27")
    for word in (RunInput.WORKER_COMPLETED, RunInput.WORKER_FAILED, RunInput.WORKER_STOPPED):
        after = take(guess, ("run", word))
        open_still = unmet(after.world, ("run", RunInput.WORKER_GONE)) if after else None
        if open_still is not None:
            return _at(guess, "run", f"{told.label}, while not {open_still.name}", *open_still.clauses)
    return _at(guess, "run", f"{told.label}, but nothing leads there", "EVT-43", "TURN-24", "FLOW-13")


def blame_answer(guess: Guess, ledger: Ledger, told: Told, asked: Asked | None) -> Blame:
    """Why an answer has no row."""
    if asked is None:
        return _at(guess, "connection", f"{told.label}: no line waits for it", "ENV-23", "ENV-24")
    while guess.queue and guess.queue[0] is not asked and asked in guess.queue:
        first = guess.queue[0]
        sound = first.method in (*WORKER_CODES, "turn.start") and obstacle(view(guess, ledger, first)) is None
        read = accept(replace(guess, queue=guess.queue[1:]), first) if sound else None
        if read is None:
            what = f"{told.label} comes before the answer of {first.label}"
            return _at(guess, "connection", what, "ENV-25", "ENV-26", "FLOW-03")
        guess = read
    if asked not in guess.queue:
        late = asked.method == "turn.start" and asked in guess.deferred and not told.code
        return _blame_turn(guess, ledger, told, asked) if late else _blame_worker(guess, told, asked)
    if not LISTENING.passes(guess.world):
        return _at(guess, "connection", f"{told.label} after the connection stopped", *LISTENING.clauses)
    failing = obstacle(view(guess, ledger, asked))
    if not told.code and failing is not None:
        return _check(guess, failing, f"a result, although not {failing.name}", asked)
    own = next((check for check, _ in checks(asked) if check.code == told.code), None)
    if own is not None:
        return _check(guess, own, f"{told.code}, although {own.name}", asked)
    admitted = accept(guess, asked) if asked.method in WORKER_CODES and failing is None else None
    if admitted is not None:
        return _blame_worker(admitted, told, asked)
    admission = admission_of(asked)
    by = admission.clauses if admission else ("D01",)
    return _at(guess, "connection", f"{told.code or 'a result'} is no answer to {asked.label}", *by)


def _blame_turn(guess: Guess, ledger: Ledger, told: Told, asked: Asked) -> Blame:
    """Why a turn cannot have been admitted, of which later lines were answered first."""
    failing = obstacle(view(guess, ledger, asked))
    if failing is not None:
        return _check(guess, failing, f"a result, although not {failing.name}", asked)
    return _at(guess, "run", f"{told.label}, although work was admitted behind it", "SESS-07", "LIST-52", "TURN-15")


def _blame_worker(guess: Guess, told: Told, asked: Asked) -> Blame:
    machine = "connection" if asked is guess.startup else "operation"
    if told.code == "operation_cancelled" and guess.world["operation"] in WORKING:
        return _at(guess, machine, "cancelled, although nothing asked for it", "SHUT-10", "ERR-32")
    if told.code == "startup_cancelled":
        return _at(guess, machine, "cancelled, although nothing asked for it", "SHUT-09", "ERR-21")
    by = "ERR-20" if machine == "connection" else "ERR-01"
    return _at(guess, machine, f"{told.code or 'a result'} is no outcome of {asked.label}", by)


def _ready(guess: Guess, *, attached: bool) -> World:
    """What the result of any session operation or turn says beside its own matter."""
    states: World = {"connection": ConnectionState.READY, "operation": OperationState.IDLE}
    states |= {"run": RunState.FINISHED} if guess.world["run"] in ACTIVE else {}
    lost = attached and guess.world["attachment"] not in HELD
    return states | ({"attachment": AttachmentState.DURABLE} if lost else {})


def _result(guess: Guess, told: Told, asked: Asked) -> World:
    """The states that a result speaks of."""
    durable = told.data.get("durable") is True
    held = AttachmentState.DURABLE if durable else AttachmentState.LAZY
    match asked.method:
        case "initialize":
            return {"connection": ConnectionState.READY}
        case "session.create" | "session.open" | "selection.set":
            return {**_ready(guess, attached=False), "attachment": held, "history": SnapshotState.PAGING}
        case "turn.start":
            return {**_ready(guess, attached=True), "run": RunState.ADMITTED}
        case "turn.cancel":
            return {"run": RunState.CANCELLING_USER} if guess.world["run"] in CANCELLABLE else {}
        case "approval.answer":
            answer = ApprovalState.ALLOWED if asked.params.get("allow") else ApprovalState.DENIED
            return {instance_of("approval", asked): answer}
        case "client.tool.result":
            return {instance_of("client_call", asked): ClientCallState.ACCEPTED}
        case "status" | "operation.cancel" | "shutdown":
            return {}
    machine = SNAPSHOT_OF.get(asked.method)
    paged = SnapshotState.COMPLETE if told.data.get("next_cursor") is None else SnapshotState.PAGING
    return {**_ready(guess, attached=machine == "history"), **({machine: paged} if machine else {})}


def answer_as_told(guess: Guess, told: Told, asked: Asked | None) -> Guess:
    """Go on as if the answer had been right. Lines that it has overtaken wait no longer."""
    if asked is None:
        return guess
    queue, turn = guess.queue, admitting(guess)
    if turn is not None and turn.asked is asked and told.code:
        guess = replace(guess, world=new_run(guess.world))
    guess = replace(
        guess,
        owed=tuple(item for item in guess.owed if item.asked is not asked),
        deferred=tuple(each for each in guess.deferred if each is not asked),
    )
    before = queue[: queue.index(asked)] if asked in queue else ()
    opening = next((each for each in (*before, asked) if each.method == "initialize"), None)
    guess = replace(guess, queue=tuple(each for each in queue if each not in (*before, asked)))
    stops = asked.method == "shutdown" and not told.code
    if stops or told.code in _CLOSING:
        given = ConnectionInput.RECV_SHUTDOWN if stops else ConnectionInput.RECV_PROTOCOL_MISMATCH
        return replace(take(guess, ("connection", given), asked=asked) or guess, owed=guess.owed)
    if told.code:
        failed = asked.method == "initialize" and told.code in STARTUP_CODES
        states: World = {"connection": ConnectionState.FAILED} if failed else {}
        states |= {"operation": OperationState.IDLE} if asked is guess.work else {}
    else:
        states = _result(guess, told, asked)
    world = new_run(guess.world) if states.get("run") is RunState.ADMITTED else guess.world
    startup = guess.startup if told.code else guess.startup or opening
    return replace(guess, world=world | states, startup=startup, work=None if "operation" in states else guess.work)


_CLOSING: Final = frozenset(code for emit, code in CODE_OF.items() if emit.value.startswith("error."))
"""The codes behind which the connection stops."""


def event_as_told(guess: Guess, told: Told, *, begins: bool) -> Guess:
    """Go on as if the event had been right. Nothing is taken from a run that is over, unless a run ``begins`` here."""
    turn = admitting(guess)
    guess = replace(guess, owed=tuple(item for item in guess.owed if item is not turn))
    if begins:
        guess = replace(guess, world=new_run(guess.world) | {"run": RunState.EXECUTING})
    run = guess.world["run"]
    if run in OVER:
        return guess
    if told.emits <= TERMINALS:
        stored = next((state for state, said in REPORTED.items() if said == told.data.get("persistence")), None)
        revised = SnapshotState.PAGING if told.data.get("revision") else SnapshotState.STALE
        ended: World = {"run": RunState.FINISHED, "history": revised}
        ended |= {"persistence": stored} if stored else {}
        return replace(guess, world=guess.world | ended, owed=())
    unstored = guess.world["persistence"] is PersistenceState.UNSTORED
    states: World = {"persistence": PersistenceState.STORED} if unstored else {}
    states |= {"attachment": AttachmentState.DURABLE} if guess.world["attachment"] is AttachmentState.LAZY else {}
    states |= {} if run in CANCELLING else {"run": RunState.EXECUTING}
    for instance in told.names & set(told.instances):
        states[instance] = _dest(instance, told, void=run in CANCELLING)
    return replace(guess, world=guess.world | states)


def _dest(instance: str, told: Told, *, void: bool) -> Enum:
    """Where the event leads its instance; what is asked of a run that is being cancelled is void at once (D87)."""
    machine = machine_of(instance)
    if void and machine in _VOID:
        return _VOID[machine]
    given = next((subject[1] for _, subject in told.feeds if subject is not None), None)
    inputs = [given, *(card for taken, card in SHOWS.items() if taken is given)]  # a card takes what its activity shows
    rows = [row for row in MACHINES[machine].rows if told.emits & set(row.emits)]
    return next((row for row in rows if row.input in inputs), rows[0]).dest


_VOID: Final[Mapping[str, Enum]] = {"approval": ApprovalState.VOID, "client_call": ClientCallState.CANCELLED}
