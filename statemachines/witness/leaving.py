"""The way out: what may have happened between the last frame and the exit of the process.

Nothing of it shows but the status, so all of it is supposed: the end of an input that nobody recorded, what the pipe
did, the cleanup. Frames that need not be delivered any more may have been emitted there unseen.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from statemachines.admission import LISTENING
from statemachines.connection import LIVE, ConnectionInput, ConnectionState
from statemachines.operation import OperationInput
from statemachines.output import EXIT_STATUS, OutputInput
from statemachines.run import RunInput
from statemachines.step import Feed
from statemachines.witness.facts import obstacle
from statemachines.witness.ledger import Ledger
from statemachines.witness.search import LAST_WORDS, Guess, accept, cheapest, end, take, view

_STATUS: Final[Mapping[Any, int]] = EXIT_STATUS

_WAY_OUT: Final[tuple[Feed, ...]] = (
    *(("output", given) for given in OutputInput if given is not OutputInput.JOINT_CLOSE),
    ("connection", ConnectionInput.WORKER_CLEANED),
    ("connection", ConnectionInput.TIMER_CLEANUP),
)
"""What may happen between the last frame and the exit."""
_UNSEEN: Final[tuple[Feed, ...]] = (
    *(("run", given) for given in (*LAST_WORDS, RunInput.WORKER_GONE)),
    ("operation", OperationInput.WORKER_CANCELLED),
)
"""What may also happen there, unseen, when nothing need be delivered any more (FLOW-10, FLOW-21, FLOW-22)."""


def leave(guesses: Iterable[Guess], ledger: Ledger, status: int) -> list[Guess]:
    """The guesses in which the process has ended with this status."""

    def gone(guess: Guess) -> Guess | None:
        ended = guess.world["connection"] is ConnectionState.CLOSED
        return guess if ended and _STATUS.get(guess.world["output"]) == status else None

    return cheapest(guesses, gone, lambda guess: _read_on(guess, ledger), lambda guess: _ways_out(guess, status == 1))


def _read_on(guess: Guess, ledger: Ledger) -> Iterator[Guess]:
    """Process the first waiting line, whose answer was never seen."""
    if guess.queue:
        asked, base = guess.queue[0], replace(guess, queue=guess.queue[1:])
        listens = LISTENING.passes(guess.world) and not asked.ends
        sound = listens and obstacle(view(guess, ledger, asked)) is None
        read = accept(base, asked) if sound else None if listens else end(base, asked)
        yield replace(read or base, owed=guess.owed)


def _ways_out(guess: Guess, lost: bool) -> Iterator[Guess]:
    if guess.queue:
        return
    if guess.world["connection"] in LIVE:
        ended = take(guess, ("connection", ConnectionInput.EOF_BETWEEN_FRAMES), inferred=True)
        yield from [ended] if ended else []
    for taste, feed in enumerate(_WAY_OUT + (_UNSEEN if guess.ended or lost else ())):
        after = take(guess, feed, inferred=True, taste=taste)
        yield from [replace(after, owed=guess.owed)] if after else []
