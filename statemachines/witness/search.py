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
from typing import Any, Final

from statemachines.admission import ASSUMED, BEGINS_RUN, LISTENING, METHODS, Check
from statemachines.approval import ApprovalInput
from statemachines.channel import ChannelInput
from statemachines.client_call import REASONS, ClientCallInput
from statemachines.connection import ConnectionInput, ConnectionState
from statemachines.persistence import REPORTED, PersistenceState
from statemachines.registry import MACHINES
from statemachines.rows import KINDS, TERMINALS, Emit, Kind, Scope
from statemachines.run import FINISHING, OVER, RunInput
from statemachines.step import Feed, ImpossibleInputError, Move, World, machine_of, step
from statemachines.witness.facts import Refusal, checks, grounds_of, instance_of, obstacle, refusable, refusals
from statemachines.witness.frames import CODE_OF, Told, startup_feeds, work_feeds
from statemachines.witness.ledger import Asked, Ledger
from statemachines.witness.owed import LATE, LATE_METHODS, Owed, fits, may_pass, names_of, refusal
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
"""What may happen in a run without any frame. Timers come on top, workers' answers always show."""
_LOST_APPEND: Final[Feed] = ("run", RunInput.WORKER_APPEND_FAILED)
"""It need not be told by a ``diagnostic``: how a warning is given is said, not that there is one (EVT-41, TURN-27)."""

_FAULTY: Final = frozenset({RunInput.JOINT_GONE, RunInput.JOINT_UNDELIVERABLE, RunInput.JOINT_UNSTORED})

_DEGRADED: Final = REPORTED[PersistenceState.DEGRADED]
_REASONS: Final[Mapping[Any, str]] = REASONS

_STARTUP_ANSWERS: Final = frozenset({Emit.INITIALIZE_RESULT, Emit.INITIALIZE_ERROR, Emit.INITIALIZE_CANCELLED})
_WORK_ANSWERS: Final = frozenset({Emit.OPERATION_RESULT, Emit.OPERATION_ERROR, Emit.OPERATION_CANCELLED})


@dataclass(frozen=True, slots=True)
class Step:
    """A row that was taken: by which instance, on what input; ``inferred`` when no frame shows it."""

    instance: str
    source: Enum
    input: Enum
    dest: Enum
    clauses: tuple[str, ...]
    inferred: bool


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


def seen(guess: Guess, told: Told) -> Guess | None:
    """The guess without the owed frame that was seen; None when the frame is not owed."""
    for i, item in enumerate(guess.owed):
        if fits(item, told, guess.world) and all(may_pass(earlier, item) for earlier in guess.owed[:i]):
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


def admitting(guess: Guess) -> Owed | None:
    """The answer of a ``turn.start`` that others have overtaken: its turn is still being admitted (LIST-52)."""
    return next((item for item in guess.owed if item.emit is Emit.TURN_START_RESULT), None)


def new_run(world: World) -> World:
    """What lives as long as a run begins anew; named instances are gone until they are named again."""
    return {
        name: MACHINES[name].initial if MACHINES[machine_of(name)].scope is Scope.RUN else state
        for name, state in world.items()
        if ":" not in name
    }


def process(guess: Guess, ledger: Ledger, told: Told) -> Iterator[Guess]:
    """Process the first waiting line in every way that may lead to the frame."""
    if not guess.queue or (told.answers and any(item.emit in LATE for item in guess.owed)):
        return  # an answer that is given at once comes before those of later lines
    asked, base = guess.queue[0], replace(guess, queue=guess.queue[1:])
    mine = told.answers and bool(told.names & names_of(asked, told.code))
    if asked.ends or not LISTENING.passes(guess.world):
        if asked.ends == "inside" and told.code == "incomplete_frame" and not LISTENING.passes(guess.world):
            yield replace(base, owed=(*base.owed, refusal(asked, told.code)))  # allowed behind shutdown (D46)
        passed = end(base, asked)
        yield from [replace(passed, cost=passed.cost + bool(asked.ends))] if passed else []
        return
    here = view(guess, ledger, asked)
    starts, works, late = asked.method == "turn.start", asked.method in WORKER_CODES, asked.method in LATE_METHODS
    ahead = starts and told.answers and not mine  # it is read and admitted; no event may come before it is told
    if (works or late or ahead or (mine and not told.code)) and obstacle(here) is None:
        admitted = accept(base, asked)
        if admitted is not None:
            ends = told.emits <= TERMINALS  # either may come first when the run ends by itself (BASE-OP-181)
            yield replace(admitted, cost=admitted.cost + ((late or ahead) and not mine and not ends))
    if not mine and (starts or (works and refusable(here))):  # its refusal, too, may come later (ENV-25, ENV-26)
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
        yield replace(guess, owed=(*guess.owed, refusal(here.asked, told.code)))


