"""The driver on small children that do what children should not."""

import gc
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EMFILE
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from localagent.conformance import driver, processes, pump
from localagent.conformance.driver import Child
from localagent.conformance.model import Record
from localagent.conformance.place import Place, difference
from localagent.conformance.steps import STREAMS

PATIENCE = 20.0
linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc")


@contextmanager
def child(program: str, keep: int = 1 << 26) -> Iterator[Child]:
    made = Child([sys.executable, "-c", program], cwd="/", environ={"MC_HOME": "/nowhere"}, first=2, keep=keep)
    try:
        yield made
    finally:
        made.end()


def until(made: Child, kind: str, count: int = 1) -> list[Record]:
    """Wait for so many records of a kind; all of that kind."""
    end, known = time.monotonic() + PATIENCE, 0
    while True:
        found = [each for each in made.records() if each.kind == kind]
        if len(found) >= count:
            return found
        known = len(made.records())
        if not made.wait(known, end):
            raise AssertionError(made.records())


def told(made: Child, kind: str) -> bytes:
    return b"".join(each.data for each in made.records() if each.kind == kind)


ECHO = "import sys\nfor line in sys.stdin.buffer:\n sys.stdout.buffer.write(line)\n sys.stdout.flush()\n"


def test_an_echo_from_start_to_end() -> None:
    with child(ECHO) as made:
        made.send(b"one\ntw")
        made.send(b"o\nrest")
        until(made, "backend", 2)
        assert not made.exited
        made.close_input()
        assert made.wait_exit(PATIENCE) == 0
        assert made.end() == 0
        assert made.end() == 0
        records = made.records()
    assert [each.number for each in records] == list(range(2, len(records) + 2))
    assert [each.data for each in records if each.kind == "client"] == [b"one\n", b"two\n", b"rest"]
    assert [each.data for each in records if each.kind == "backend"] == [b"one\n", b"two\n", b"rest"]
    assert [each.value for each in records if each.kind in ("eof", "exit")] == ["stdout", 0]
    assert all(each.t is not None for each in records)
    times = [each.t or 0 for each in records if each.kind != "exit"]  # its end is noticed by another thread
    assert times == sorted(times)


def test_pieces_and_cuts_make_one_line() -> None:
    with child(ECHO) as made:
        made.send(b"abcdef\n", pieces=1, every_ms=1)
        made.send(b"ghijkl\n", cut=[2, 4, 99], every_ms=1)
        made.send(b"")
        assert [each.data for each in until(made, "backend", 2)] == [b"abcdef\n", b"ghijkl\n"]
        assert [each.data for each in until(made, "client", 2)] == [b"abcdef\n", b"ghijkl\n"]


def test_a_piece_that_becomes_due_between_two_looks_at_the_clock_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = itertools.count()  # 2 ms pass with each: the third after a piece is before its time, the fourth behind it
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + 0.002 * next(looks))
    monkeypatch.setattr(pump, "time", clock)
    with child(ECHO) as made:
        made.send(b"abcdef\n", pieces=1, every_ms=5)
        assert [each.data for each in until(made, "backend")] == [b"abcdef\n"]


def test_output_that_is_no_utf8_and_ends_within_a_line() -> None:
    with child("import os; os.write(1, b'\\xff\\n\\xc3'); os.write(2, b'\\xff!')") as made:
        assert made.wait_exit(PATIENCE) == 0
        made.end()
        assert [each.data for each in made.records() if each.kind == "backend"] == [b"\xff\n", b"\xc3"]
        assert [each.value for each in made.records() if each.kind == "stderr"] == ["\\xff!"]


def test_a_crash_and_a_signal() -> None:
    with child("import sys; sys.exit(7)") as made:
        assert made.wait_exit(PATIENCE) == 7
    with child(ECHO) as made:
        made.send(b"a\n")
        until(made, "backend")
        made.signal("TERM")
        assert made.wait_exit(PATIENCE) == -signal.SIGTERM
        assert [each.kind for each in made.records() if each.kind in ("signal", "exit")] == ["signal", "exit"]


