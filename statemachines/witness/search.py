"""The search: from a guess at the hidden states to those in which a frame makes sense.

A guess is a world, the lines not processed yet, and the frames that rows have emitted but that were not seen yet. A
move of the search feeds one input by the plain reading of the tables (:mod:`statemachines.step`), or processes the
first waiting line. The cheapest ways are found: a supposed input costs 1, one that speaks of a fault (a worker that
departs in silence, an event that could not be delivered) 2 more, what a frame names costs nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, NamedTuple

from statemachines.admission import ASSUMED, BEGINS_RUN, LISTENING, METHODS, Check
from statemachines.approval import ApprovalInput
from statemachines.channel import ChannelInput
from statemachines.client_call import REASONS
from statemachines.connection import ConnectionInput, ConnectionState
from statemachines.persistence import REPORTED
from statemachines.registry import MACHINES
from statemachines.rows import KINDS, TERMINALS, Emit, Kind, Row, Scope
from statemachines.run import FINISHING, OVER, RunInput, RunState
from statemachines.step import Feed, ImpossibleInputError, Move, World, machine_of, step
from statemachines.witness.facts import Refusal, checks, grounds_of, instance_of, obstacle, refusable, refusals
from statemachines.witness.frames import CODE_OF, Told, startup_feeds, work_feeds
from statemachines.witness.ledger import Asked, Ledger
from statemachines.witness.shapes import WORKER_CODES
from statemachines.witness.view import View

MOST: Final = 8
"""Guesses kept at once."""
_PATIENCE: Final = 10
"""What a search may cost."""

LAST_WORDS: Final = (
    RunInput.WORKER_FAILED,
    RunInput.WORKER_STOPPED,
    RunInput.WORKER_COMPLETED,
    RunInput.WORKER_INPUT_FAILED,
)
"""What a runner may say last, the likeliest first."""
_HIDDEN: Final[tuple[Feed, ...]] = (
    ("channel", ChannelInput.WORKER_WAITS),
    ("channel", ChannelInput.WORKER_UNDELIVERABLE),
    *(("run", given) for given in LAST_WORDS),
)
"""What may happen in a run without any frame. Timers of approvals come on top, workers' answers always show."""

_FAULTY: Final = frozenset({RunInput.JOINT_GONE, RunInput.JOINT_UNDELIVERABLE, RunInput.JOINT_UNSTORED})

LATE: Final = frozenset({Emit.SHUTDOWN_RESULT, Emit.OPERATION_CANCEL_RESULT, Emit.TURN_CANCEL_RESULT})
"""Answers that what they cause may overtake: BASE-OP-60, D44, EXT-OP-25; for ``turn.cancel`` see ``_may_pass``."""
_LATE_METHODS: Final = frozenset({"shutdown", "operation.cancel", "turn.cancel"})

_STARTUP_ANSWERS: Final = frozenset({Emit.INITIALIZE_RESULT, Emit.INITIALIZE_ERROR, Emit.INITIALIZE_CANCELLED})
_WORK_ANSWERS: Final = frozenset({Emit.OPERATION_RESULT, Emit.OPERATION_ERROR, Emit.OPERATION_CANCELLED})

_REASONS: Final[Mapping[Any, str]] = REASONS
_STORED: Final[Mapping[Any, str]] = REPORTED


@dataclass(frozen=True, slots=True)
class Step:
    """A row that was taken: by which instance, on what input; ``inferred`` when no frame shows it."""

    instance: str
    source: Enum
    input: Enum
    dest: Enum
    clauses: tuple[str, ...]
    inferred: bool


class Owed(NamedTuple):
    """A frame that must still be seen: an emit of a row, or a refusal (no emit)."""

    emit: Emit | None
    names: frozenset[str]
    codes: frozenset[str]
    row: Row | None
    asked: Asked | None


@dataclass(frozen=True, slots=True)
class Guess:
    """One way the hidden states may stand."""

    world: World
    queue: tuple[Asked, ...] = ()
    """Lines of the client that were not processed yet."""
    owed: tuple[Owed, ...] = ()
    deferred: tuple[Asked, ...] = ()
    """Asynchronous requests that were read and refused; the refusal was not seen yet."""
    startup: Asked | None = None
    """The ``initialize`` that was admitted."""
    work: Asked | None = None
    """The request of the session worker."""
    ended: bool = False
    """The end of input was read."""
    cost: int = 0
    taste: int = 0
    """Of two guesses that cost the same the plainer one is told first."""
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    grounds: tuple[str, ...] = ()
    """The clauses of a refusal whose ground frames show."""

    @property
    def key(self) -> object:
        """Equal for guesses that differ in their past only."""
        jobs = self.queue, self.owed, self.deferred, self.startup, self.work
        return frozenset(self.world.items()), jobs, self.ended


