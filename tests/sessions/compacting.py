"""Compactions made and given up, and what they leave: for the tests of them."""

import pytest

from localagent.sessions.compaction import Checkpoint, Compacted, Mark
from localagent.sessions.disk import Step
from localagent.sessions.errors import CompactionFailed
from localagent.sessions.handle import Handle
from tests.sessions.kit import House

ERROR = OSError(5, "Input/output error")
GIST = ("compaction", "The gist.", False)
SECOND_TURN = [("user", "prompt 2", False), ("assistant", "answer 2", False)]
STEPS = [step for step in Step if step.name.startswith("COMPACT")]
FAILING = [step for step in STEPS if step is not Step.COMPACT_CLEAR]
PREFERENCES = {"model": "tiny-chat", "provider": "bench", "requested_thinking": "high"}


def checkpoint(mark: Mark, summary: str = "The gist.") -> Checkpoint:
    return Checkpoint(mark, summary, "bench", "tiny-chat")


def compacted(handle: Handle, keep: int = 0) -> Compacted:
    return handle.compact(checkpoint(handle.mark(keep)))


def given_up(handle: Handle, mark: Mark, summary: str = "The gist.") -> str:
    """Why a compaction is given up. Nothing but the old file may then stand."""
    with pytest.raises(CompactionFailed) as caught:
        handle.compact(checkpoint(mark, summary))
    assert not caught.value.replaced
    return str(caught.value)


def generations(house: House, session_id: str) -> dict[str, bytes]:
    """What was set aside, by name."""
    folder = house.sessions / ".history" / session_id
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def live(house: House, handle: Handle) -> bytes:
    return house.file(handle.session_id).read_bytes()


def temporaries(house: House) -> list[str]:
    return [path.name for path in house.sessions.rglob("*compact-*")]
