"""A whole life of request ids in one child: what it holds at the end is what it held at the start."""

import sys
from pathlib import Path

import pytest

from tests.kit.child import Child

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc"),
]


def _held(pid: int) -> tuple[int, int, float]:
    """Open descriptors, threads, resident megabytes."""
    fields = dict(text.split(":", 1) for text in Path(f"/proc/{pid}/status").read_text().splitlines())
    return len(list(Path(f"/proc/{pid}/fd").iterdir())), int(fields["Threads"]), int(fields["VmRSS"].split()[0]) / 1024


def test_4096_requests_with_200_turns(tmp_path: Path) -> None:
    with Child(tmp_path / "home") as child:
        session = (child.initialize(), child.create())[1]
        child.turn(session, "hello")
        used, begin = 3, _held(child.process.pid)
        for turn in range(199):
            finished = child.turn(session, "TOOL" if turn % 2 else f"hello {turn}")[-1]["data"]
            assert finished["outcome"] == "completed"
            page = child.call("history.page", session_id=session, revision=finished["revision"])
            assert page["result"]["entries"]
            used += 2
        while used < 4096:
            child.call("status")
            used += 1
        descriptors, threads, memory = _held(child.process.pid)
        assert descriptors == begin[0]
        assert threads <= begin[1]  # at the start the first turn's worker may still be leaving
        assert memory - begin[2] < 12, (begin[2], memory)
        assert child.call("status")["error"] == {"code": "request_limit"}
        assert (child.rest(), child.wait(), child.stderr()) == (b"", 0, b"")