def view(guess: Guess, ledger: Ledger, asked: Asked) -> View:
    """What facts may look at."""
    return View(ledger, guess.world, asked, startup=guess.startup, work=guess.work)


_FAULTY_LINE: Final = frozenset({"invalid_frame", "invalid_request", "frame_too_large", "protocol_mismatch"})


def names_of(asked: Asked, code: str = "") -> frozenset[str]:
    """The ids an answer may bear: its own; null, or an echo, for a faulty line (D08, BASE-OP-27, BASE-OP-33)."""
    if not asked.formed:
        return frozenset({"", str(asked.frame.get("id", ""))})
    return frozenset({asked.id, ""} if code in _FAULTY_LINE else {asked.id})


def unmet(world: World, feed: Feed) -> Check | None:
    """The promise of the shell (``admission.ASSUMED``) that the input would break now."""
    instance, given = feed
    for each in ASSUMED:
        if each.machine == machine_of(instance) and each.input is given and world[instance] in each.sources:
            return next((check for check in each.checks if not _holds(check, world)), None)
    return None


def _holds(check: Check, world: World) -> bool:
    allowed = dict(check.allowed)
    return all(state in allowed.get(machine_of(name), (state,)) for name, state in world.items())


def take(
    guess: Guess,
    feed: Feed,
    subject: Feed | None = None,
    *,
    asked: Asked | None = None,
    inferred: bool = False,
    taste: int = 0,
) -> Guess | None:
    """Feed one input; None where the tables or the shell's promises exclude it."""
    if unmet(guess.world, feed) is not None:
        return None
    try:
        world, moves = step(guess.world, feed, subject)
    except ImpossibleInputError:
        return None
    shown = [move for i, move in enumerate(moves) if not move.row.ignores or (inferred and i == 0)] or moves[:1]
    emitted = [(emit, move) for move in moves for emit in move.row.emits if KINDS[emit] is not Kind.COMMAND]
    faulty = [move.row for move in moves if move.row.input in _FAULTY]
    return replace(
        guess,
        world=world,
        owed=(*guess.owed, *(_owe(emit, move, guess, asked) for emit, move in emitted)),
        work=None if any(emit in _WORK_ANSWERS for emit, _ in emitted) else guess.work,
        ended=guess.ended or feed[1].name.startswith("EOF_"),
        cost=guess.cost + inferred + 2 * bool(faulty),
        taste=guess.taste + taste + sum(row.source in FINISHING for row in faulty),
        steps=(*guess.steps, *(_step(move, inferred) for move in shown)),
    )


def _step(move: Move, inferred: bool) -> Step:
    return Step(move.instance, move.row.source, move.row.input, move.row.dest, move.row.clauses, inferred)


def _owe(emit: Emit, move: Move, guess: Guess, asked: Asked | None) -> Owed:
    if KINDS[emit] is Kind.EVENT:
        return Owed(emit, frozenset({move.instance}), frozenset(), move.row, None)
    who = guess.startup if emit in _STARTUP_ANSWERS else guess.work if emit in _WORK_ANSWERS else asked
    names = names_of(who, CODE_OF.get(emit, "")) if who else frozenset({""})
    if emit in CODE_OF:
        return Owed(emit, names, frozenset({CODE_OF[emit]}), move.row, who)
    failed = emit in (Emit.INITIALIZE_ERROR, Emit.OPERATION_ERROR)
    return Owed(emit, names, WORKER_CODES[who.method] if failed and who else frozenset(), move.row, who)


def fits(item: Owed, told: Told, world: World) -> bool:
    """Whether the frame is the one that is owed. ``run.finished`` also tells the persistence, a cancel its reason."""
    if not item.names & told.names:
        return False
    if item.emit is Emit.INITIALIZE_CANCELLED and told.kind == "result":
        return True  # a startup that was ready before it saw the stop (BASE-OP-61)
    if told.code or item.codes:
        return told.code in item.codes and (item.emit is None or item.emit in told.emits)
    if item.emit not in told.emits or item.row is None:
        return False
    if item.emit in TERMINALS:
        given_up = item.row.source is RunState.FINISHING_UNDELIVERABLE
        stored = told.data.get("persistence") == _STORED[world["persistence"]]
        return stored and (not given_up or told.data.get("error_code") == "output_unavailable")
    return item.emit is not Emit.CLIENT_TOOL_CANCEL or told.data.get("reason") == _REASONS[item.row.input]