def _named(guess: Guess, ledger: Ledger, told: Told) -> Iterator[Guess]:
    """The inputs that the frame itself names, as far as they emit it; a refusal that comes late."""
    for asked in guess.deferred if told.code else ():
        if told.names & names_of(asked, told.code):
            yield from _refuse(guess, view(guess, ledger, asked), told)
    turn = admitting(guess) if told.code else None
    if turn is not None and turn.asked is not None and told.names & turn.names:  # its preflight has refused it
        without = replace(
            guess, world=new_run(guess.world), owed=tuple(each for each in guess.owed if each is not turn)
        )
        yield from _refuse(without, view(without, ledger, turn.asked), told)
    feeds = told.feeds
    if told.answers and guess.work and told.names & names_of(guess.work):
        feeds = work_feeds(guess.work, told)
    elif told.answers and guess.startup and guess.world["connection"] is ConnectionState.STARTING:
        feeds = startup_feeds(told)
    for feed, subject in feeds:
        gate = _draining(guess, feed)
        after = take(guess, gate, subject)
        if after is not None and seen(after, told) is not None:
            given = (subject or feed)[1]
            unlike = given in REASONS and told.data.get("reason") != _REASONS[given]
            yield replace(_kept(guess, after, ledger, told), cost=after.cost + unlike + (gate is not feed))


def _draining(guess: Guess, feed: Feed) -> Feed:
    """The gate of an event. Deltas still on their way may pass a run that is finishing (EVT-04, BASE-OP-158)."""
    late = feed[1] is RunInput.WORKER_DELTA and guess.world["run"] in FINISHING[:3]
    return ("run", RunInput.WORKER_REPORT) if late else feed


def _kept(guess: Guess, after: Guess, ledger: Ledger, told: Told) -> Guess:
    """The guess after a frame, without what our tables move and the contract need not: one state stays as it was."""
    name = ""
    if told.emits == {Emit.MESSAGE_DELTA} and not str(told.data.get("text")).strip():
        name = next(iter(told.names))  # white space owes no reconciliation (D62, D74)
    elif guess.work and guess.work.method == "session.open" and guess.work.name("session_id") == ledger.session:
        name = "list"  # it may be the same attachment, or another one (D102)
    if after.world.get(name) is guess.world.get(name):
        return after
    moved = tuple(each for each in after.steps if each.instance != name)
    return replace(after, world=after.world | {name: guess.world[name]}, steps=moved)


def _supposed(guess: Guess, told: Told) -> Iterator[Guess]:
    """Inputs that no frame shows, as far as they emit nothing that must be seen, or this frame."""
    timed = {"approval.answer": ("approval", ApprovalInput.TIMER_EXPIRED),
             "client.tool.result": ("client_call", ClientCallInput.TIMER_EXPIRED)}  # fmt: skip
    timers = ((instance_of(timed[each.method][0], each), timed[each.method][1])
              for each in guess.queue if each.method in timed)  # fmt: skip
    feeds: list[Feed] = [(name, given) for name, given in timers if name in guess.world]
    feeds += _HIDDEN if guess.world["run"] not in OVER else ()
    feeds += [_LOST_APPEND] if told.emits <= TERMINALS and told.data.get("persistence") == _DEGRADED else []
    for taste, feed in enumerate(feeds):
        after = take(guess, feed, inferred=True, taste=taste)
        if after is None:
            continue
        after = replace(after, owed=guess.owed) if feed is _LOST_APPEND else after
        more = after.owed[len(guess.owed) :]
        if all(item.emit is Emit.CLIENT_TOOL_CANCEL for item in more) or seen(after, told) is not None:
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
