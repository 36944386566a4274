"""Every bound of ``session.list`` from both sides (LIST-66 to LIST-87): the bound is served, one more is refused."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from localagent.protocol.codes import Code
from localagent.sessions.clock import Clock

from .kit import House, refusal
from .scanning import Scans, ids, put, record, sized

MIB = 1 << 20
LIMIT = Code.DISCOVERY_LIMIT


@pytest.fixture
def scans(house: House) -> Iterator[Scans]:
    scans = Scans(house)
    yield scans
    scans.discovery.abandon()


def test_directory_entries_of_any_kind(house: House, scans: Scans) -> None:
    put(house, "s")
    os.utime(house.file("s"))
    for number in range(4094):
        (house.sessions / f"junk{number}").touch()
    house.lock("x.writer").touch()
    assert len(house.names()) == 4096
    assert ids(scans.listed()) == ["s"]
    (house.sessions / "one-more").touch()
    assert refusal(scans.page) is LIMIT
    assert scans.listing.revision is None


def test_entries_of_a_snapshot(house: House, scans: Scans) -> None:
    """What is not listed does not count (BASE-OP-128)."""
    names = [f"s{number:03d}" for number in range(256)]
    put(house, *names)
    house.put("elsewhere", record(house, "elsewhere", cwd="/"))
    house.put("bad", b"bad")
    pages = scans.list_pages()
    assert [len(page.sessions) for page in pages] == [100, 100, 56]
    assert ids([entry for page in pages for entry in page.sessions]) == names
    put(house, "t")
    assert refusal(scans.page) is LIMIT


@pytest.mark.parametrize("last_line_ends", [True, False])
def test_bytes_of_a_session(house: House, scans: Scans, last_line_ends: bool) -> None:
    data = sized(house, "s", 8 * MIB + (not last_line_ends))
    house.put_bytes("s", data if last_line_ends else data[:-1])
    assert ids(scans.listed()) == ["s"]
    with house.file("s").open("ab") as file:
        file.write(b" ")
    assert refusal(scans.page) is LIMIT


def test_lines_of_a_session(house: House, scans: Scans) -> None:
    line = record(house, "s", "") + b"\n"
    house.put_bytes("s", line * 10_000)
    assert ids(scans.listed()) == ["s"]
    house.put_bytes("s", line * 10_000 + line[:-1])
    assert refusal(scans.page) is LIMIT


def test_what_says_early_that_it_is_not_ours_is_not_read_on(house: House, scans: Scans) -> None:
    """A large history of another workspace, or a spoilt one, does not spoil the listing of this one."""
    house.put_bytes("elsewhere", record(house, "elsewhere", cwd="/") + b"\n" + bytes(9 * MIB))
    house.put_bytes("bad", b"\n" * 20_000 + bytes(9 * MIB))
    assert ids(scans.listed()) == []


def test_bytes_of_a_scan(house: House, scans: Scans) -> None:
    for number in range(8):
        house.put_bytes(f"s{number}", sized(house, f"s{number}", 8 * MIB))
    house.put("empty")
    assert len(scans.listed()) == 9
    house.put_bytes("t", b"x")
    assert refusal(scans.page) is LIMIT


def test_lines_of_a_scan(house: House, scans: Scans) -> None:
    for number in range(10):
        house.put_bytes(f"s{number}", (record(house, f"s{number}", "") + b"\n") * 10_000)
    assert len(scans.listed()) == 10
    put(house, "t")
    assert refusal(scans.page) is LIMIT


@pytest.mark.parametrize(("taken", "served"), [(1.999, True), (2.0, True), (2.001, False)])
def test_the_deadline_of_a_scan(house: House, taken: float, served: bool) -> None:
    put(house, "a", "b")
    moments = iter([100.0])
    scans = Scans(house, Clock(steady=lambda: next(moments, 100.0 + taken)))
    if served:
        assert ids(scans.listed()) == ["a", "b"]
    else:
        assert refusal(scans.page) is LIMIT


def test_the_deadline_of_a_continuation_makes_it_stale(house: House) -> None:
    """D78, BASE-OP-187."""
    put(house, "a", "b")
    now = 0.0
    scans = Scans(house, Clock(steady=lambda: now))
    first = scans.page(limit=1)
    step = 0.0

    def steady() -> float:
        nonlocal now, step
        now += step
        return now

    scans.listing._clock = Clock(steady=steady)
    step = 1.0
    assert refusal(lambda: scans.page(first)) is Code.STALE_REVISION
    step = 0.0
    assert refusal(lambda: scans.page(first)) is Code.STALE_REVISION


def test_a_title_of_256_bytes(house: House, scans: Scans) -> None:
    words = ("word " * 60)[:256]
    for name, title in {"a": words, "b": words + "x", "c": "\u00e9" * 128, "d": "\u00e9" * 128 + "x"}.items():
        house.put(name, house.line(name, "session_title", {"title": title}))
    assert [entry.title for entry in scans.listed()] == [words[:50], None, "\u00e9" * 50, None]


def test_the_limit_of_a_page(house: House, scans: Scans) -> None:
    put(house, *(f"s{number:03d}" for number in range(101)))
    assert [len(page.sessions) for page in scans.list_pages()] == [100, 1]
    assert len(scans.page(limit=99).sessions) == 99


def test_what_cannot_be_read_is_charged_in_full(house: House, scans: Scans, monkeypatch: pytest.MonkeyPatch) -> None:
    """LIST-79: eight such histories use up the scan, and nothing more may be read."""
    put(house, *(f"bad{number}" for number in range(8)))
    put(house, "a")
    real, broken = os.pread, {house.file(f"bad{number}").stat().st_ino for number in range(8)}

    def pread(descriptor: int, length: int, offset: int) -> bytes:
        if os.fstat(descriptor).st_ino in broken:
            raise OSError(5, "Input/output error")
        return real(descriptor, length, offset)

    monkeypatch.setattr(os, "pread", pread)
    assert refusal(scans.page) is LIMIT
    house.file("a").unlink()
    page = scans.page()
    assert (ids(page.sessions), page.notices) == ([], ("sessions_omitted_invalid",))
    put(house, "z")
    assert refusal(scans.page) is LIMIT
    house.file("bad7").unlink()
    assert ids(scans.listed()) == ["z"]


def test_a_process_without_descriptors_omits_nothing(
    house: House, scans: Scans, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What this process lacks says nothing about a session."""
    put(house, "a")
    real = os.open

    def opening(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(path).endswith(".jsonl"):
            raise OSError(24, "Too many open files")
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", opening)
    assert refusal(scans.page) is Code.DISCOVERY_UNAVAILABLE
    assert refusal(scans.step) is Code.DISCOVERY_UNAVAILABLE


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors by /proc")
def test_every_descriptor_is_closed(house: House, scans: Scans) -> None:
    put(house, *"abc")
    house.put("bad", b"bad")
    house.put("elsewhere", record(house, "elsewhere", cwd="/"))
    before = os.listdir("/proc/self/fd")
    for _ in range(20):
        scans.page(scans.page(limit=1))
        scans.step(limit=1)
    scans.discovery.abandon()
    (house.sessions / ".jsonl").touch()
    refusal(scans.page)
    refusal(scans.step)
    assert os.listdir("/proc/self/fd") == before
