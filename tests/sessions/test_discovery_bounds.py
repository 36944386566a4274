"""Every bound of a discovery step, and what progress it reports (EXT 8.1, EXT-OP-04 to EXT-OP-07, EXT-OP-15 to -17)."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localagent.protocol.codes import Code
from localagent.protocol.measure import compact_bytes
from localagent.sessions import discovery as discovery_module
from localagent.sessions.clock import Clock

from .kit import House, refusal
from .scanning import Scans, ids, put, record, sized

MIB = 1 << 20


@pytest.fixture
def scans(house: House) -> Iterator[Scans]:
    scans = Scans(house)
    yield scans
    scans.discovery.abandon()


@pytest.mark.parametrize(
    ("junk", "progress"),
    [
        (127, ["complete"]),  # both passes and their ends: 254 entries
        (128, ["inventory_validation", "complete"]),
        (255, ["inventory_validation", "complete"]),
        (256, ["directory_work", "inventory_validation", "complete"]),
        (300, ["directory_work", "inventory_validation", "complete"]),
        (600, ["directory_work"] * 2 + ["inventory_validation"] * 2 + ["complete"]),
    ],
)
def test_directory_entries(house: House, scans: Scans, junk: int, progress: list[str]) -> None:
    """A step counts its iterations over both passes together, and names the pass it is in."""
    assert house.names() == set()
    for number in range(junk):
        (house.sessions / f"junk{number}").touch()
    pages = scans.discover_pages()
    assert [page.progress for page in pages] == progress
    assert all(page.sessions == () for page in pages)


@pytest.mark.parametrize(
    ("lines", "progress"),
    [(9_999, ["complete"]), (10_000, ["record_work", "complete"]), (20_001, ["record_work"] * 2 + ["complete"])],
)
def test_lines(house: House, scans: Scans, lines: int, progress: list[str]) -> None:
    house.put_bytes("s", (record(house, "s", "") + b"\n") * lines)
    pages = scans.discover_pages()
    assert [page.progress for page in pages] == progress
    assert ids(scans.discovered()) == ["s"]


@pytest.mark.parametrize(
    ("sizes", "progress"),
    [
        ([4 * MIB, 4 * MIB - 1], ["complete"]),
        ([4 * MIB, 4 * MIB], ["byte_work", "complete"]),
        ([4 * MIB, 4 * MIB + 1], ["byte_work", "complete"]),
        ([5 * MIB] * 5, ["byte_work"] * 3 + ["complete"]),
    ],
)
def test_bytes(house: House, scans: Scans, sizes: list[int], progress: list[str]) -> None:
    """A history has no ceiling (EXT-DISC-32), and a record may be carried from one step to the next (EXT-DISC-29)."""
    house.put_bytes("s", b"".join(sized(house, "s", size) for size in sizes))
    pages = scans.discover_pages()
    assert [page.progress for page in pages] == progress
    assert ids([entry for page in pages for entry in page.sessions]) == ["s"]


@pytest.mark.parametrize("ends", [True, False])
def test_the_bytes_of_a_record(house: House, scans: Scans, ends: bool) -> None:
    """EXT-OP-16: the LF counts, where there is one."""
    size = 8 * MIB
    data = sized(house, "s", size if ends else size + 1)
    house.put_bytes("s", data if ends else data[:-1])
    assert ids(scans.discovered()) == ["s"]
    data = sized(house, "s", size + 1 if ends else size + 2)
    house.put_bytes("s", data if ends else data[:-1])
    first = scans.step()
    assert first.progress == "byte_work"
    assert refusal(lambda: scans.step(first)) is Code.DISCOVERY_RECORD_BYTES
    assert refusal(lambda: scans.step(first)) is Code.STALE_REVISION


def test_a_record_behind_a_foreign_one_is_not_read(house: House, scans: Scans) -> None:
    """EXT-DISC-55, EXT-OP-15."""
    house.put_bytes("s", record(house, "s", cwd="/") + b"\n" + bytes(9 * MIB))
    (page,) = scans.discover_pages()
    assert (page.sessions, page.notices) == ((), ())


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_entries_of_a_page(house: House, scans: Scans, limit: int) -> None:
    put(house, *(f"s{number:03d}" for number in range(limit + 1)))
    pages = scans.discover_pages(limit)
    assert pages[0].progress == "page_entries"
    assert len(pages[0].sessions) == limit
    assert sum(len(page.sessions) for page in pages) == limit + 1


def test_bytes_of_a_page(house: House, scans: Scans) -> None:
    """EXT-OP-17: the entry that found no room opens the next page; a page uses the bound as far as entries allow."""
    for number in range(150):
        name = f"s{number:03d}".ljust(64, "x")
        house.put(name, house.line(name, "session_title", {"title": "\U0001f30a" * 50}))
    pages = scans.discover_pages()
    assert pages[0].progress == "page_bytes"
    assert len(pages[0].sessions) < 100
    assert len(set(ids([entry for page in pages for entry in page.sessions]))) == 150
    for page in pages:
        assert compact_bytes(page) <= 32768
    slack = 2 * 64 + 64  # ids that could be longer, and a notice that is not there
    assert compact_bytes(pages[0]) + compact_bytes(pages[0].sessions[0]) + 1 + slack > 32768


def test_an_entry_that_fits_no_page_is_an_error(house: House, scans: Scans, monkeypatch: pytest.MonkeyPatch) -> None:
    """EXT-DISC-80: no entry is that large, so the bound is made small."""
    put(house, "s")
    monkeypatch.setattr(discovery_module, "_overhead", lambda revision: 32768 - 20)
    assert refusal(scans.step) is Code.DISCOVERY_PAGE_BYTES


@pytest.mark.parametrize(("taken", "steps"), [(0.0, 1), (1.999, 1), (2.0, 5)])
def test_the_time_of_a_step(house: House, taken: float, steps: int) -> None:
    """A step ends in time, but never without progress: a scan on the slowest machine comes to its end."""
    put(house, "a", "b")
    calls = 0

    def steady() -> float:
        nonlocal calls
        calls += 1
        return calls // 2 * taken if taken == 2.0 else min(calls - 1, 1) * taken

    scans = Scans(house, Clock(steady=steady))
    pages = scans.discover_pages()
    assert {page.progress for page in pages[:-1]} <= {"deadline"}
    assert ids([entry for page in pages for entry in page.sessions]) in (["a", "b"], ["b", "a"])
    assert (len(pages) == 1) == (steps == 1)


def test_the_strongest_bound_is_named(house: House, scans: Scans) -> None:
    """EXT-OP-06: entries before bytes before lines before the directory."""
    house.put_bytes("s", sized(house, "s", 4 * MIB) + sized(house, "s", 4 * MIB))
    first = scans.step(limit=1)
    assert (first.progress, len(first.sessions)) == ("page_entries", 1)
    line = record(house, "s", "")
    line = record(house, "s", "x" * (8 * MIB // 10_000 - len(line) - 1)) + b"\n"
    tail = sized(house, "s", 8 * MIB - 9_999 * len(line))
    house.put_bytes("s", line * 9_999 + tail + line)
    assert scans.step().progress == "byte_work"


def test_the_descriptor_is_what_is_kept() -> None:
    from localagent.protocol.limits import LIMITS
    from localagent.protocol.results import DiscoverDescriptor

    descriptor, bounds = DiscoverDescriptor(), LIMITS.discover
    for name in ("step_directory_entries", "step_lines", "step_bytes", "record_bytes", "step_ms", "page_entries"):
        assert getattr(descriptor, name) == getattr(bounds, name)


MEASURE = """
import os, sys
from localagent.sessions import paths
from localagent.sessions.discovery import Discovery
from localagent.sessions.inventory import Attachment

