"""Launch checks and the way out, as a careful command-line user and an operating system see them."""

import os
import pty
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from localagent.shell import launch
from tests.kit.child import Child, line

SERVE = (sys.executable, "-m", "localagent", "serve")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def _launch(home: Path, *arguments: str, **streams: int) -> subprocess.CompletedProcess[bytes]:
    environ = {**os.environ, "MC_HOME": str(home)}
    given = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, **streams}
    process = subprocess.Popen([*SERVE, *arguments], stderr=subprocess.PIPE, env=environ, **given)  # type: ignore[call-overload]
    out, err = process.communicate(timeout=20)
    return subprocess.CompletedProcess(arguments, process.returncode, out or b"", err)


@pytest.mark.parametrize(
    "arguments",
    [(), ("--stdin",), ("--stdio", "--stdio"), ("--stdio", "--verbose"), ("x", "--stdio"), ("--stdio", "--help")],
)
def test_a_wrong_command_line_ends_with_2_and_one_line_and_no_effect(home: Path, arguments: tuple[str, ...]) -> None:
    done = _launch(home, *arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"\n") == 1
    assert not home.exists()


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_is_given(home: Path, flag: str) -> None:
    done = _launch(home, flag)
    assert done.returncode == 0
    assert done.stdout.decode() == launch.HELP
    assert not home.exists()


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
@pytest.mark.parametrize("kind", ["tty", "file", "socket", "null"])
def test_only_pipes_are_served(home: Path, tmp_path: Path, stream: str, kind: str) -> None:
    fds = []
    if kind == "tty":
        fds = list(pty.openpty())
    elif kind == "file":
        fds = [os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)]
    elif kind == "socket":
        pair = socket.socketpair()
        fds = [each.detach() for each in pair]
    else:
        fds = [os.open(os.devnull, os.O_RDWR)]
    try:
        done = _launch(home, "--stdio", **{stream: fds[-1]})
    finally:
        for fd in fds:
            os.close(fd)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == f"localagent: {stream} is not a pipe\n".encode()
    assert not home.exists()


def test_a_closed_descriptor_is_refused(home: Path) -> None:
    script = f"exec {sys.executable} -m localagent serve --stdio <&-"
    done = subprocess.run(["sh", "-c", script], capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"stdin" in done.stderr


def test_windows_is_refused_before_anything_else() -> None:
    with pytest.raises(launch.InvalidLaunch, match="Windows"):
        launch.check(["--stdio"], platform="win32")


def test_named_pipes_are_pipes(home: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(fifo, os.O_WRONLY)
    with Child(home, stdin=reader) as child:
        os.close(reader)
        os.write(writer, line("r1", "shutdown"))
        assert child.frame()["result"] == {"state": "stopping"}
        assert child.wait() == 0
        os.close(writer)


def test_nothing_is_written_before_there_is_something_to_answer(home: Path) -> None:
    with Child(home) as child:
        child.close_input()
        assert child.rest() == b""
        assert (child.wait(), child.stderr()) == (0, b"")
    assert not home.exists()


def test_an_unterminated_line_at_the_end_is_told_and_not_carried_out(home: Path) -> None:
    with Child(home) as child:
        child.send(line("r1", "initialize", required_capabilities=[])[:-1])
        child.close_input()
        frame = child.frame()
        assert (frame["id"], frame["error"]) == (None, {"code": "incomplete_frame"})
        assert (child.rest(), child.wait(), child.stderr()) == (b"", 0, b"")
    assert not home.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_the_end_of_input(home: Path, number: signal.Signals) -> None:
    with Child(home) as child:
        child.initialize()
        child.process.send_signal(number)
        assert (child.rest(), child.wait(), child.stderr()) == (b"", 0, b"")


def test_stdin_may_stay_open_after_shutdown(home: Path) -> None:
    with Child(home) as child:
        child.initialize()
        child.ask("shutdown", "last")
        child.ask("status", "ignored")
        frames = child.rest().splitlines()
        assert len(frames) == 1
        assert child.wait() == 0


def test_a_reader_that_leaves_ends_the_child_silently(home: Path) -> None:
    with Child(home) as child:
        child.initialize()
        assert child.process.stdout is not None
        child.process.stdout.close()
        child.ask("status")
        assert (child.wait(), child.stderr()) == (1, b"")


def test_head_minus_one(home: Path) -> None:
    requests = line("r1", "status") + line("r2", "status")
    script = f"(cat; sleep 20) | {sys.executable} -m localagent serve --stdio | head -1"
    with Child(home, program=("sh", "-c"), arguments=(script,)) as child:
        child.send(requests)
        assert child.frame()["error"] == {"code": "not_initialized"}
        child.send(line("r3", "status"))


def test_the_parents_pipes_keep_their_flags(home: Path) -> None:
    reader, writer = os.pipe()
    answers, out = os.pipe()
    with Child(home, stdin=reader, stdout=out) as child:
        os.write(writer, line("r1", "status"))
        assert os.read(answers, 65536).endswith(b"\n")
        flags = [os.get_blocking(fd) for fd in (reader, out)]
        os.set_blocking(out, False)  # a parent that flips what it shares
        os.set_blocking(out, True)
        os.write(writer, line("r2", "shutdown"))
        assert b"stopping" in os.read(answers, 65536)
        assert child.wait() == 0
    assert flags == [True, True]
    for fd in (reader, writer, answers, out):
        os.close(fd)


def test_a_print_of_a_library_goes_to_the_log_not_to_the_client(home: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = (
        "import os, sys\n"
        "from localagent.shell import launch\n"
        "launch.check(['--stdio'])\n"
        "pipes = launch.claim(os.environ)\n"
        "print('a library prints', flush=True)\n"
        "print('a library warns', file=sys.stderr, flush=True)\n"
        "assert os.read(0, 1) == b''\n"
        "os.system('echo a child prints')\n"
        "os.write(pipes.stdout, b'protocol')\n"
    )
    with Child(home, program=(sys.executable, "-c", code), arguments=(), environ={"LOCALAGENT_LOG": str(log)}) as child:
        assert child.rest() == b"protocol"
        assert (child.wait(), child.stderr()) == (0, b"")
    assert log.read_text() == "a library warns\n"
    assert log.stat().st_mode & 0o777 == 0o600