def test_one_that_does_not_read_holds_up_nobody() -> None:
    with child("import os, time; os.write(1, b'up\\n'); time.sleep(60)") as made:
        made.send(b"x" * 10_000_000)
        made.close_input()
        until(made, "backend")
        assert made.wait_exit(0.05) is None
        made.mark("killed")
        assert made.end() == 0
        assert made.exited
        assert made.records()[-1].kind in ("exit", "eof", "client")


def test_one_that_closes_its_input() -> None:
    with child("import os, time; os.close(0); os.write(1, b'up\\n'); time.sleep(60)") as made:
        until(made, "backend")
        made.send(b"lost\n")
        assert until(made, "mark")[0].value == "input is not read any more"
        assert [each for each in made.records() if each.kind == "closed"] == []
        made.close_input()
        until(made, "closed")
        assert told(made, "client") == b""


def test_one_that_closes_its_output() -> None:
    with child("import os, sys; os.write(1, b'up\\n'); os.close(1); sys.stdin.read(); os._exit(3)") as made:
        until(made, "eof")
        assert not made.exited
        made.close_input()
        assert made.wait_exit(PATIENCE) == 3


FLOOD = "import os\ntry:\n while True: os.write(1, b'x' * 999 + b'\\n')\nexcept OSError: os._exit(4)"


def test_a_flood_is_read_but_not_kept() -> None:
    with child(FLOOD, keep=100_000) as made:
        assert until(made, "mark")[0].value == "output is not kept any more"
        assert made.overflowed
        made.hang_up()
        assert made.wait_exit(PATIENCE) == 4
        assert 80_000 < len(told(made, "backend")) <= 100_000


def test_a_line_without_end_is_not_kept() -> None:
    with child(FLOOD.replace(" + b'\\n'", ""), keep=100_000) as made:
        until(made, "mark")
        assert told(made, "backend") == b""


def test_what_is_dropped_of_standard_error_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump, "KEEP_ERRORS", 1000)
    for line in ("b'x' * 99 + b'\\n'", "b'x' * 500"):
        with child(f"import os\nfor _ in range(3000): os.write(2, {line})") as made:
            assert made.wait_exit(PATIENCE) == 0
            assert [each.value for each in until(made, "mark")] == ["standard error is not kept any more"]
            said = sum(len(each.value) for each in made.records() if each.kind == "stderr")
            assert said < 1000 + pump.READ


def test_reading_stops_goes_on_and_is_slow() -> None:
    program = "import os, sys\nfor line in sys.stdin: os.write(1, line.encode())\nos.write(1, b'!' * 9 + b'\\n')"
    with child(program) as made:
        made.read(False)
        made.send(b"a\n")
        until(made, "client")
        made.signal("CONT")
        assert made.wait(len(made.records()), time.monotonic() + 0.1) == []
        made.read(True)
        until(made, "backend")
        made.read_slowly(3, 5)
        made.send(b"b\n")
        until(made, "backend", 2)
        made.read(False)
        made.close_input()
        assert made.wait_exit(PATIENCE) == 0
        records = made.records()
    assert [each.value for each in records if each.kind == "mark"] == [
        *("stop reading", "read on", "slow: 3 bytes every 5 ms", "stop reading")
    ]
    assert [each.kind for each in records][-3:] == ["backend", "eof", "exit"], "what was written is kept"


@linux
def test_the_pipe_can_be_made_small() -> None:
    with child(
        "import os\nos.read(0, 1)\nos.set_blocking(1, False)\nn = os.write(1, b'x' * 60000)\nos._exit(n // 4096)"
    ) as made:
        made.read(False)
        assert made.pipe_bytes(4096)
        made.send(b"go")
        assert made.wait_exit(PATIENCE) == 1


GRANDCHILD = """
import os, subprocess, sys
held = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
os.write(1, b"%d\\n" % held.pid)
sys.stdin.read()
os._exit(0)
"""


