"""``session.list``: what is shown, in which order, what makes it stale, and that nothing comes of looking (LIST)."""

import os

import pytest

from localagent.protocol.codes import Code
from localagent.protocol.measure import compact_bytes
from localagent.sessions.inventory import Attachment

from .kit import House, refusal, turn
from .scanning import Scans, bad_histories, hostile_entries, ids, put, record, untouched


@pytest.fixture
def scans(house: House) -> Scans:
    return Scans(house)


def test_an_empty_store_is_a_complete_listing(scans: Scans) -> None:
    page = scans.page()
    assert (page.sessions, page.complete, page.next_cursor, page.notices) == ((), True, None, ())
    assert page.revision == scans.listing.revision


def test_entries_come_by_ascending_id_whatever_their_times(house: House, scans: Scans) -> None:
    """LIST-14, LIST-15: ASCII order, and two ids that differ in case alone are two."""
    names = ["b", "B", "a", "_", "-", "Z", "a0", "10", "9"]
    for number, name in enumerate(names):
        house.put(name, record(house, name, number=number))
        os.utime(house.file(name), ns=(number, number))
    assert ids(scans.listed()) == sorted(names)


def test_two_hundred_files_of_one_moment_page_without_loss(house: House, scans: Scans) -> None:
    names = [f"s{number:03d}" for number in range(200)]
    put(house, *reversed(names))
    for name in names:
        os.utime(house.file(name), ns=(10**18, 10**18))
    pages = scans.list_pages(37)
    assert [len(page.sessions) for page in pages] == [37, 37, 37, 37, 37, 15]
    assert [page.complete for page in pages] == [False] * 5 + [True]
    assert len({page.revision for page in pages}) == 1
    assert ids([entry for page in pages for entry in page.sessions]) == names


def test_title_and_time_come_from_the_records(house: House, scans: Scans) -> None:
    """REC-60 to REC-62: the last valid title, the greatest moment in any zone, spelt in UTC."""
    house.put(
        "s",
        record(house, "s", timestamp="2026-03-02T10:00:00+02:00"),
        house.line("s", "session_title", {"title": "  Friday\t'tides' "}),
        record(house, "s", timestamp="2026-03-02T08:00:00.500Z"),
        house.line("s", "session_title", {"title": "x" * 257}),
        house.line("s", "session_title", {"title": "token=abc"}),
        record(house, "s", timestamp="2026-03-02T07:00:00Z"),
    )
    (entry,) = scans.listed()
    assert (entry.title, entry.updated_at) == ("Friday tides", "2026-03-02T08:00:01Z")  # titles are at 08:00:01
    assert (entry.eligibility, entry.notices) == ("available", ())


@pytest.mark.parametrize(
    ("moments", "shown"),
    [
        (["2026-03-02T08:00:00.5Z", "2026-03-02T08:00:00.49Z"], "2026-03-02T08:00:00.500Z"),
        (["2026-03-02T08:00:00.120Z"], "2026-03-02T08:00:00.120Z"),
        (["2026-03-02T08:00:00.000Z"], "2026-03-02T08:00:00Z"),
        (["2026-03-02T08:00:00.123456789012Z"], "2026-03-02T08:00:00.123456789Z"),
        (["2026-03-02T08:00:59Z", "2026-03-02T08:00:60Z"], "2026-03-02T08:01:00Z"),
        (["2026-03-02T08:00:00Z", "2026-03-02T10:00:00.001+01:59"], "2026-03-02T08:01:00.001Z"),
        (["0000-03-02T08:00:00Z"], "0001-01-01T00:00:00Z"),
    ],
)
def test_the_newest_moment_is_spelt_as_shortly_as_it_can_be(
    house: House, scans: Scans, moments: list[str], shown: str
) -> None:
    for order in (moments, moments[::-1]):
        house.put("s", *(record(house, "s", timestamp=moment) for moment in order))
        assert scans.listed()[0].updated_at == shown


def test_a_compaction_may_bring_the_title(house: House, scans: Scans) -> None:
    house.put("s", house.line("s", "compaction", {"summary": "s", "aggregate": {"latest_title": "Pruning plan"}}))
    assert scans.listed()[0].title == "Pruning plan"


def test_an_empty_file_is_a_session_nobody_vouches_for(house: House, scans: Scans) -> None:
    """REC-03, LIST-17, LIST-29, LIST-30."""
    house.put("s")
    house.put("t", record(house, "t", cwd=...), record(house, "t", cwd=""))
    first, second = scans.listed()
    assert (first.updated_at, first.title, first.eligibility) == (None, None, "cwd_unverified")
    assert first.notices == second.notices == ("cwd_unverified",)
    assert second.updated_at is not None


def test_every_recorded_directory_counts(house: House, scans: Scans) -> None:
    """REC-63: through a link is the same place; elsewhere, relative and gone are not. Nobody is told (LIST-27)."""
    (house.base / "same").symlink_to(house.cwd)
    (house.base / "other").mkdir()
    house.put("same", record(house, "same", cwd=str(house.base / "same")), record(house, "same"))
    for name, cwd in {"other": str(house.base / "other"), "gone": str(house.base / "gone"), "near": "."}.items():
        house.put(name, record(house, name), record(house, name, cwd=cwd), b"what follows is not read")
    page = scans.page()
    assert (ids(page.sessions), page.notices) == (["same"], ())


