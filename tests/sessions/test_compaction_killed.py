"""kill -9 at each durable step of a compaction: up to the last rename the old file is the truth, then the new one."""

from collections.abc import Callable

import pytest

from localagent.sessions import inspect
from localagent.sessions.disk import Step
from tests.sessions.compacting import GIST, STEPS, generations, temporaries
from tests.sessions.kit import FIRST, House
from tests.sessions.processes import Child
from tests.sessions.test_processes import BOTH, LEASE, MOMENTS, kill_at, reopened

Spawn = Callable[[], Child]
NAMES = {"event-id-sequence", ".history"}


def attached(spawn: Spawn) -> tuple[Child, str]:
    """A child with a session of two turns."""
    child = spawn()
    session_id = child.ask("create")
    assert child.ask("append 1") == "receipt 1,2,3"
    assert child.ask("append 2") == "receipt 4,5,6"
    return child, session_id


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("step", STEPS)
def test_killed_in_a_compaction(house: House, spawn: Spawn, step: Step, moment: str) -> None:
    """One of the two files stands, whole; no byte is lost; the next compaction clears up and does it."""
    child, session_id = attached(spawn)
    path = house.file(session_id)
    whole = path.read_bytes()
    if step is Step.COMPACT_CLEAR:
        kill_at(child, Step.COMPACT_WRITE, "after", "compact 3")
        child = spawn()
        assert child.ask(f"open {session_id}") == "opened"
    kill_at(child, step, moment, "compact 3")

    renamed = (step, moment) == (Step.COMPACT_RENAME, "after") or step is Step.COMPACT_SYNC_DIRECTORY
    set_aside = generations(house, session_id)
    numbered = {name: text for name, text in set_aside.items() if not name.startswith(".")}
    assert set(numbered.values()) <= {whole}
    if renamed:
        assert set_aside == {"1.jsonl": whole}
        first, rest = path.read_bytes().split(b"\n", 1)
        assert (b'"compaction"' in first, rest) == (True, whole[len(whole) - len(rest) :])
        assert rest.count(b"\n") == 3
    else:
        assert path.read_bytes() == whole
    unknown = [each for each in inspect.strangers(house.root) if "left over" not in each.what]
    assert all("lease" in each.what for each in unknown)

    assert reopened(house, session_id) == ([GIST, *BOTH[2:]] if renamed else BOTH)
    before = path.read_bytes()
    again = spawn()
    assert again.ask(f"open {session_id}") == "opened"
    assert again.ask("compact 3") == f"compacted sessions/.history/{session_id}/{len(numbered) + 1}.jsonl"
    assert again.ask("release") == "released"
    assert temporaries(house) == []
    assert generations(house, session_id) == numbered | {f"{len(numbered) + 1}.jsonl": before}
    assert house.names() == NAMES | {f"{session_id}.jsonl"}
    turn_9 = [("user", "prompt 9", False), ("assistant", "answer 9", False)]
    assert reopened(house, session_id) == [GIST, *turn_9]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("step", LEASE)
def test_killed_at_its_lease(house: House, spawn: Spawn, step: Step, moment: str) -> None:
    """The mark takes the append lease first, so that nothing is done yet."""
    child, session_id = attached(spawn)
    kill_at(child, step, moment, "compact 0")
    assert reopened(house, session_id) == BOTH


def test_killed_right_after_it(house: House, spawn: Spawn) -> None:
    child, session_id = attached(spawn)
    assert child.ask("compact 0").startswith("compacted")
    assert child.ask("append 3") == "receipt 8,9,a"
    child.kill()
    prompt = [("user", "prompt 3", False), ("assistant", "answer 3", False)]
    assert reopened(house, session_id) == [GIST, *prompt]


def test_others_are_kept_out_meanwhile(house: House, spawn: Spawn) -> None:
    child, session_id = attached(spawn)
    assert child.ask("stop COMPACT_RENAME after") == "will stop"
    child.tell("compact 3")
    assert child.hear() == "at"
    other = spawn()
    assert other.ask(f"open {session_id}") == "session_busy"
    assert other.ask(f"repair {session_id}") == "session_busy"
    assert house.lock(f"{session_id}.jsonl").exists()
    child.kill()
    assert other.ask(f"open {session_id}") == "opened"
    assert other.ask("release") == "released"
    assert reopened(house, session_id) == [GIST, *BOTH[len(FIRST) :]]