@linux
def test_a_grandchild_is_counted_and_killed() -> None:
    with child(GRANDCHILD) as made:
        other = int(until(made, "backend")[0].data)
        assert made.descendants() == 1
        assert (made.descriptors() or 0) >= 3
        made.close_input()
        assert made.wait_exit(PATIENCE) == 0
        assert made.end() == 1
        assert all(each.pid != other for each in processes.living() or ())


KINDS = """
import os, stat, sys
def kind(fd):
    try: mode = os.fstat(fd).st_mode
    except OSError: return "closed"
    if os.isatty(fd): return "tty"
    kinds = {stat.S_IFIFO: "pipe", stat.S_IFREG: "file", stat.S_IFSOCK: "socket", stat.S_IFCHR: "null"}
    return kinds[stat.S_IFMT(mode)]
os.write(2, f"{kind(0)} {kind(1)}\\n".encode())
try: os.write(1, b"said\\n")
except OSError: pass
"""


@pytest.mark.parametrize("stream", sorted(STREAMS))
def test_other_streams(stream: str) -> None:
    for streams in ({"stdin": stream}, {"stdout": stream}):
        made = Child([sys.executable, "-c", KINDS], cwd="/", environ={}, **streams)  # type: ignore[arg-type]
        try:
            made.send(b"lost\n")
            assert made.wait_exit(PATIENCE) == 0
        finally:
            made.end()
        kinds = f"{streams.get('stdin', 'pipe')} {streams.get('stdout', 'pipe')}\n"
        assert [each.value for each in made.records() if each.kind == "stderr"] == [kinds]
        shown = b"" if streams.get("stdout") in ("null", "closed") else b"said"
        assert told(made, "backend").strip() == shown


def test_what_cannot_be_started() -> None:
    with pytest.raises(FileNotFoundError):
        Child(["/no/such/program"], cwd="/", environ={})


@linux
@pytest.mark.parametrize(
    ("place", "fault"),
    [
        ((driver, "Pump"), OSError(EMFILE, "too many")),
        ((pump, "threading"), RuntimeError("no thread")),
        ((driver, "threading"), RuntimeError("no thread")),
    ],
)
def test_what_cannot_be_watched_is_not_left_running(
    place: tuple[ModuleType, str], fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise fault

    started: list[processes.Started] = []

    def start(*given: Any) -> processes.Started:
        started.append(processes.start(*given))
        return started[0]

    module, name = place
    threads = SimpleNamespace(**vars(threading) | {"Thread": lambda **_: SimpleNamespace(start=fails)})
    monkeypatch.setattr(module, name, threads if name == "threading" else fails)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(type(fault)):
        Child([sys.executable, "-c", "import time; time.sleep(60)"], cwd="/", environ={}, start=start)
    gc.collect()  # a selector closes itself
    assert len(os.listdir("/proc/self/fd")) == before
    with pytest.raises(ProcessLookupError):
        os.kill(started[0].pid, 0)


def test_counts_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(processes, "PROC", tmp_path)
    assert processes.descendants(1) is None
    assert processes.descriptors(1) is None
    with child(ECHO) as made:
        assert processes.group(made.pid) == 1
        made.close_input()
        assert made.wait_exit(PATIENCE) == 0


def test_a_place(tmp_path: Path) -> None:
    (tmp_path / "settings").write_text("a")
    place = Place(str(tmp_path), None)
    before = place.state()
    assert place.has("*") == ["settings"]
    place.write("sessions/x", b"1", 0o640)
    assert (place.home / "sessions/x").stat().st_mode & 0o777 == 0o640
    assert difference(before, place.state()).count("created") == 2
    place.delete("sessions")
    place.delete("none")
    assert difference(before, place.state()) == ""
    place.delete("settings")
    assert difference(before, place.state()).startswith("removed home")
    first, home = place.cwd, place.home
    place.move()
    place.renew()
    assert place.cwd != first
    assert (place.home / "settings").exists()
    assert place.filled('{"a":"{cwd}"}') == f'{{"a":"{place.cwd.resolve()}"}}'
    place.remove()
    assert not home.exists()
    with pytest.raises(OSError, match="none"):
        Place(str(tmp_path / "none"), None)
