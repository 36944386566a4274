"""Whatever is seen, the observer goes on: a peer is free to send anything, a recording to be damaged."""

import random
from typing import Final

from statemachines.observe import Explanation, Observer
from tests.kit.mutations import damaged
from tests.kit.profiles import examples
from tests.observe import test_contents, test_flows, test_order
from tests.observe.traces import Given, Trace, Write

SEED: Final = 1
SHORT: Final = 100


def conversations() -> list[list[Given]]:
    """Every hand-written trace that is not very long."""
    broken = [*(write for *_, write in test_contents.CASES), *(write for *_, write in test_order.CASES)]
    writes: list[Write] = [*test_flows.SOUND.values(), *broken]
    found = []
    for write in writes:
        trace = Trace()
        write(trace)
        found.append(trace.given)
    return [each for each in found if len(each) < SHORT]


def spoil(conversation: list[Given], rng: random.Random) -> list[Given]:
    """Up to three frames damaged, doubled, lost, or preceded by an exit."""
    spoilt = list(conversation)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(spoilt))
        side, value, line = spoilt[at]
        how = rng.random()
        if how < 0.7 and side in ("client", "backend"):
            spoilt[at] = (side, damaged(value, rng), line)
        elif how < 0.8:
            spoilt.insert(rng.randrange(len(spoilt)), spoilt[at])
        elif how < 0.9 and len(spoilt) > 1:
            spoilt.pop(at)
        else:
            spoilt.insert(at, ("exit", rng.choice((0, 1, 2, -9)), line))
    return spoilt


def observe(conversation: list[Given]) -> list[Explanation]:
    observer = Observer()
    told = []
    for side, value, line in conversation:
        match side:
            case "client":
                told.append(observer.client(value, line))
            case "backend":
                told.append(observer.backend(value, line))
            case "closed":
                told.append(observer.client_closed(inside_frame=value))
            case "exit":
                told.append(observer.exited(value))
    return [*told, observer.finish()]


def test_nothing_that_is_seen_stops_the_observer() -> None:
    rng = random.Random(SEED)
    every = conversations()
    for _ in range(examples(600, 30_000)):
        spoilt = spoil(rng.choice(every), rng)
        assert [each.frame for each in observe(spoilt)] == list(range(1, len(spoilt) + 2))