def _may_pass(earlier: Owed, item: Owed) -> bool:
    """Whether a frame may come before one that was owed earlier."""
    if earlier.emit in LATE:  # a cancelled run's terminal never precedes the acknowledgement (BASE-OP-181)
        return (earlier.emit, item.emit) != (Emit.TURN_CANCEL_RESULT, Emit.RUN_CANCELLED)
    if earlier.emit is Emit.CLIENT_TOOL_CANCEL:  # only the terminal must wait for it (CT-OP-23)
        return item.emit not in TERMINALS
    return Emit.INITIALIZE_CANCELLED in (earlier.emit, item.emit)  # as with shutdown, in either order (D44)


def seen(guess: Guess, told: Told) -> Guess | None:
    """The guess without the owed frame that was seen; None when the frame is not owed."""
    for i, item in enumerate(guess.owed):
        if fits(item, told, guess.world) and all(_may_pass(earlier, item) for earlier in guess.owed[:i]):
            return replace(guess, owed=guess.owed[:i] + guess.owed[i + 1 :])
    return None


def accept(guess: Guess, asked: Asked) -> Guess | None:
    """Admit a request of a known method: what it fires, without asking the checks."""
    admission = METHODS[asked.method]
    given = admission.choices[0] if asked.params.get("allow", True) else admission.choices[-1]
    world = new_run(guess.world) if given.input is BEGINS_RUN else guess.world
    brings = (admission.brings.machine, admission.brings.input) if admission.brings else None
    if given.input is ConnectionInput.RECV_INITIALIZE:
        guess = replace(guess, startup=asked)
    elif asked.method in WORKER_CODES:
        guess = replace(guess, work=asked)
    return take(replace(guess, world=world), (instance_of(given.machine, asked), given.input), brings, asked=asked)


def new_run(world: World) -> World:
    """What lives as long as a run begins anew; named instances are gone until they are named again."""
    return {
        name: MACHINES[name].initial if MACHINES[machine_of(name)].scope is Scope.RUN else state
        for name, state in world.items()
        if ":" not in name
    }


def process(guess: Guess, ledger: Ledger, told: Told) -> Iterator[Guess]:
    """Process the first waiting line in every way that may lead to the frame."""
    if not guess.queue or any(item.emit in LATE for item in guess.owed):
        return  # an answer that is given at once comes before those of later lines
    asked, base = guess.queue[0], replace(guess, queue=guess.queue[1:])
    mine = told.answers and bool(told.names & names_of(asked, told.code))
    if asked.ends or not LISTENING.passes(guess.world):
        if asked.ends == "inside" and told.code == "incomplete_frame" and not LISTENING.passes(guess.world):
            yield replace(base, owed=(*base.owed, _refusal(asked, told.code)))  # allowed behind shutdown (D46)
        passed = end(base, asked)
        yield from [replace(passed, cost=passed.cost + bool(asked.ends))] if passed else []
        return
    here = view(guess, ledger, asked)
    at_once, late = asked.method not in WORKER_CODES, asked.method in _LATE_METHODS
    if (not at_once or late or (mine and not told.code)) and obstacle(here) is None:
        admitted = accept(base, asked)
        if admitted is not None:
            ends = told.emits <= TERMINALS  # either may come first when the run ends by itself (BASE-OP-181)
            yield replace(admitted, cost=admitted.cost + (late and not mine and not ends))
    if not at_once and not mine and refusable(here):  # its refusal, too, may come later (ENV-25, ENV-26)
        yield replace(base, deferred=(*base.deferred, asked), cost=base.cost + 2)
    if mine and told.code:
        yield from _refuse(base, here, told)


def end(guess: Guess, asked: Asked) -> Guess | None:
    """Read the end of input, or a line that nobody listens to any more."""
    given = {
        "between": ConnectionInput.EOF_BETWEEN_FRAMES,
        "inside": ConnectionInput.EOF_INSIDE_FRAME,
        "": ConnectionInput.RECV_DISCARDED,
    }[asked.ends]
    return take(guess, ("connection", given), asked=asked)


def _refusal(asked: Asked, code: str) -> Owed:
    return Owed(None, names_of(asked, code), frozenset({code}), None, asked)


