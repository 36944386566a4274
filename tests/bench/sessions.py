"""Sessions, each figure beside reading the same bytes with a bare read and decode loop in the same run.

Lists and discoveries go over pipes: figures of a request are the child's, from sending it to having its answer; of a
discovery, those of all its steps. A history is opened and paged in this process, so that the store alone is measured.
"""

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from localagent.sessions import paths
from localagent.sessions.handle import Handle
from localagent.sessions.records import Draft, Pen
from localagent.sessions.store import Store
from tests.kit.child import Child

ROUNDS = 5
TURNS = 500
SETTLED_S = 0.1  # a file that was written a moment ago is hashed, as it may be written again in the same clock tick
WORDS = "The tide table lists four times for Friday, and the harbour office wants them by noon.\n"


@contextmanager
def _place() -> Iterator[tuple[Path, Path]]:
    """An empty home and a working directory."""
    with tempfile.TemporaryDirectory(prefix="localagent-bench-") as folder:
        base = Path(folder).resolve()
        (base / "work").mkdir()
        (base / "home" / "sessions").mkdir(parents=True, mode=0o700)
        (base / "home" / "sessions").chmod(0o700)
        yield base / "home", base / "work"


def _record(number: int, session_id: str, cwd: Path, size: int) -> bytes:
    """One record of about ``size`` bytes: prompts, answers and tool results in turn."""
    text = (WORDS * (size // len(WORDS) + 1))[: max(size - 260, 20)]
    kind, payload = (
        ("user_input", {"origin": "user", "text": text}),
        ("assistant_output", {"text": text, "usage": {"input": 210, "output": 24, "total": 234}}),
        ("tool_result", {"call_id": "c1", "result": {"content": text, "metadata": {}, "success": True,
                                                     "tool_name": "read"}}),
    )[number % 3]  # fmt: skip
    record = {
        "event_id": f"{number + 1:x}",
        "event_type": kind,
        "timestamp": f"2026-03-02T08:{number // 10 % 60:02d}:{number % 10 * 6:02d}.120Z",
        "session_id": session_id,
        "cwd": str(cwd),
        "session_path": str(cwd),
        "payload": payload,
    }
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def fill(home: Path, cwd: Path, sessions: int, size: int, sizes: tuple[int, ...]) -> None:
    """Write ``sessions`` sessions of about ``size`` bytes, their records of ``sizes`` bytes in turn."""
    for number in range(sessions):
        session_id = f"bench-{number:05d}"
        data, count = bytearray(), 0
        while len(data) < size:
            data += _record(count, session_id, cwd, sizes[count % len(sizes)])
            count += 1
        path = home / "sessions" / f"{session_id}.jsonl"
        path.write_bytes(data)
        path.chmod(0o600)


def _bare(home: Path) -> float:
    """Milliseconds of reading every session and decoding every line."""
    begin = time.perf_counter()
    decode = msgspec.json.Decoder().decode
    for entry in os.scandir(home / "sessions"):
        with open(entry.path, "rb", buffering=0) as file:
            for line in file.read().split(b"\n"):
                if line:
                    decode(line)
    return (time.perf_counter() - begin) * 1000


def _median(measure: Callable[[], float]) -> float:
    return statistics.median(measure() for _ in range(ROUNDS))


def _peak(child: Child) -> float:
    """The greatest resident memory of the child so far, in MB; 0 where nobody tells."""
    status = Path(f"/proc/{child.process.pid}/status")
    if not status.exists():
        return 0.0
    return int(next(text for text in status.read_text().splitlines() if text.startswith("VmHWM")).split()[1]) / 1024


def _all_pages(child: Child, method: str) -> tuple[int, int]:
    """Page through to the end: sessions, requests."""
    sessions = requests = 0
    place: dict[str, Any] = {}
    while True:
        page = child.call(method, **place)["result"]
        sessions, requests = sessions + len(page["sessions"]), requests + 1
        if page["complete"]:
            return sessions, requests
        place = {"revision": page["revision"], "cursor": page["next_cursor"]}


def _timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1000


def _list() -> None:
    with _place() as (home, cwd):
        fill(home, cwd, 256, 200 * 1024, (1000, 4000))
        bare = _median(lambda: _bare(home))
        with Child(home, cwd=cwd) as child:
            child.initialize()
            ours = _median(lambda: _timed(lambda: child.call("session.list")["result"]))
            pages = _timed(lambda: _all_pages(child, "session.list"))
            peak = _peak(child)
    print(
        f"list 256 x 200 KiB  bare {bare:7.1f} ms   ours {ours:7.1f} ms   x{ours / bare:.2f}   (goal: 3)   "
        f"all pages {pages:.0f} ms   peak {peak:.1f} MB   (goal: 60)"
    )


def _discover(sessions: int) -> None:
    with _place() as (home, cwd):
        fill(home, cwd, sessions, 2500, (300,))
        bare = _median(lambda: _bare(home))
        with Child(home, cwd=cwd) as child:
            child.initialize("session.discover")
            rounds = ROUNDS if sessions < 10_000 else 1
            taken = []
            for _ in range(rounds):
                taken.append(_timed(lambda: _all_pages(child, "session.discover")))
            ours, (found, steps) = statistics.median(taken), _all_pages(child, "session.discover")
            peak = _peak(child)
    goal = "(goal: 4)   " if sessions == 4_000 else ""
    print(
        f"discover {found:>6}     bare {bare:7.1f} ms   ours {ours:7.1f} ms   x{ours / bare:.2f}   {goal}"
        f"{steps} steps   peak {peak:.1f} MB   (goal: 60)"
    )


def _turn(number: int) -> list[Draft]:
    """A turn of about 15 KB on the disk, as the runner records it: its text once in pieces, and once whole."""
    lines = [f"{number}.{at} {WORDS}" for at in range(77)]
    text = "".join(lines)
    pieces = ["".join(lines[at : at + 42]) for at in range(0, len(lines), 42)]  # of 4,096 bytes at most
    assert max(map(len, pieces)) <= 4096
    return [
        Draft("user_input", {"origin": "user", "text": f"Question {number}: {WORDS}"}),
        *(Draft("assistant_chunk", {"text": piece}) for piece in pieces),
        Draft("assistant_output", {"text": text, "usage": None}),
    ]


def _pages(handle: Handle) -> int:
    revision = handle.revision
    assert revision is not None
    cursor, count = None, 0
    while True:
        page = handle.page(revision, cursor)
        cursor, count = page.next_cursor, count + 1
        if cursor is None:
            return count


def _history() -> None:
    with _place() as (home, cwd):
        root = paths.prepare(str(home))
        pen = Pen("bench", str(cwd), str(cwd))
        records = [draft for number in range(TURNS) for draft in _turn(number)]
        data = b"".join(pen.line(each, pen.payload(each), f"{at:x}", at) for at, each in enumerate(records, 1))
        path = home / "sessions" / "bench.jsonl"
        path.write_bytes(data)
        path.chmod(0o600)
        time.sleep(SETTLED_S)
        opens, pages, bare, count = [], [], [], 0
        for _ in range(3 * ROUNDS):
            bare.append(_bare(home))
            begin = time.perf_counter()
            handle = Store(root, str(cwd)).open("bench")
            opened = time.perf_counter()
            count = _pages(handle)
            pages.append((time.perf_counter() - opened) * 1000)
            opens.append((opened - begin) * 1000)
            handle.release()
    loop, opened, paged = map(statistics.median, (bare, opens, pages))
    print(
        f"open {len(data) / 2**20:.1f} MiB       bare {loop:7.1f} ms   ours {opened:7.1f} ms   x{opened / loop:.2f}   "
        f"(goal: 4)   all {count} pages {paged:.1f} ms   x{paged / opened:.2f} of the open   (goal: 0.5)"
    )


def report() -> None:
    """Print the figures."""
    _history()
    _list()
    _discover(4000)
    _discover(20_000)


if __name__ == "__main__":
    report()
