"""Hostile stores, as an opening child meets them: records, leases, disks and directories that mean no good.

Beside test_open_refused (files, lines, budgets, workspace) and test_processes (other children). What only an
unprivileged process can be denied is tried by a child that has dropped its privileges.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from localagent.protocol.codes import Code
from localagent.sessions import paths
from localagent.sessions.disk import Step
from localagent.sessions.errors import AppendFailed, Outcome
from localagent.sessions.handle import Handle
from tests.sessions.child import NOBODY
from tests.sessions.kit import FIRST, SECOND, House, StillClock, begun, failing, opening, refusal, refused, shown, turn
from tests.sessions.processes import Child, Nursery

IS_ROOT = os.geteuid() == 0


@pytest.fixture
def spawn(nursery: Nursery) -> Iterator[Callable[[House], Child]]:
    with ExitStack() as stack:
        yield lambda house: stack.enter_context(nursery.child(house.root.path, house.cwd))


# records


def good(house: House) -> bytes:
    return house.line("s", "user_input", {"text": "u"})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda line: line.replace(b'"u"', b'"\\ud800"'),
        lambda line: line.replace(b'"u"', b'"\\udc00\\ud83d"'),
        lambda line: line.replace(b'"u"', b'"u","deep":' + b"[" * 10_000 + b"]" * 10_000),
        lambda line: line.replace(b'"u"', b'"u","deep":' + b'{"a":' * 10_000 + b"0" + b"}" * 10_000),
        lambda line: line.replace(b'"cwd"', b'"session_id":"s","cwd"'),
        lambda line: line[:-1] + b',"payload":{"text":"v"}}',
        lambda line: b"\xef\xbb\xbf" + line,
        lambda line: line + b"\x00" * 4096,
        lambda line: line + b"\n" + b"\x00" * 4096,
        lambda line: line + line,
        lambda line: line.replace(b'"session_id":"s"', b'"session_id":"t"'),
        lambda line: line.replace(b"user_input", b"turn_status").replace(b'"text":"u"', b'"status":"paused"'),
    ],
    ids=range(12),
)
@pytest.mark.parametrize("place", ["first", "last", "unfinished"])
def test_lines_that_are_refused(house: House, spoil: Callable[[bytes], bytes], place: str) -> None:
    bad, line = spoil(good(house)), good(house)
    data = {"first": bad + b"\n" + line + b"\n", "last": line + b"\n" + bad + b"\n", "unfinished": line + b"\n" + bad}
    path = house.put_bytes("s", data[place])
    assert opening(house) is Code.SESSION_INVALID
    assert path.read_bytes() == data[place]


@pytest.mark.parametrize(
    "line",
    [
        lambda house: house.line("s", "user_input", {"text": "x" * 200 * 1024}),
        lambda house: house.line("s", "some.newer-kind", {"anything": [{}]}),
        lambda house: house.line("s", "tool_result_assessment", None),
        lambda house: house.line("s", "session_preferences", {"provider": "p", "model": "m"}),
        lambda house: house.line("s", "user_input", {"text": "u", "text2": "\u2028\u2029\u0085\x1c\x1d\x1e\x0b\x0c"}),
        lambda house: house.line("s", "user_input", {"text": "u"}).replace(b'"u"', b'"u","text":"v"'),
        lambda house: house.line("s", "turn_status", {"status": "canceled"}),
        lambda house: b" \t" + house.line("s", "turn_status", {"status": "complete"}) + b" \r\r",  # white space to JSON
        lambda house: house.line("s", "user_input", {"text": "\U0001f9ed" * 1000}, newer_field={"a": 1}),
    ],
)
def test_lines_that_are_taken(house: House, line: Callable[[House], bytes]) -> None:
    """A header alone, kinds and fields of a newer writer, large records, odd separators, keys that repeat inside."""
    data = house.put("s", line(house)).read_bytes()
    handle = house.store().open("s")
    handle.append(turn(1))
    handle.refresh()
    assert shown(handle)[-2:] == FIRST
    handle.release()
    assert house.file("s").read_bytes().startswith(data)


def test_uppercase_twins_are_two_sessions(house: House) -> None:
    house.put("abc", house.line("abc", "user_input", {"text": "lower"}))
    house.put("ABC", house.line("ABC", "user_input", {"text": "upper"}))
    if len(house.names()) == 1:
        pytest.skip("this file system does not tell upper from lower case")
    for session_id, text in (("abc", "lower"), ("ABC", "upper")):
        handle = house.store().open(session_id)
        assert shown(handle)[0][1] == text
        handle.release()


@pytest.mark.parametrize(
    "name", [".jsonl", "x y.jsonl", "n" * 249 + ".jsonl", "\udcff.jsonl", "s.JSONL", "s.jsonl.bak"]
)
def test_strange_neighbours_do_not_matter(house: House, name: str) -> None:
    (house.sessions / name).write_bytes(b"garbage")
    house.put("s", good(house))
    house.store().open("s").release()
    assert (house.sessions / name).read_bytes() == b"garbage"


# leases


NO_PROCESS = 999_999_999  # beyond what any kernel gives out


@pytest.mark.parametrize("role", ["writer", "active"])
@pytest.mark.parametrize(
    ("content", "age", "code"),
    [
        (f"pid={NO_PROCESS}\n".encode(), 0, None),
        (b"pid=1\n", 0, Code.SESSION_BUSY),
        (b"pid=1\n", 1e9, Code.SESSION_BUSY),
        (b"pid=1\nkernel=flock\n", 0, None),  # init holds no lock of ours
        (b"", 0, Code.SESSION_BUSY),
        (b"", 5, None),
        (b"garbage\x00\xff" * 9, 0, Code.SESSION_BUSY),
        (b"garbage\x00\xff" * 9, 5, None),
        (b"", -86_400, Code.SESSION_BUSY),
        (f"pid={NO_PROCESS}\n".encode(), -86_400, None),
        (b"x" * 4097, 1e6, Code.SESSION_INVALID),
    ],
)
def test_leases_that_are_found(house: House, role: str, content: bytes, age: float, code: Code | None) -> None:
    """Of the dead, of pid 1, empty, garbage, from the future, too long (LEASE-05)."""
    still = StillClock()
    house.put_bytes("s", b"")
    lock = house.lock(f"s.{role}")
    lock.write_bytes(content)
    os.utime(lock, ns=(0, still.wall - int(age * SECOND)))
    if code is None:
        house.store(still.clock).open("s").release()
        assert house.names() == {"s.jsonl"}
    else:
        with pytest.raises(Exception, match=code):
            house.store(still.clock).open("s")
        assert lock.read_bytes() == content


# time


def test_a_wall_clock_that_moves_a_day(house: House) -> None:
    still = StillClock()
    handle = house.store(still.clock).create()
    for number, days in enumerate((0, 1, -2, 1)):
        still.wall += days * 86_400 * SECOND
        handle.append(turn(number))
        revision = handle.refresh()
        assert len(handle.page(revision, None).entries) == 2 * (number + 1)
    handle.release()
    handle = house.store().open(handle.session_id)
    assert [text for kind, text, _ in shown(handle) if kind == "user"] == [f"prompt {number}" for number in range(4)]
    handle.release()


# descriptors


def test_300_opens_with_64_descriptors(house: House, spawn: Callable[[House], Child]) -> None:
    house.put("s", good(house))
    house.put_bytes("t", b"bad")
    child = spawn(house)
    assert child.ask("limit NOFILE 64") == "limited"
    for _ in range(100):
        assert [child.ask("open s"), child.ask("release")] == ["opened", "released"]
        assert child.ask("open t") == "session_invalid"
        assert child.ask("open u") == "session_missing"


# disks


def test_a_file_size_limit(house: House, spawn: Callable[[House], Child]) -> None:
    """EFBIG of the kernel, in a child of its own; what was written is taken back, and it goes on when there is room."""
    handle = begun(house)
    handle.release()
    path = house.file(handle.session_id)
    before = path.read_bytes()
    child = spawn(house)
    assert child.ask(f"open {handle.session_id}") == "opened"
    assert child.ask(f"limit FSIZE {len(before) + 100}") == "limited"
    assert child.ask("append 2") == Outcome.ROLLED_BACK.name
    assert path.read_bytes() == before
    assert child.ask("limit FSIZE 1000000") == "limited"
    assert child.ask("append 2").startswith("receipt")


ERROR = OSError(5, "Input/output error")


def test_a_lease_that_cannot_be_renewed_is_still_held(house: House) -> None:
    """EIO at the steps that neither an append nor a repair takes; those are failed in tests of their own."""
    store = house.store()
    handle = store.create()
    with failing([Step.LEASE_RENEW], ERROR) as log:
        store.renew(1)
    assert (Step.LEASE_RENEW, False) in log
    handle.append(turn(1))
    handle.release()


def test_a_lease_that_cannot_be_removed_is_stale(house: House) -> None:
    house.put_bytes("s", b"")
    with failing([Step.LEASE_REMOVE], ERROR):
        house.store().open("s").release()
    assert house.lock("s.writer").exists()
    with failing([Step.LEASE_RECOVER], ERROR):
        assert opening(house) is Code.SESSION_INVALID
    house.store().open("s").release()
    assert house.names() == {"s.jsonl"}


def test_a_root_that_cannot_be_made(tmp_path: Path) -> None:
    with failing([Step.MAKE_DIRECTORY], ERROR):
        assert refusal(lambda: paths.prepare(str(tmp_path / "home"))) is Code.STARTUP_FAILED
    paths.prepare(str(tmp_path / "home"))


@contextmanager
def tiny_disk(place: Path) -> Iterator[Path]:
    """A file system with a few pages of room, where we may mount one."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        why = done.stderr.strip() if done.returncode else ""
    except OSError as fault:
        why = str(fault)
    if why:
        pytest.skip(f"no tiny disk here, so a full one is not tried: {why}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


def tried(handle: Handle, number: int) -> Outcome | None:
    try:
        handle.append(turn(number))
    except AppendFailed as fault:
        return fault.outcome
    return None


def test_a_full_disk(tmp_path: Path) -> None:
    """ENOSPC of a real file system: nothing half stays, nothing acknowledged goes, and room makes it go on."""
    with tiny_disk(tmp_path / "disk") as place:
        house = House(place)
        handle = begun(house)
        ballast = place / "ballast"
        fill(ballast)
        number = 2
        while (outcome := tried(handle, number)) is None:  # until the last page is full
            number += 1
        assert outcome in (Outcome.REFUSED, Outcome.ROLLED_BACK)
        ballast.unlink()
        again = house.reopened(handle)
        assert [text for kind, text, _ in shown(again) if kind == "user"] == [f"prompt {n}" for n in range(1, number)]
        again.append(turn(0))
        again.release()
        assert house.names() == {"event-id-sequence", f"{handle.session_id}.jsonl"}


# what an unprivileged child is denied


@pytest.fixture
def theirs() -> Iterator[House]:
    """A store of a user who is not root, in a place that he can reach."""
    base = Path(tempfile.mkdtemp(prefix="localagent-hostile-", dir="/tmp"))
    try:
        house = House(base)
        give_away(base)
        yield house
    finally:
        shutil.rmtree(base)


def give_away(base: Path) -> None:
    if IS_ROOT:
        for path in (base, *base.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def test_a_file_of_mode_000(theirs: House, spawn: Callable[[House], Child]) -> None:
    theirs.put("s", good(theirs), mode=0)
    give_away(theirs.base)
    child = spawn(theirs)
    assert child.ask("drop") == "dropped"
    assert child.ask("open s") == "session_invalid"
    assert child.ask("check s") == "session_invalid"
    theirs.file("s").chmod(0o600)
    assert child.ask("open s") == "opened"


def test_a_directory_of_mode_000(theirs: House, spawn: Callable[[House], Child]) -> None:
    theirs.put("s", good(theirs))
    give_away(theirs.base)
    child = spawn(theirs)
    assert child.ask("drop") == "dropped"
    theirs.sessions.chmod(0)
    assert [child.ask("open s"), child.ask("create")] == ["session_invalid", "session_invalid"]
    theirs.sessions.chmod(0o700)
    assert child.ask("open s") == "opened"


def test_a_read_only_directory(theirs: House, spawn: Callable[[House], Child]) -> None:
    """No lease can be taken there, so nothing is opened, created or appended; looking from outside still works."""
    path = theirs.put("s", good(theirs))
    theirs.put_bytes("t", b"bad")
    give_away(theirs.base)
    child, other = spawn(theirs), spawn(theirs)
    assert [child.ask("drop"), other.ask("drop")] == ["dropped", "dropped"]
    assert child.ask("open s") == "opened"
    before = path.read_bytes()
    theirs.sessions.chmod(0o500)
    assert child.ask("append 1") == Outcome.REFUSED.name
    assert [other.ask("open t"), other.ask("create"), other.ask("repair t")] == ["session_invalid"] * 2 + [
        "persistence_failed"
    ]
    assert [other.ask("check s"), other.ask("check t")] == ["session_busy", "session_invalid"]
    assert path.read_bytes() == before
    theirs.sessions.chmod(0o700)
    assert child.ask("append 1").startswith("receipt")


@pytest.mark.skipif(not IS_ROOT, reason="giving a directory away needs root: a foreign owner is not tried")
def test_a_directory_of_somebody_else(house: House) -> None:
    house.put("s", good(house))
    os.chown(house.sessions, NOBODY, NOBODY)
    assert opening(house) is Code.SESSION_INVALID
    os.chown(house.sessions, 0, 0)
    handle = house.store().open("s")
    os.chown(house.sessions, NOBODY, NOBODY)
    assert refused(handle) is Outcome.REFUSED
    os.chown(house.sessions, 0, 0)
    handle.append(turn(1))
    handle.release()