root, cwd = sys.argv[1:]
numbers = iter(range(10**9))
scan = Discovery(paths.Root(root), cwd, lambda: f"fresh-{next(numbers)}")


def peak():
    text = open("/proc/self/status").read()
    return int(text.split("VmHWM:")[1].split()[0])


page, found, after_first = scan.page(None, None, 100, Attachment()), 0, 0
while True:
    found += len(page.sessions)
    after_first = after_first or peak()
    if page.complete:
        break
    page = scan.page(page.revision, page.next_cursor, 100, Attachment())
print(found, after_first, peak())
"""


def measured(house: House) -> tuple[int, int, int]:
    """Sessions found, and the peak of resident memory after the first step and after the last, in KiB."""
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, house.root.path, house.cwd], capture_output=True, text=True, check=True
    )
    found, first, last = map(int, run.stdout.split())
    return found, first, last


def many(house: House, count: int) -> None:
    directory = os.open(house.sessions, os.O_RDONLY)
    for number in range(count):
        name = f"s{number:06d}"
        descriptor = os.open(f"{name}.jsonl", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=directory)
        os.write(descriptor, record(house, name) + b"\n")
        os.close(descriptor)
    os.close(directory)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
def test_memory_does_not_grow_with_the_sessions(house: House) -> None:
    many(house, 20_000)
    found, first, last = measured(house)
    assert found == 20_000
    assert last - first < 1024
    assert last < 60 * 1024
