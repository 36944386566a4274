"""Whole processes over pipes, beside the bare loop of :mod:`.bare`, which is started and measured in the same run."""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kit.child import Child, line

ROUNDS = 5
BARE = (sys.executable, "-m", "tests.bench.bare")


@contextmanager
def _home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="localagent-bench-") as folder:
        yield Path(folder, "home")


def _median(measure: Callable[[], float]) -> float:
    return statistics.median(measure() for _ in range(ROUNDS))


def _round_trips(child: Child, count: int = 2000) -> list[float]:
    """Milliseconds of status round trips, one after the other."""
    taken = []
    for number in range(count):
        begin = time.perf_counter()
        child.send(line(f"s{number}", "status"))
        child.frame()
        taken.append((time.perf_counter() - begin) * 1000)
    return taken


def _first_answer(program: tuple[str, ...], arguments: tuple[str, ...]) -> float:
    """Milliseconds from start to the first answer, in an empty home."""
    with _home() as home:
        begin = time.perf_counter()
        with Child(home, program=program, arguments=arguments, cwd=Path.cwd()) as child:
            child.send(line("r1", "status"))
            child.frame()
            return (time.perf_counter() - begin) * 1000


OURS = (sys.executable, "-m", "localagent")
SERVE = ("serve", "--stdio")


def _ready() -> float:
    """Milliseconds from start to the answer of initialize, in an empty home."""
    with _home() as home:
        begin = time.perf_counter()
        with Child(home) as child:
            child.initialize()
            return (time.perf_counter() - begin) * 1000


def _steady() -> tuple[float, float, float]:
    """Status round trips of ours and of the bare loop (medians, ms), and the resident memory of ours (MB)."""
    with _home() as home, Child(home) as child:
        child.initialize()
        ours = statistics.median(_round_trips(child))
        status = Path(f"/proc/{child.process.pid}/status")
        memory = 0.0
        if status.exists():
            resident = next(text for text in status.read_text().splitlines() if text.startswith("VmRSS"))
            memory = int(resident.split()[1]) / 1024
        with Child(home, program=BARE, arguments=(), cwd=Path.cwd()) as other:
            bare = statistics.median(_round_trips(other))
    return ours, bare, memory


def _create() -> float:
    with _home() as home, Child(home) as child:
        child.initialize()
        taken = []
        for _ in range(20):
            begin = time.perf_counter()
            child.create()
            taken.append((time.perf_counter() - begin) * 1000)
    return statistics.median(taken)


def _while_computing() -> tuple[float, float]:
    """Median and 99th percentile of status round trips while a worker computes (ms)."""
    with _home() as home, Child(home) as child:
        session = (child.initialize(), child.create())[1]
        child.ask("turn.start", session_id=session, prompt="COMPUTE")
        child.frames_until("input.persisted")
        taken, number, done = [], 0, False
        while not done and number < 4000:  # a child answers 4,096 requests
            begin = time.perf_counter()
            child.send(line(f"s{number}", "status"))
            frames = child.frames_until(f"s{number}")
            taken.append((time.perf_counter() - begin) * 1000)
            done = any(frame.get("event") == "run.finished" for frame in frames)
            number += 1
    return statistics.median(taken), statistics.quantiles(taken, n=100)[98]


def _script(home: Path, *steps: dict[str, Any]) -> None:
    """Have the embedded provider play these steps."""
    home.mkdir()
    script = home / "script.json"
    script.write_text(json.dumps({"version": 1, "rules": [{"steps": list(steps)}]}))
    settings = {"schema_version": 2, "localagent": {"runner": "scripted", "script": str(script)}}
    (home / "settings.json").write_text(json.dumps(settings))


def _paced() -> tuple[int, float, int]:
    """5,000 deltas of 40 bytes, 2,000 a second: deltas received, their 99th percentile of lateness, bytes missing.

    The runner begins each piece with the moment (ms, monotonic); both processes read the same clock.
    """
    with _home() as home:
        _script(home, {"do": "flood", "bytes": 200_000, "piece": 40, "pause_ms": 0.5, "stamp": True})
        with Child(home) as child:
            session = (child.initialize(), child.create())[1]
            child.ask("turn.start", session_id=session, prompt="go")
            late, text, whole = [], "", ""
            while True:
                frame = child.frame()
                now = time.monotonic() * 1000
                if frame.get("event") == "message.delta":
                    text += frame["data"]["text"]
                    late += [now - float(stamp) for stamp in frame["data"]["text"].split() if stamp[0].isdigit()]
                elif frame.get("event") == "message.reconcile":
                    whole += frame["data"]["text"]
                elif frame.get("event") == "run.finished":
                    break
    return len(late), statistics.quantiles(late, n=100)[98], len(whole) - len(text)


def _flood() -> tuple[float, int, int]:
    """8 MiB, store included: MB/s to the last reconciliation, bytes delivered as deltas, deltas received."""
    with _home() as home, Child(home) as child:
        session = (child.initialize(), child.create())[1]
        begin = time.perf_counter()
        frames = child.turn(session, "FLOOD")
        seconds = time.perf_counter() - begin
        texts = [frame["data"]["text"] for frame in frames if frame.get("event") == "message.delta"]
        whole = sum(len(frame["data"]["text"]) for frame in frames if frame.get("event") == "message.reconcile")
    return whole / seconds / 1e6, sum(map(len, texts)), len(texts)


def _bare_flood() -> float:
    with _home() as home, Child(home, program=BARE, arguments=("flood",), cwd=Path.cwd()) as child:
        begin = time.perf_counter()
        child.send(b"go\n")
        size = len(child.rest())
        return size / (time.perf_counter() - begin) / 1e6


def report() -> None:
    """Print the figures."""
    ours, bare, memory = _steady()
    print(f"status round trip   bare {bare:7.3f} ms   ours {ours:7.3f} ms   x{ours / bare:.2f}   (goal: 2.5)")
    first = _median(lambda: _first_answer(OURS, SERVE))
    least = _median(lambda: _first_answer(BARE, ()))
    print(f"first answer        bare {least:7.1f} ms   ours {first:7.1f} ms   x{first / least:.2f}   (goal: 2.5)")
    print(f"ready, empty home   {_median(_ready):7.1f} ms   (goal: 150)")
    print(f"resident memory     {memory:7.1f} MB   (goal: 40)")
    print(f"session.create      {_median(_create):7.2f} ms   (goal: 2)")
    middle, high = _while_computing()
    print(f"status, computing   {middle:7.2f} ms   p99 {high:.2f} ms   (goal: p99 2)")
    count, late, missing = _paced()
    print(f"paced turn          p99 {late:6.2f} ms   {count} stamps of 5,000, {missing} bytes missing   (goal: p99 5)")
    pace, shown, deltas = _flood()
    print(
        f"flood 8 MiB         {pace:7.1f} MB/s   bare {_bare_flood():.1f} MB/s   "
        f"deltas: {deltas} with {shown:,} bytes   (goal: 20 MB/s)"
    )
