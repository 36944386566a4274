"""How much memory a history may cost: files near the 64 MiB of REC-36, of every shape, opened by a real child."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.child import Child
from tests.sessions import kit

MIB = 1024 * 1024
Shape = Callable[[kit.House], list[bytes]]


def chunks_of_one_turn(house: kit.House) -> list[bytes]:
    chunk = house.line("s", "assistant_chunk", {"text": "chunk " * 160})
    return [house.line("s", "user_input", {"text": "go"}), *[chunk] * (60 * MIB // len(chunk))]


def many_small_turns(house: kit.House) -> list[bytes]:
    turn = [
        house.line("s", "user_input", {"text": "prompt " * 60}),
        house.line("s", "assistant_output", {"text": "answer " * 60, "usage": None}),
    ]
    return turn * (60 * MIB // sum(map(len, turn)))


def large_tool_results(house: kit.House) -> list[bytes]:
    """What they hold is not shown, so this one is served."""
    call = house.line("s", "tool_call", {"id": "c", "name": "bash", "arguments": {}})
    result = {"tool_name": "bash", "success": True, "content": "x" * 7 * MIB, "metadata": {}}
    return [call, house.line("s", "tool_result", {"call_id": "c", "result": result})] * 8


def one_long_array(house: kit.House) -> list[bytes]:
    """The worst JSON there is for a record's size: each number is an object in memory."""
    return [house.line("s", "tool_applied_preview", {"of": list(range(1_000_000, 1_900_000))})] * 8


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of another process is read from /proc")
@pytest.mark.parametrize(
    ("shape", "code"),
    [
        (chunks_of_one_turn, "history_limit"),
        (many_small_turns, "history_limit"),
        (large_tool_results, None),
        (one_long_array, None),
    ],
)
def test_a_history_of_sixty_mebibytes_within_250_megabytes(shape: Shape, code: str | None, tmp_path: Path) -> None:
    house = kit.House(tmp_path)
    path = house.put("s", *shape(house))
    assert 54 * MIB < path.stat().st_size < 64 * MIB
    with Child(Path(house.root.path), cwd=Path(house.cwd)) as child:
        child.initialize()
        answer: dict[str, Any] = child.call("session.open", session_id="s")
        assert answer.get("error", {}).get("code") == code
        status = Path(f"/proc/{child.process.pid}/status").read_text()
        peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        assert peak * 1024 < 250_000_000