def test_what_is_malformed_is_left_out_with_one_notice(house: House, scans: Scans) -> None:
    put(house, "good")
    for name, content in bad_histories(house).items():
        house.put_bytes(name, content)
        page = scans.page()
        assert (ids(page.sessions), page.notices) == (["good"], ("sessions_omitted_invalid",)), name
        house.file(name).unlink()
    assert scans.page().notices == ()


def test_what_a_reader_tolerates_is_listed(house: House, scans: Scans) -> None:
    """REC-04, REC-11: CR before LF, no last LF, unknown kinds and members, separators that are no line ends."""
    lines = [
        record(house, "s") + b"\r",
        house.line("s", "kind_of_tomorrow", [1, {"a": None}], more=1),
        record(house, "s", "a\u2028b\u0085c\x1cd\u20ac"),
    ]
    house.put_bytes("s", b"\n".join(lines))
    assert ids(scans.listed()) == ["s"]


def test_hostile_entries_are_left_out_without_being_touched(house: House, scans: Scans) -> None:
    put(house, "good")
    for name, make in hostile_entries(house.base).items():
        make(house.file(name))
    with untouched(house):
        page = scans.page()
    assert (ids(page.sessions), page.notices) == (["good"], ("sessions_omitted_invalid",))


@pytest.mark.parametrize("name", [".jsonl", "a.b.jsonl", "a b.jsonl", "\u00e9.jsonl", "x" * 65 + ".jsonl", ".s.jsonl"])
def test_an_impossible_name_makes_the_store_unavailable(house: House, scans: Scans, name: str) -> None:
    """LIST-37, ROOT-11."""
    put(house, "good")
    (house.sessions / name).touch(0o600)
    assert refusal(scans.page) is Code.DISCOVERY_UNAVAILABLE


def test_a_name_that_is_no_text_is_as_impossible(house: House, scans: Scans) -> None:
    os.close(os.open(os.fsencode(house.sessions) + b"/\xff", os.O_CREAT, 0o600))
    assert scans.page().complete  # not a session file by its name: nobody's business
    os.close(os.open(os.fsencode(house.sessions) + b"/\xff.jsonl", os.O_CREAT, 0o600))
    assert refusal(scans.page) is Code.DISCOVERY_UNAVAILABLE


def test_the_longest_id_and_the_other_files_of_the_store(house: House, scans: Scans) -> None:
    put(house, "x" * 64)
    for name in (
        "event-id-sequence",
        "s.metadata.json",
        "s.JSONL",
        ".s.jsonl.compact-1-2",
        ".x.1.2.tmp",
        "s.jsonl.bak",
    ):
        (house.sessions / name).touch(0o600)
    (house.sessions / "subagents").mkdir()
    (house.sessions / "subagents" / "child.jsonl").touch(0o600)
    assert ids(scans.listed()) == ["x" * 64]


@pytest.mark.parametrize("mode", [0o750, 0o701])
def test_an_unsafe_directory_is_unavailable(house: House, scans: Scans, mode: int) -> None:
    house.sessions.chmod(mode)
    assert refusal(scans.page) is Code.DISCOVERY_UNAVAILABLE


def test_a_linked_or_missing_directory_is_unavailable(house: House, scans: Scans) -> None:
    house.sessions.rename(house.base / "moved")
    assert refusal(scans.page) is Code.DISCOVERY_UNAVAILABLE
    house.sessions.symlink_to(house.base / "moved")
    assert refusal(scans.page) is Code.DISCOVERY_UNAVAILABLE


# leases


@pytest.mark.parametrize("lease", ["s.writer", "s.active", "s.jsonl"])
@pytest.mark.parametrize("make", ["touch", "mkdir", "link"])
def test_any_lease_makes_busy_however_stale_or_odd(house: House, scans: Scans, lease: str, make: str) -> None:
    """LIST-42, LIST-43, LEASE-09."""
    put(house, "s", "t")
    lock = house.lock(lease)
    lock.symlink_to("nothing") if make == "link" else getattr(lock, make)()
    with untouched(house):
        assert [entry.eligibility for entry in scans.listed()] == ["busy", "available"]


def test_busy_outweighs_unverified_and_keeps_its_notice(house: House, scans: Scans) -> None:
    house.put("s")
    house.lock("s.writer").touch()
    (entry,) = scans.listed()
    assert (entry.eligibility, entry.notices) == ("busy", ("cwd_unverified",))


def test_the_attached_session_is_available_to_its_child(house: House, scans: Scans) -> None:
    """LIST-44; another child sees the leases. A lazy session is not there yet (LIST-33)."""
    handle = house.store().create()
    assert scans.listed() == []
    handle.append(turn(1))
    assert [entry.eligibility for entry in scans.listed()] == ["busy"]
    scans.attachment = Attachment(handle.session_id, 1)
    with untouched(house):
        assert [entry.eligibility for entry in scans.listed()] == ["available"]
    handle.release()


# pages


def test_a_page_that_would_be_too_large_is_shorter(house: House, scans: Scans) -> None:
    """LIST-66, D77: by bytes and not by entries; every byte of the bound is used."""
    names = [f"s{number:03d}".ljust(64, "x") for number in range(150)]
    for name in names:
        house.put(name, house.line(name, "session_title", {"title": "\U0001f30a" * 50}))
    pages = scans.list_pages()
    assert len(pages) == 2
    sizes = [compact_bytes(page) for page in pages]
    entry = compact_bytes(pages[0].sessions[0])
    assert sizes[0] <= 32768 < sizes[0] + 1 + entry
    assert len(pages[0].sessions) < 100
    assert ids([entry for page in pages for entry in page.sessions]) == names
