"""``session.discover``: what is shown, cursors of one use, what makes a scan stale; and that looking is all it does."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localagent.protocol.codes import Code
from localagent.sessions.clock import Clock
from localagent.sessions.errors import Cancelled
from localagent.sessions.inventory import Attachment

from .kit import House, refusal, turn
from .scanning import Scans, bad_histories, hostile_entries, ids, put, record, shown_or_refused, trips, untouched


@pytest.fixture
def scans(house: House) -> Iterator[Scans]:
    scans = Scans(house)
    yield scans
    scans.discovery.abandon()


def test_an_empty_store_is_complete_at_once(scans: Scans) -> None:
    """EXT-OP-04: the values of the last page of a scan."""
    page = scans.step()
    assert (page.sessions, page.complete, page.next_cursor) == ((), True, None)
    assert (page.progress, page.recovery, page.notices) == ("complete", "none", ())
    assert page.consistency == "provisional_until_complete"


def test_every_session_is_shown_once_in_directory_order(house: House, scans: Scans) -> None:
    """EXT-DISC-37, EXT-OP-08: one revision, ever new cursors."""
    names = [f"s{number:03d}" for number in range(150)]
    put(house, *names)
    pages = scans.discover_pages(limit=40)
    in_directory = [name.removesuffix(".jsonl") for name in os.listdir(house.sessions) if name.endswith(".jsonl")]
    assert ids([entry for page in pages for entry in page.sessions]) == in_directory
    assert sorted(in_directory) == names
    assert [page.complete for page in pages] == [False] * (len(pages) - 1) + [True]
    assert {page.recovery for page in pages[:-1]} == {"continue_cursor"}
    assert len({page.revision for page in pages}) == 1
    assert len({page.next_cursor for page in pages}) == len(pages)


def test_entries_are_those_of_a_listing(house: House, scans: Scans) -> None:
    house.put("titled", record(house, "titled"), house.line("titled", "session_title", {"title": "Tides"}))
    house.put("empty")
    house.put("legacy", record(house, "legacy", cwd=...))
    house.put("offset", record(house, "offset", timestamp="2026-03-02T08:00:00.25+01:00"))
    house.put("locked", record(house, "locked"))
    house.lock("locked.jsonl").touch()
    house.put("elsewhere", record(house, "elsewhere", cwd="/"))
    with untouched(house):
        found = sorted(scans.discovered(), key=lambda entry: entry.session_id)
    assert found == scans.listed()
    assert len(found) == 5


def test_what_is_invalid_is_noticed_from_there_on(house: House, scans: Scans) -> None:
    """EXT-DISC-58, EXT-DISC-59, EXT-OP-19."""
    put(house, *(f"s{number}" for number in range(20)))
    house.put("bad", b"bad")
    pages = scans.discover_pages(limit=1)
    told = [page.notices for page in pages]
    assert set(told) == {(), ("sessions_omitted_invalid",)} or told[0]
    assert told == sorted(told)
    assert told[-1] == ("sessions_omitted_invalid",)


def test_each_malformed_history_is_left_out(house: House, scans: Scans) -> None:
    put(house, "good")
    for name, content in bad_histories(house).items():
        house.put_bytes(name, content)
        (page,) = scans.discover_pages()
        assert (ids(page.sessions), page.notices) == (["good"], ("sessions_omitted_invalid",)), name
        house.file(name).unlink()


def test_hostile_entries_are_left_out_without_being_touched(house: House, scans: Scans) -> None:
    put(house, "good")
    for name, make in hostile_entries(house.base).items():
        make(house.file(name))
    with untouched(house):
        (page,) = scans.discover_pages()
    assert (ids(page.sessions), page.notices) == (["good"], ("sessions_omitted_invalid",))


@pytest.mark.parametrize("name", [b".jsonl", b"a.b.jsonl", b"\xff.jsonl", b"x" * 65 + b".jsonl"])
def test_an_impossible_name_makes_the_store_unavailable(house: House, scans: Scans, name: bytes) -> None:
    os.close(os.open(os.fsencode(house.sessions) + b"/" + name, os.O_CREAT, 0o600))
    assert refusal(scans.step) is Code.DISCOVERY_UNAVAILABLE


def test_an_unsafe_or_missing_directory_is_unavailable(house: House, scans: Scans) -> None:
    """At the beginning and, unlike a listing, in between too (EXT-DISC-82)."""
    put(house, *"abc")
    first = scans.step(limit=1)
    house.sessions.chmod(0o750)
    assert refusal(lambda: scans.step(first)) is Code.DISCOVERY_UNAVAILABLE
    assert refusal(scans.step) is Code.DISCOVERY_UNAVAILABLE
    house.sessions.chmod(0o700)
    house.sessions.rename(house.base / "moved")
    assert refusal(scans.step) is Code.DISCOVERY_UNAVAILABLE


def test_the_attached_session_is_available_to_its_child(house: House, scans: Scans) -> None:
    """EXT-DISC-20, EXT-DISC-62; a lazy session is not there."""
    handle = house.store().create()
    assert scans.discovered() == []
    handle.append(turn(1))
    assert [entry.eligibility for entry in scans.discovered()] == ["busy"]
    scans.attachment = Attachment(handle.session_id, 1)
    assert [entry.eligibility for entry in scans.discovered()] == ["available"]
    handle.release()


# cursors


def test_a_cursor_works_once(house: House, scans: Scans) -> None:
    """EXT-DISC-41 to EXT-DISC-45: an earlier one costs the scan."""
    put(house, *"abcdef")
    first = scans.step(limit=1)
    second = scans.step(first, 2)
    assert len(second.sessions) == 2
    assert refusal(lambda: scans.step(first)) is Code.STALE_REVISION
    assert refusal(lambda: scans.step(second)) is Code.STALE_REVISION


@pytest.mark.parametrize(("revision", "cursor"), [("other", None), (None, "other"), (None, "fresh-1"), ("x", "y")])
def test_what_was_not_given_out_costs_the_scan(
    house: House, scans: Scans, revision: str | None, cursor: str | None
) -> None:
    """EXT-OP-10, EXT-OP-11."""
    put(house, *"abc")
    first = scans.step(limit=1)
    place = revision or first.revision, cursor or first.next_cursor
    assert refusal(lambda: scans.discovery.page(*place, 1, scans.attachment)) is Code.STALE_REVISION
    assert refusal(lambda: scans.step(first)) is Code.STALE_REVISION
    assert len(scans.discovered()) == 3


def test_a_fresh_scan_abandons_the_one_before_and_leaves_the_listing_alone(house: House, scans: Scans) -> None:
    """EXT-DISC-46, EXT-OP-23."""
    put(house, *"abc")
    listing = scans.page(limit=1)
    first = scans.step(limit=1)
    second = scans.step(limit=1)
    assert refusal(lambda: scans.step(first)) is Code.STALE_REVISION
    assert refusal(lambda: scans.step(second)) is Code.STALE_REVISION
    assert ids(scans.page(listing).sessions) == ["b", "c"]


def test_a_complete_scan_is_over(house: House, scans: Scans) -> None:
    put(house, "a")
    first = scans.step(limit=1)
    assert first.progress == "page_entries"
    last = scans.step(first)
    assert (last.complete, last.sessions) == (True, ())
    assert refusal(lambda: scans.step(first)) is Code.STALE_REVISION


# staleness


def touched(house: House) -> None:
    for name in "abcdef":
        os.utime(house.file(name), ns=(1, 1))


def grown(house: House) -> None:
    for name in "abcdef":
        with house.file(name).open("ab") as file:
            file.write(record(house, name) + b"\n")


def moded(house: House) -> None:
    for name in "abcdef":
        house.file(name).chmod(0o400)


def added(house: House) -> None:
    put(house, "new")


def removed(house: House) -> None:
    house.file("f").unlink()


def swapped(house: House) -> None:
    house.file("f").rename(house.base / "f")
    put(house, "f")


def leased(house: House) -> None:
    house.lock("f.writer").touch()


def relocked(house: House) -> None:
    house.lock("a.writer").unlink()
    house.lock("a.writer").touch()


def dir_moded(house: House) -> None:
    house.sessions.chmod(0o500)


@pytest.mark.parametrize("change", [touched, grown, moded, added, removed, swapped, leased, relocked, dir_moded])
def test_a_change_is_found_before_the_scan_is_complete(
    house: House, scans: Scans, change: Callable[[House], None]
) -> None:
    """EXT-DISC-67 to EXT-DISC-72, EXT-OP-13."""
    put(house, *"abcdef")
    house.lock("a.writer").touch()
    last = scans.step(limit=5)
    change(house)

    def finish() -> None:
        page = scans.step(last)
        while not page.complete:
            page = scans.step(page)

    assert refusal(finish) is Code.STALE_REVISION
    house.sessions.chmod(0o700)
    assert refusal(finish) is Code.STALE_REVISION


def test_the_renewal_of_a_lease_is_no_change(house: House, scans: Scans) -> None:
    """EXT-DISC-68, and the wall clock may say what it likes."""
    put(house, *"abc")
    house.lock("b.writer").touch()
    first = scans.step(limit=2)
    os.utime(house.lock("b.writer"), ns=(10**18, 10**18))
    house.lock("b.writer").write_bytes(b"pid=1\n")
    assert scans.step(first).complete


def test_another_attachment_is_a_change(house: House, scans: Scans) -> None:
    put(house, *"abc")
    first = scans.step(limit=1)
    scans.attachment = Attachment(None, 1)
    assert refusal(lambda: scans.step(first)) is Code.STALE_REVISION


def test_the_history_that_is_being_read_is_watched(house: House, scans: Scans) -> None:
    """EXT-DISC-64: found by the next step, and before it reads on."""
    house.put_bytes("s", b"".join(record(house, "s") + b"\n" for _ in range(20_000)))
    first = scans.step()
    assert first.progress == "record_work"
    with house.file("s").open("r+b") as file:
        file.write(b" ")
    assert refusal(lambda: scans.step(first)) is Code.STALE_REVISION


def test_a_change_during_a_step_is_stale_whenever_it_comes(house: House) -> None:
    moments = 0
    while True:
        put(house, *"abc")
        calls = 0
        moments += 1

        def steady(at: int = moments) -> float:
            nonlocal calls
            calls += 1
            if calls == at:
                for name in "abc":
                    house.file(name).unlink()
                    house.put(name, record(house, name, "another text"))
            return 0.0

        scans = Scans(house, Clock(steady=steady))
        outcome = shown_or_refused(scans.discovered)
        if calls < moments:
            break
        assert outcome is Code.STALE_REVISION or (moments == 1 and outcome == ["a", "b", "c"]), moments
    assert moments > 4


# cancellation


def test_a_step_stops_between_files_and_reads_and_the_scan_is_lost(house: House, scans: Scans) -> None:
    """EXT-DISC-48: whenever the token is set."""
    put(house, *"ab")
    house.put_bytes("big", b"".join(record(house, "big", "x" * 1000) + b"\n" for _ in range(100)))
    asked = 0

    def count() -> bool:
        nonlocal asked
        asked += 1
        return False

    scans.cancelled = count
    scans.discovered()
    assert asked >= 100 * 1000 // 8192 + 3
    for moment in range(asked):
        scans.cancelled = trips(moment)
        with pytest.raises(Cancelled):
            scans.discovered()
        scans.cancelled = count
    first = scans.step(limit=1)
    scans.cancelled = lambda: True
    with pytest.raises(Cancelled):
        scans.step(first)
    scans.cancelled = count
    assert refusal(lambda: scans.step(first)) is Code.STALE_REVISION


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors by /proc")
def test_a_scan_holds_a_directory_an_iterator_and_a_reader_and_nothing_after_its_end(
    house: House, scans: Scans
) -> None:
    before = len(os.listdir("/proc/self/fd"))
    house.put_bytes("s", b"".join(record(house, "s") + b"\n" for _ in range(20_000)))
    first = scans.step()
    assert len(os.listdir("/proc/self/fd")) == before + 3
    second = scans.step(first)
    assert scans.step(second).complete
    assert len(os.listdir("/proc/self/fd")) == before
    scans.step()
    refusal(lambda: scans.step(first))
    assert len(os.listdir("/proc/self/fd")) == before
