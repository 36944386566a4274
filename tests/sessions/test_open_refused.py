"""Why a session is not opened: the file, its lines, its size, its workspace, in this order (REC-02, BASE-OP-06)."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS
from localagent.sessions.store import Store
from tests.sessions.kit import House, all_parts, begun, opening, refusal, turn


def link_to(target: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        (path.parent.parent / "outside").write_bytes(b"")
        path.symlink_to(target)

    return make


def hard_link(path: Path) -> None:
    path.touch(0o600)
    os.link(path, path.with_name("other.jsonl"))


def fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


def unix_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket has to be short
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path.name)
    finally:
        os.chdir(here)


def with_mode(mode: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.touch()
        path.chmod(mode)

    return make


def foreign(path: Path) -> None:
    path.touch(0o600)
    os.chown(path, 12345, 12345)


@pytest.mark.parametrize(
    "make",
    [
        link_to("../outside"),
        link_to("nothing"),
        link_to("s.jsonl"),
        hard_link,
        fifo,
        unix_socket,
        Path.mkdir,
        *[with_mode(mode) for mode in (0o640, 0o620, 0o610, 0o604, 0o602, 0o601, 0o666)],
        pytest.param(foreign, marks=pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away needs root")),
    ],
)
def test_what_is_no_file_of_ours_alone_is_invalid(house: House, make: Callable[[Path], None]) -> None:
    """REC-02, SESS-48: neither followed nor waited for."""
    make(house.file("s"))
    assert opening(house) is Code.SESSION_INVALID


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_modes_without_group_or_others_are_fine(house: House, mode: int) -> None:
    house.put_bytes("s", b"", mode)
    house.store().open("s").release()


def test_a_linked_parent_is_not_followed(house: House) -> None:
    house.put_bytes("s", b"")
    house.sessions.rename(house.sessions.with_name("real"))
    house.sessions.symlink_to("real")
    assert refusal(lambda: house.store().open("s")) is Code.SESSION_INVALID


def test_a_file_that_cannot_be_read(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.put("s", house.line("s", "session_usage", {}))

    def fail(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pread", fail)
    assert refusal(lambda: house.store().open("s")) is Code.SESSION_INVALID


# bad lines (REC-06): one spoils the session, wherever it stands


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"\r",
        b"null",
        b"\x00" * 100,
        b'{"torn',
        b"\xef\xbb\xbf{}",
        b"{}",
        b"[" * 100_000,
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_bad_line(house: House, bad: bytes, place: int) -> None:
    lines = [house.line("s", "session_usage", {})] * 2
    lines.insert(place, bad)
    path = house.put("s", *lines)
    data = path.read_bytes()
    assert opening(house) is Code.SESSION_INVALID
    assert path.read_bytes() == data  # nothing is repaired


def test_records_of_another_session(house: House) -> None:
    """SESS-52."""
    house.put("s", house.line("s", "session_usage", {}), house.line("S", "session_usage", {}))
    assert opening(house) is Code.SESSION_INVALID


def test_a_record_that_breaks_its_kind(house: House) -> None:
    """HISTP-10, SESS-53."""
    house.put("s", house.line("s", "assistant_chunk", {}))
    assert opening(house) is Code.SESSION_INVALID


def test_line_ends(house: House) -> None:
    """REC-04: CRLF, a last line without LF; and text that holds every other line separator."""
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\rh"
    line = house.line("s", "user_input", {"text": text})
    house.put_bytes("s", line + b"\r\n" + line + b"\n" + line)
    assert len(all_parts(house.store().open("s"))) == 6  # three prompts, three interruptions


def test_the_last_record_cut_at_every_byte(house: House) -> None:
    whole = house.line("s", "user_input", {"text": "u"}) + b"\n"
    last = house.line("s", "assistant_output", {"text": "a"})
    for cut in range(len(last) + 1):
        house.put_bytes("s", whole + last[:cut])
        if cut in (0, len(last)):
            house.store().open("s").release()
        else:
            assert opening(house) is Code.SESSION_INVALID


def test_a_record_of_8_mib_and_more(house: House) -> None:
    """No bound on reading one record: the budgets decide."""
    house.put("s", house.line("s", "session_usage", {"x": "y" * 9_000_000}))
    house.store().open("s").release()
    house.put("s", house.line("s", "user_input", {"text": "y" * 9_000_000}))
    assert opening(house) is Code.HISTORY_LIMIT


# budgets


@pytest.mark.parametrize(
    ("spare", "code"), [(1, Code.SESSION_INVALID), (0, Code.SESSION_INVALID), (-1, Code.HISTORY_LIMIT)]
)
def test_64_mib(house: House, spare: int, code: Code) -> None:
    """BOUND-20. Within the bound the file is read, and found to be no records; beyond it is not read at all."""
    with house.put_bytes("s", b"").open("r+b") as file:
        file.truncate(LIMITS.history_file_bytes - spare)
    assert opening(house) is code


@pytest.mark.parametrize(("count", "code"), [(99_999, None), (100_000, None), (100_001, Code.HISTORY_LIMIT)])
def test_100000_lines(house: House, count: int, code: Code | None) -> None:
    """BOUND-21."""
    line = house.line("s", "x", {})
    house.put("s", *[line] * count)
    if code is None:
        house.store().open("s").release()
    else:
        assert opening(house) is code


def test_the_snapshot_budget_shows_at_open(house: House) -> None:
    """BASE-OP-103."""
    house.put("s", *[house.line("s", "diagnostic", {"message": "m"})] * 10_001)
    assert opening(house) is Code.HISTORY_LIMIT


# workspace (REC-63, SESS-55 to SESS-59)


def note(house: House, cwd: object) -> bytes:
    return house.line("s", "session_usage", {}, cwd=cwd)


@pytest.mark.parametrize(
    "cwds",
    [
        ["/"],
        ["{cwd}", "/"],
        ["work"],
        ["."],
        ["{cwd}/gone"],
        ["{cwd}/gone/.."],
        ["{cwd}/.."],
        ["{cwd}/file"],
        ["{cwd}/loop"],
        ["{cwd}\0"],
        ["{cwd}/" + "x" * 300],
    ],
)
def test_every_recorded_directory_must_be_ours(house: House, cwds: list[str]) -> None:
    work = Path(house.cwd)
    (work / "file").touch()
    (work / "loop").symlink_to("loop")
    house.put("s", *[note(house, cwd.replace("{cwd}", house.cwd)) for cwd in cwds])
    assert opening(house) is Code.CWD_MISMATCH


def test_what_another_program_appended_elsewhere_is_not_served(house: House) -> None:
    handle = begun(house)
    with house.file(handle.session_id).open("ab") as file:
        file.write(house.line(handle.session_id, "session_usage", {}, cwd="/") + b"\n")
    for _ in range(2):
        assert refusal(handle.refresh) is Code.CWD_MISMATCH
        assert handle.revision is None


def test_other_spellings_of_our_directory(house: House) -> None:
    (house.base / "alias").symlink_to(house.cwd)
    spellings = [house.cwd, f"{house.cwd}/", f"{house.cwd}/.", str(house.base / "alias"), "", ...]
    house.put("s", *[note(house, cwd) for cwd in spellings])
    assert house.store().open("s").notices == ()


@pytest.mark.parametrize("cwds", [[""], [...], ["", ...]])
def test_no_recorded_directory_is_said(house: House, cwds: list[object]) -> None:
    """SESS-58, SESS-59, BASE-OP-101."""
    house.put("s", *[note(house, cwd) for cwd in cwds])
    assert house.store().open("s").notices == ("cwd_unverified",)


def test_a_working_directory_that_json_cannot_spell(house: House) -> None:
    odd = os.fsdecode(os.fsencode(str(house.base)) + b"/\xff")
    os.mkdir(odd)
    store = Store(house.root, odd)
    handle = store.create()
    handle.append(turn(1))
    session_id = handle.session_id
    handle.release()
    assert store.open(session_id).notices == ("cwd_unverified",)


def test_a_long_working_directory(house: House) -> None:
    deep = house.base
    for _ in range(4):
        deep = deep / ("\u65e5" * 80)
    deep.mkdir(parents=True)
    store = Store(house.root, str(deep))
    handle = store.create()
    handle.append(turn(1))
    handle.release()
    assert store.open(handle.session_id).notices == ()


# order (BASE-OP-06)


def test_the_order_of_codes(house: House) -> None:
    """Each fault is mended in turn, and the next one shows."""
    faults: list[tuple[Code, Callable[[], object]]] = [
        (Code.SESSION_BUSY, lambda: house.lock("s.writer").unlink()),
        (Code.SESSION_BUSY, lambda: house.lock("s.active").unlink()),
        (Code.SESSION_INVALID, lambda: house.put("s", *[note(house, "/")] * 100_001)),
        (Code.HISTORY_LIMIT, lambda: house.put("s", note(house, "/"))),
        (Code.CWD_MISMATCH, lambda: house.put("s", note(house, house.cwd))),
    ]
    assert opening(house) is Code.SESSION_MISSING
    house.put("s", b"bad", *[note(house, "/")] * 100_001)
    house.lock("s.writer").write_text(f"pid={os.getpid()}\n")
    house.lock("s.active").write_text(f"pid={os.getpid()}\n")
    for code, mend in faults:
        assert opening(house) is code
        mend()
    house.store().open("s").release()


def test_an_unsafe_lock_is_invalid_and_stays(house: House) -> None:
    house.put_bytes("s", b"")
    house.lock("s.active").symlink_to("nothing")
    assert opening(house) is Code.SESSION_INVALID
    assert house.lock("s.active").is_symlink()


def test_a_lease_of_the_dead_is_recovered(house: House) -> None:
    """BASE-OP-104."""
    house.put_bytes("s", b"")
    for role in ("writer", "active"):
        house.lock(f"s.{role}").write_text(f"pid={os.getpid()}\ntoken=x\nkernel=flock\n")
    house.store().open("s").release()
    assert house.names() == {"s.jsonl"}