def _refuse(guess: Guess, here: View, told: Told) -> Iterator[Guess]:
    """Refuse the line with the code that was told, on the best ground there is."""
    ground = next(refusals(here, told.code), None)
    if ground is None and here.asked in guess.deferred:  # the states have moved on since it was read
        ground = next((Refusal(f"not {check.name}, then", check.clauses, False)
                       for check, _ in checks(here.asked) if check.code == told.code), None)  # fmt: skip
    if ground is None:
        return
    guess = replace(guess, deferred=tuple(each for each in guess.deferred if each is not here.asked))
    unsure = "" if ground.certain else "; frames do not show it, the backend's word is taken"
    notes = (*guess.notes, f"refused: {ground.why} ({' '.join(ground.clauses)}){unsure}")
    guess = replace(guess, notes=notes, grounds=grounds_of(here.asked, ground))
    if ground.fires is not None:
        closed = take(guess, (ground.fires.machine, ground.fires.input), asked=here.asked)
        yield from [closed] if closed else []
    else:
        yield replace(guess, owed=(*guess.owed, _refusal(here.asked, told.code)))


def _named(guess: Guess, ledger: Ledger, told: Told) -> Iterator[Guess]:
    """The inputs that the frame itself names, as far as they emit it; a refusal that comes late."""
    for asked in guess.deferred if told.code else ():
        if told.names & names_of(asked, told.code):
            yield from _refuse(guess, view(guess, ledger, asked), told)
    feeds = told.feeds
    if told.answers and guess.work and told.names & names_of(guess.work):
        feeds = work_feeds(guess.work, told)
    elif told.answers and guess.startup and guess.world["connection"] is ConnectionState.STARTING:
        feeds = startup_feeds(told)
    for feed, subject in feeds:
        after = take(guess, feed, subject)
        if after is not None and seen(after, told) is not None:
            yield after


def _supposed(guess: Guess, told: Told) -> Iterator[Guess]:
    """Inputs that no frame shows, as far as they emit nothing, or this frame."""
    asked = (instance_of("approval", each) for each in guess.queue if each.method == "approval.answer")
    feeds: list[Feed] = [(name, ApprovalInput.TIMER_EXPIRED) for name in asked if name in guess.world]
    feeds += _HIDDEN if guess.world["run"] not in OVER else ()
    for taste, feed in enumerate(feeds):
        after = take(guess, feed, inferred=True, taste=taste)
        if after is not None and (len(after.owed) == len(guess.owed) or seen(after, told) is not None):
            yield after


Moves = Callable[[Guess], Iterator[Guess]]


def explain(guesses: Iterable[Guess], ledger: Ledger, told: Told) -> list[Guess]:
    """The guesses after the frame, the likeliest first; none when no row explains it."""

    def shown(guess: Guess) -> Iterator[Guess]:
        yield from _named(guess, ledger, told)
        yield from process(guess, ledger, told)

    named = {name: MACHINES[machine_of(name)].initial for name in told.instances}
    starts = (replace(guess, world=named | guess.world) for guess in guesses)
    return cheapest(starts, lambda guess: seen(guess, told), shown, lambda guess: _supposed(guess, told))


def cheapest(
    starts: Iterable[Guess], goal: Callable[[Guess], Guess | None], shown: Moves, supposed: Moves
) -> list[Guess]:
    """From each start the cheapest ways to the goal; of all of them the cheapest :data:`MOST`."""
    ways = (guess for start in starts for guess in _ways(start, goal, shown, supposed))
    found = sorted(ways, key=lambda guess: (guess.cost, guess.taste))
    if len(found) < 2:
        return found
    distinct = {guess.key: guess for guess in reversed(found)}
    return sorted(distinct.values(), key=found.index)[:MOST]


def _ways(start: Guess, goal: Callable[[Guess], Guess | None], shown: Moves, supposed: Moves) -> Iterator[Guess]:
    """Cheapest first. A guess is expanded twice: by what frames show, and later, for 1 more, by what they do not."""
    order = count()
    heap = [(start.cost, start.taste, next(order), start, False)]
    visited: set[object] = set()
    limit = start.cost + _PATIENCE
    while heap:
        cost, _, _, now, expanded = heappop(heap)
        if cost > limit:
            return
        if expanded:
            for after in supposed(now):
                heappush(heap, (after.cost, after.taste, next(order), after, False))
            continue
        there = goal(now)
        if there is not None:
            limit = cost
            yield there
            continue
        key = None if now is start else now.key  # keys are dear, and mostly the start is all there is
        if key not in visited:
            visited.add(key)
            for after in shown(now):
                heappush(heap, (after.cost, after.taste, next(order), after, False))
            heappush(heap, (cost + 1, now.taste, next(order), now, True))
