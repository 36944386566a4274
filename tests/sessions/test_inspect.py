"""Looking at a store from outside: what is said is what opening answers, and nothing is touched."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS
from localagent.sessions import inspect, leases
from localagent.sessions.errors import StoreError, Unsafe
from localagent.sessions.inspect import Fault, Strange
from tests.sessions.kit import SECOND, House, StillClock, begun, is_complete, refusal, shown, turn, watching
from tests.sessions.test_open_refused import fifo, hard_link, link_to, unix_socket, with_mode

Make = Callable[[House], object]


def lines(*texts: Any) -> Make:
    """Records or bytes, in this order."""
    return lambda house: house.put(
        "s", *[text if isinstance(text, bytes) else house.line("s", *text[:2], **text[2]) for text in texts]
    )


def rec(kind: str, payload: Any, /, **fields: Any) -> tuple[str, Any, dict[str, Any]]:
    return kind, payload, fields


def file(make: Callable[[Path], object]) -> Make:
    return lambda house: make(house.file("s"))


def tail(data: bytes) -> Make:
    return lambda house: house.put_bytes("s", house.line("s", "user_input", {"text": "u"}) + b"\n" + data)


USER = rec("user_input", {"text": "u"})
SCOPED = rec("user_input", {"text": "u", "task_scope_version": 1})
STORES: dict[str, tuple[Make, int | None, str]] = {
    "missing": (lambda house: None, None, "there is no such session"),
    "link": (file(link_to("../outside")), None, "cannot be opened"),
    "loop": (file(link_to("s.jsonl")), None, "cannot be opened"),
    "hard link": (file(hard_link), None, "more than one link"),
    "fifo": (file(fifo), None, "not a regular file"),
    "socket": (file(unix_socket), None, "cannot be opened"),
    "directory": (file(Path.mkdir), None, "not a regular file"),
    "mode": (file(with_mode(0o640)), None, "permissions for group or others"),
    "empty": (lines(), None, ""),
    "whole": (lines(USER, rec("assistant_output", {"text": "a"})), None, ""),
    "interrupted": (lines(USER), None, ""),
    "unverified": (lines(rec("x", {}, cwd="")), None, ""),
    "no lf": (lambda house: house.put_bytes("s", house.line("s", *USER[:2])), None, ""),
    "torn": (tail(b'{"torn'), 2, "the last record is torn after 6 bytes (no JSON: it ends too early)"),
    "nul tail": (tail(b"\0" * 77), 2, "the last record is torn after 77 bytes (77 NUL bytes)"),
    "bad": (lines(USER, b"bad", USER), 2, "no JSON: invalid character"),
    "blank": (lines(USER, b"", USER), 2, "an empty line"),
    "bom": (lines(b"\xef\xbb\xbf{}"), 1, "a byte order mark"),
    "deep": (lines(b"[" * 10_000), 1, "nested more than 127 deep"),
    "foreign": (lines(USER, rec("x", {}, session_id="t")), 2, "a record of another session"),
    "status": (lines(USER, rec("turn_status", {"status": "paused"})), 2, "turn_status: "),
    "member": (lines(rec("assistant_chunk", {})), 1, "assistant_chunk: "),
    "scope": (lines(USER, SCOPED), 2, "user_input: task_scope_version without a scope"),
    "elsewhere": (lines(rec("x", {}, cwd="/"), rec("x", {})), None, "recorded in 2 directories"),
    "relative": (lines(rec("x", {}, cwd="work")), None, "a recorded directory is not absolute"),
    "gone": (lines(rec("x", {}, cwd="/nowhere/at/all")), None, "a recorded directory is gone"),
    "a file": (lines(rec("x", {}, cwd="/etc/passwd")), None, "a recorded directory is gone"),
    "nul in path": (lines(rec("x", {}, cwd="/\0")), None, "a recorded directory is gone"),
    "entries": (
        lines(*[rec("diagnostic", {"message": "m"})] * 10_001),
        None,
        "more history than a client may be shown",
    ),
    "text": (lines(rec("user_input", {"text": "y" * 9_000_000})), None, "more history than a client may be shown"),
    "lines": (
        lambda house: house.put("s", *[house.line("s", "x", {})] * (LIMITS.history_file_lines + 1)),
        LIMITS.history_file_lines + 1,
        "more than 100,000 lines",
    ),
    "size": (
        lambda house: os.truncate(house.put_bytes("s", b""), LIMITS.history_file_bytes + 1),
        None,
        "a file of 67,108,865 bytes, more than 64 MiB",
    ),
}


def opened(house: House) -> tuple[Code | None, int | None, bool | None, tuple[str, ...]]:
    """What a client sees: the code, or entries, completeness, notices."""
    try:
        handle = house.store().open("s")
    except StoreError as fault:
        return fault.code, None, None, ()
    seen = len(shown(handle)), is_complete(handle), handle.notices
    handle.release()
    return None, *seen


def listed(house: House) -> dict[str, tuple[int, int, int]]:
    found = {path.name: path.lstat() for path in house.sessions.iterdir()}
    return {name: (each.st_ino, each.st_mtime_ns, each.st_ctime_ns) for name, each in found.items()}


@pytest.mark.parametrize("name", STORES)
def test_what_is_said_is_what_opening_answers(house: House, name: str) -> None:
    make, line, words = STORES[name]
    make(house)
    before = listed(house)

    def never(step: object, _done: bool) -> None:
        raise AssertionError(step)

    with watching(never):
        one = inspect.examine(house.root, "s")
    assert listed(house) == before
    assert (one.code, one.entries, one.complete, one.notices) == opened(house)
    assert (one.fault is None) == (words == "")
    if one.fault is not None:
        assert one.fault.line == line
        assert words in one.fault.what


def test_what_is_known_of_a_session(house: House) -> None:
    handle = begun(house)
    handle.release()
    one = inspect.examine(house.root, handle.session_id)
    assert (one.fault, one.busy, one.records, one.cwds) == (None, False, 3, (house.cwd,))
    assert one.length == house.file(handle.session_id).stat().st_size
    house.put(
        "s",
        house.line("s", "session_title", {"title": "Old"}, timestamp="2026-03-02T08:00:01.5Z"),
        house.line("s", "session_title", {"title": "\x1b[31m New \u201cname\u201d"}, timestamp="2026-03-02T07:00:00Z"),
        b"bad",
        house.line("s", "session_title", {"title": "Newest"}),
    )
    one = inspect.examine(house.root, "s")
    assert (one.title, one.updated) == ("[31m New name", 1_772_438_401_500_000_000)
    assert one.fault == Fault(Code.SESSION_INVALID, "no JSON: invalid character", 3, repairable=True)


@pytest.mark.parametrize(
    ("kind", "payload", "words"),
    [
        ("turn_status", {"status": "\x1b[31mSECRET' - at `x"}, "TurnStatus: Invalid enum value - at `$.status`"),
        ("turn_status", {"status": 7}, "TurnStatus: Expected `str`, got `int` - at `$.status`"),
        ("turn_status", {"SECRET": 7}, "TurnStatus: Object missing required field `status`"),
        ("task_scope", {"version": 1, "SECRET`\n": 7}, "task_scope: Object contains unknown field"),
    ],
)
def test_a_fault_holds_no_content(house: House, kind: str, payload: Any, words: str) -> None:
    house.put("s", house.line("s", kind, payload))
    assert inspect.examine(house.root, "s").fault == Fault(Code.SESSION_INVALID, f"{kind}: {words}", 1)


# leases


def test_a_session_in_use_is_busy_and_read_all_the_same(house: House) -> None:
    handle = begun(house)
    one = inspect.examine(house.root, handle.session_id)
    assert (one.code, one.busy, one.fault, one.entries) == (Code.SESSION_BUSY, True, None, 2)
    with house.file(handle.session_id).open("ab") as file:
        file.write(b'{"half')  # as a write looks while it goes on
    one = inspect.examine(house.root, handle.session_id)
    assert (one.code, one.fault, one.entries) == (Code.SESSION_BUSY, None, 2)
    with house.file(handle.session_id).open("ab") as file:
        file.write(b"\n")  # this is no half write any more
    one = inspect.examine(house.root, handle.session_id)
    assert (one.code, one.fault and one.fault.line) == (Code.SESSION_BUSY, 4)
    handle.release()
    assert inspect.examine(house.root, handle.session_id).code is Code.SESSION_INVALID


@pytest.mark.parametrize("role", ["writer", "active"])
@pytest.mark.parametrize(
    ("content", "age", "code"),
    [
        (b"pid=1\n", 1e6, Code.SESSION_BUSY),
        (b"pid=999999999\n", 0, None),
        (b"pid=1\nkernel=flock\n", 0, None),
        (b"", 4, Code.SESSION_BUSY),
        (b"", 5, None),
        (b"garbage", -1e5, Code.SESSION_BUSY),
        (b"x" * 4097, 0, Code.SESSION_INVALID),
    ],
)
def test_leases_are_judged_and_left(house: House, role: str, content: bytes, age: float, code: Code | None) -> None:
    still = StillClock()
    house.put_bytes("s", b"")
    lock = house.lock(f"s.{role}")
    lock.write_bytes(content)
    os.utime(lock, ns=(0, still.wall - int(age * SECOND)))
    before = listed(house)
    assert inspect.examine(house.root, "s", still.clock).code is code
    assert listed(house) == before
    if code is None:
        house.store(still.clock).open("s").release()
    else:
        assert refusal(lambda: house.store(still.clock).open("s")) is code


def test_leases_are_tried_in_their_order(house: House) -> None:
    house.put_bytes("s", b"")
    house.lock("s.writer").write_text("pid=1\n")
    house.lock("s.active").symlink_to("nowhere")
    assert inspect.examine(house.root, "s").code is Code.SESSION_BUSY
    house.lock("s.writer").unlink()
    assert inspect.examine(house.root, "s").code is Code.SESSION_INVALID


def test_judging_does_not_keep_anybody_out(house: House) -> None:
    lock = house.lock("s.writer")
    lock.write_text("pid=1\nkernel=flock\n")
    with house.root.sessions() as directory:
        for _ in range(3):
            assert leases.judge(lock.name, directory, StillClock().clock) == (
                leases.Standing.STALE,
                "its holder is gone",
            )
        with lock.open() as other:  # somebody else who only wants to know
            fcntl.flock(other, fcntl.LOCK_SH)
            assert leases.judge(lock.name, directory, StillClock().clock) == (
                leases.Standing.STALE,
                "its holder is gone",
            )
        assert leases.judge(".t.writer.lock", directory, StillClock().clock) is None
    leases.take(house.root.sessions, "s.writer", StillClock().clock).release()


# names


def test_every_name_gets_a_word(house: House) -> None:
    """ROOT-11, ROOT-13; what belongs there, or to the published backend, needs none."""
    handle = begun(house)  # its leases are held
    for name in ("s.metadata.json", "s.psm.index", "s.jsonl"):
        (house.sessions / name).touch(0o600)
    for name in (".history", "subagents"):
        (house.sessions / name).mkdir()
    assert inspect.strangers(house.root) == []

    house.lock("s.writer").write_text("pid=999999999\n")
    (house.sessions / "..s.writer.lock.recovery").write_text("pid=999999999\n")
    house.lock("s.active").symlink_to("nowhere")
    for name in (
        ".jsonl",
        "x y.jsonl",
        "n" * 65 + ".jsonl",
        "\udcff.jsonl",
        "notes.txt",
        "sub",
        ".s.jsonl.compact-1-2",
    ):
        (house.sessions / name).touch()
    for name in (".event-id-sequence.1.2.tmp", ".s.jsonl.repair.tmp"):
        (house.sessions / name).touch()
    (house.sessions / "event-id-sequence").write_bytes(b"12\n")
    unlisted, stale = "no session id", "a stale lease: its holder is gone"
    wanted = {
        "..s.writer.lock.recovery": (stale, None),
        ".event-id-sequence.1.2.tmp": ("left over", None),
        ".jsonl": (unlisted, Code.DISCOVERY_UNAVAILABLE),
        ".s.active.lock": ("an unsafe lease: a lock that is not a regular file", None),
        ".s.jsonl.compact-1-2": ("left over", None),
        ".s.jsonl.repair.tmp": ("left over", None),
        ".s.writer.lock": (stale, None),
        "event-id-sequence": ("no record can be appended: event-id-sequence is not a number", Code.PERSISTENCE_FAILED),
        "n" * 65 + ".jsonl": (unlisted, Code.DISCOVERY_UNAVAILABLE),
        "notes.txt": ("unknown; left alone", None),
        "sub": ("unknown; left alone", None),
        "x y.jsonl": (unlisted, Code.DISCOVERY_UNAVAILABLE),
        "\udcff.jsonl": (unlisted, Code.DISCOVERY_UNAVAILABLE),
    }
    found: list[Strange] = inspect.strangers(house.root)
    assert [each.name for each in found] == list(wanted)
    for each in found:
        words, code = wanted[each.name]
        assert each.what.startswith(words)
        assert each.code is code
    handle.release()


def test_the_sessions_of_a_root(house: House) -> None:
    for name in ("b.jsonl", "a.jsonl", "B.jsonl", "x y.jsonl", ".jsonl", "a.json", "-.jsonl"):
        (house.sessions / name).touch()
    assert inspect.session_ids(house.root) == ["-", "B", "a", "b"]


def test_where_no_store_is_none_is_made(tmp_path: Path, house: House) -> None:
    assert inspect.locate(str(tmp_path / "nowhere")) is None
    (tmp_path / "bare").mkdir()
    assert inspect.locate(str(tmp_path / "bare")) is None
    assert os.listdir(tmp_path / "bare") == []
    (tmp_path / "alias").symlink_to(house.root.path)
    assert inspect.locate(str(tmp_path / "alias")) == house.root


@pytest.mark.parametrize("spoil", ["mode", "link", "file"])
def test_a_folder_that_is_not_ours_alone_is_not_looked_into(house: House, spoil: str) -> None:
    house.put_bytes("s", b"")
    if spoil == "mode":
        house.sessions.chmod(0o750)
    else:
        house.sessions.rename(house.sessions.with_name("real"))
        house.sessions.symlink_to("real") if spoil == "link" else house.sessions.touch()
    assert refusal(lambda: inspect.locate(house.root.path)) is Code.CONFIGURATION_INVALID
    assert inspect.examine(house.root, "s").code is Code.SESSION_INVALID
    with pytest.raises((Unsafe, OSError)):
        inspect.strangers(house.root)


def test_what_happens_between_two_looks(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = house.store().create()
    handle.append(turn(1))
    handle.release()

    def fail(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pread", fail)
    fault = inspect.examine(house.root, handle.session_id).fault
    assert fault == Fault(Code.SESSION_INVALID, "it cannot be read: Input/output error")
