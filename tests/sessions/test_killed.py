"""kill -9 at each durable step of a repair, and at those steps that no append takes (disk.Step is the table)."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from localagent.protocol.codes import Code
from localagent.sessions import paths
from localagent.sessions.disk import Step
from tests.sessions import test_processes
from tests.sessions.kit import FIRST, House, begun, refusal, shown
from tests.sessions.processes import Child
from tests.sessions.test_processes import MOMENTS, kill_at, reopened

Spawn = Callable[[], Child]
DAMAGED = b'{"torn'
REPAIR = [step for step in Step if step.name.startswith(("SALVAGE", "REPAIR"))]
COMPACT = [step for step in Step if step.name.startswith("COMPACT")]  # test_compaction_killed
ROLL_BACK = [Step.SESSION_TRUNCATE, Step.SESSION_SYNC_BACK, Step.SESSION_REMOVE]


def test_every_step_is_killed_somewhere() -> None:
    there = {*test_processes.WRITE, *test_processes.REPLACE, *test_processes.LEASE}
    there |= {Step.SESSION_CREATE, Step.SESSION_SYNC_DIRECTORY, Step.LEASE_RECOVER}
    assert there | {*REPAIR, *COMPACT, *ROLL_BACK, Step.MAKE_DIRECTORY, Step.LEASE_RENEW} == set(Step)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("step", REPAIR)
def test_killed_in_a_repair(house: House, spawn: Spawn, step: Step, moment: str) -> None:
    """The session is the damaged file or the repaired one, with its copy; another repair brings all records back."""
    handle = begun(house)
    session_id = handle.session_id
    handle.release()
    path = house.file(session_id)
    whole = path.read_bytes()
    path.write_bytes(whole + DAMAGED)
    if step is Step.REPAIR_CLEAR:
        kill_at(spawn(), Step.REPAIR_WRITE, "after", f"repair {session_id}")
    kill_at(spawn(), step, moment, f"repair {session_id}")

    copy = Path(house.root.path) / "salvage" / session_id / "1.bytes"
    renamed = (step, moment) == (Step.REPAIR_RENAME, "after") or step is Step.REPAIR_SYNC_DIRECTORY
    if renamed:
        assert path.read_bytes().startswith(whole + b'{"event_id"')
    else:
        assert path.read_bytes() == whole + DAMAGED
    if copy.exists():
        assert copy.read_bytes() == whole + DAMAGED
    assert copy.exists() or not renamed

    told = spawn().ask(f"repair {session_id}")
    assert told == ("repaired None" if renamed else f"repaired salvage/{session_id}/1.bytes")
    assert copy.read_bytes() == whole + DAMAGED
    assert os.listdir(copy.parent) == ["1.bytes"]
    assert house.names() == {f"{session_id}.jsonl", "event-id-sequence"}
    seen = reopened(house, session_id)
    assert seen == [*FIRST, ("diagnostic", f"Repair set aside {len(DAMAGED)} damaged bytes.", False)]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(
    ("step", "first"), [*((step, True) for step in ROLL_BACK), *((step, False) for step in ROLL_BACK[:2])]
)
def test_killed_while_rolling_back(house: House, spawn: Spawn, step: Step, moment: str, first: bool) -> None:
    """What was not acknowledged may be there or not, but whole."""
    child = spawn()
    session_id = child.ask("create")
    if not first:
        assert child.ask("append 1") == "receipt 1,2,3"
    assert child.ask("fail SESSION_SYNC") == "will fail"
    kill_at(child, step, moment, "append 2")
    batch = [("user", "prompt 2", False), ("assistant", "answer 2", False)]
    before = [] if first else FIRST
    seen = reopened(house, session_id)
    if (step, moment) == (Step.SESSION_TRUNCATE, "before"):
        assert seen == [*before, *batch]
    elif (step, moment) == (Step.SESSION_REMOVE, "after"):
        assert seen == "session_missing"
    else:
        assert seen == before


def test_a_record_torn_by_a_kill_is_brought_back_from_the_command_line(house: House, spawn: Spawn) -> None:
    """A disk that fills up in the middle of a write, a kill before that is taken back, and `repair --apply`."""
    child = spawn()
    session_id = child.ask("create")
    assert child.ask("append 1") == "receipt 1,2,3"
    whole = house.file(session_id).read_bytes()
    assert child.ask(f"limit FSIZE {len(whole) + 400}") == "limited"
    kill_at(child, Step.SESSION_TRUNCATE, "before", "append 2")
    torn = house.file(session_id).read_bytes()
    assert len(torn) == len(whole) + 400
    assert refusal(lambda: house.store().open(session_id)) is Code.SESSION_INVALID
    environ = {**os.environ, "MC_HOME": house.root.path}
    command = [sys.executable, "-m", "localagent", "sessions", "repair", "--apply", session_id]
    assert subprocess.run(command, env=environ, stdout=subprocess.PIPE, check=False).returncode == 0
    kept = torn[: torn.rindex(b"\n") + 1]
    assert house.file(session_id).read_bytes().startswith(kept + b'{"event_id"')
    aside = f"Repair set aside {len(torn) - len(kept)} damaged bytes."
    prompt = [("user", "prompt 2", False)] if b"prompt 2" in kept else []
    end = [("diagnostic", "Turn interrupted", True)] if prompt else []
    assert reopened(house, session_id) == [*FIRST, *prompt, ("diagnostic", aside, False), *end]


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_while_renewing(house: House, spawn: Spawn, moment: str) -> None:
    child = spawn()
    session_id = child.ask("create")
    child.ask("append 1")
    kill_at(child, Step.LEASE_RENEW, moment, "renew")
    assert reopened(house, session_id) == FIRST


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_while_the_root_is_made(house: House, spawn: Spawn, moment: str) -> None:
    new = house.base / "other" / "home"
    kill_at(spawn(), Step.MAKE_DIRECTORY, moment, f"prepare {new}")
    root = paths.prepare(str(new))
    with root.sessions() as directory:
        assert os.listdir(directory) == []
    assert (new / "settings.json").exists()


@pytest.mark.parametrize("repairing", [False, True])
def test_a_repair_waits_for_nobody(house: House, spawn: Spawn, repairing: bool) -> None:
    """While a living process holds the session, or is repairing it, it is busy."""
    path = house.put_bytes("s", DAMAGED)
    one = spawn()
    if repairing:
        assert one.ask("stop REPAIR_WRITE before") == "will stop"
        one.tell("repair s")
        assert one.hear() == "at"
    else:
        path.write_bytes(b"")
        assert one.ask("open s") == "opened"
        path.write_bytes(DAMAGED)
    assert spawn().ask("repair s") == "session_busy"
    assert spawn().ask("open s") == "session_busy"
    assert path.read_bytes() == DAMAGED
    one.kill()
    assert spawn().ask("repair s") == "repaired salvage/s/1.bytes"
    handle = house.store().open("s")
    assert [kind for kind, _, _ in shown(handle)] == ["diagnostic"]
    handle.release()
