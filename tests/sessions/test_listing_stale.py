"""What a listing snapshot survives and what makes it stale (LIST-55 to LIST-65), and how a listing is cancelled."""

import os
from collections.abc import Callable
from functools import partial

import pytest

from localagent.protocol.codes import Code
from localagent.sessions.clock import Clock
from localagent.sessions.errors import Cancelled, StoreError
from localagent.sessions.inventory import Attachment

from .kit import House, refusal
from .scanning import Scans, ids, put, record, trips


@pytest.fixture
def scans(house: House) -> Scans:
    return Scans(house)


def test_a_used_cursor_works_again_and_limits_may_change(house: House, scans: Scans) -> None:
    """BASE-OP-125, BASE-OP-126."""
    put(house, *"abcdef")
    first = scans.page(limit=2)
    second = scans.page(first, 3)
    assert ids(second.sessions) == ["c", "d", "e"]
    assert scans.page(first, 3) == second
    assert ids(scans.page(first, 100).sessions) == ["c", "d", "e", "f"]
    assert ids(scans.page(second).sessions) == ["f"]


def test_what_was_never_given_out_is_stale_and_spoils_nothing(house: House, scans: Scans) -> None:
    put(house, *"abc")
    first = scans.page(limit=1)
    assert first.next_cursor is not None
    for revision, cursor in [
        (first.revision, first.revision),
        (first.revision, first.next_cursor[:-1] + "2"),
        (first.revision, first.next_cursor[:-3] + "000"),
        ("other", first.next_cursor),
    ]:
        again = partial(scans.listing.page, revision, cursor, 1, scans.attachment)
        assert refusal(again) is Code.STALE_REVISION
    assert ids(scans.page(first, 1).sessions) == ["b"]


def test_a_fresh_listing_replaces_the_one_before(house: House, scans: Scans) -> None:
    """LIST-61; one that fails drops it (BASE-OP-127)."""
    put(house, *"abc")
    first = scans.page(limit=1)
    second = scans.page(limit=1)
    assert refusal(lambda: scans.page(first)) is Code.STALE_REVISION
    assert ids(scans.page(second).sessions) == ["b", "c"]
    (house.sessions / ".jsonl").touch()
    assert refusal(scans.page) is Code.DISCOVERY_UNAVAILABLE
    (house.sessions / ".jsonl").unlink()
    assert scans.listing.revision is None
    assert refusal(lambda: scans.page(second)) is Code.STALE_REVISION


def appended(house: House) -> Callable[[], object]:
    with house.file("b").open("ab") as file:
        file.write(record(house, "b", "more") + b"\n")
    return lambda: os.truncate(house.file("b"), house.file("b").stat().st_size - len(record(house, "b", "more")) - 1)


def rewritten(house: House) -> Callable[[], object]:
    """As long as before, with the mtime of before."""
    path, old = house.file("b"), house.file("b").stat()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"hello", b"hullo"))
    os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))
    return lambda: path.write_bytes(data)


def added(house: House) -> Callable[[], object]:
    put(house, "new")
    return house.file("new").unlink


def removed(house: House) -> Callable[[], object]:
    path = house.file("b")
    path.rename(house.base / "kept")
    return lambda: (house.base / "kept").rename(path)


def renamed_twin(house: House) -> Callable[[], object]:
    house.file("b").rename(house.file("B"))
    return lambda: house.file("B").rename(house.file("b"))


def opened_up(house: House) -> Callable[[], object]:
    house.file("b").chmod(0o400)
    return lambda: house.file("b").chmod(0o600)


def leased(house: House) -> Callable[[], object]:
    house.lock("b.active").touch()
    return house.lock("b.active").unlink


def invalid_name(house: House) -> Callable[[], object]:
    (house.sessions / ".jsonl").touch()
    return (house.sessions / ".jsonl").unlink


def unsafe_root(house: House) -> Callable[[], object]:
    house.sessions.chmod(0o755)
    return lambda: house.sessions.chmod(0o700)


def too_many(house: House) -> Callable[[], object]:
    names = [house.sessions / f"junk{number}" for number in range(4096)]
    for name in names:
        name.touch()

    def undo() -> None:
        for name in names:
            name.unlink()

    return undo


@pytest.mark.parametrize(
    "change",
    [appended, rewritten, added, removed, renamed_twin, opened_up, leased, invalid_name, unsafe_root, too_many],
)
def test_any_change_is_stale_for_good(
    house: House, scans: Scans, change: Callable[[House], Callable[[], object]]
) -> None:
    """LIST-57 to LIST-59, BASE-OP-187: putting it back does not help."""
    put(house, *"abc")
    first = scans.page(limit=1)
    undo = change(house)
    assert refusal(lambda: scans.page(first)) is Code.STALE_REVISION
    assert scans.listing.revision is None
    undo()
    assert refusal(lambda: scans.page(first)) is Code.STALE_REVISION
    assert ids(scans.listed()) == ["a", "b", "c"]


def test_another_attachment_is_a_change(house: House, scans: Scans) -> None:
    put(house, *"abc")
    for attachment in (Attachment("a", 1), Attachment("a", 2), Attachment(None, 3)):
        first = scans.page(limit=1)
        scans.attachment = attachment
        assert refusal(partial(scans.page, first)) is Code.STALE_REVISION


def test_renewed_leases_other_files_and_the_wall_clock_are_no_change(house: House, scans: Scans) -> None:
    """LIST-60; whether it is tomorrow is never asked."""
    put(house, *"abc")
    house.lock("b.writer").touch()
    first = scans.page(limit=1)
    os.utime(house.lock("b.writer"), ns=(10**18, 10**18))
    (house.sessions / "b.metadata.json").touch()
    house.lock("unknown.writer").touch()
    assert [entry.eligibility for entry in scans.page(first).sessions] == ["busy", "available"]


def test_a_link_of_a_recorded_directory_that_now_leads_elsewhere_is_a_change(house: House, scans: Scans) -> None:
    link = house.base / "link"
    link.symlink_to(house.cwd)
    for name in "abc":
        house.put(name, record(house, name, cwd=str(link)))
    first = scans.page(limit=1)
    link.unlink()
    link.symlink_to(house.base)
    assert refusal(lambda: scans.page(first)) is Code.STALE_REVISION


class Meddler:
    """A clock that does something to the store when it is asked for the n-th time."""

    def __init__(self, at: int, act: Callable[[], object]) -> None:
        self.calls, self.at, self.act = 0, at, act

    def steady(self) -> float:
        self.calls += 1
        if self.calls == self.at:
            self.act()
        return 0.0


def replace_and_remove(house: House) -> None:
    house.file("b").unlink()
    house.put("b", record(house, "b", "other"))
    house.file("c").unlink()


def add(house: House) -> None:
    put(house, "d")


def lease(house: House) -> None:
    house.lock("b.jsonl").touch()


@pytest.mark.parametrize("act", [replace_and_remove, add, lease])
@pytest.mark.parametrize("way", ["listed", "discovered"])
def test_a_change_during_the_scan_is_stale_whenever_it_comes(
    house: House, act: Callable[[House], None], way: str
) -> None:
    """LIST-39, BASE-OP-136, EXT-DISC-64: at each moment the clock is asked; what is shown was there, or is."""
    put(house, *"abc")
    before = sorted(getattr(Scans(house), way)(), key=lambda entry: str(entry.session_id))
    act(house)
    after = sorted(getattr(Scans(house), way)(), key=lambda entry: str(entry.session_id))
    assert before != after
    stale = moments = 0
    while True:
        for name in house.names():
            (house.sessions / name).unlink()
        put(house, *"abc")
        moments += 1
        meddler = Meddler(moments, lambda: act(house))
        scans = Scans(house, Clock(steady=meddler.steady))
        try:
            shown = sorted(getattr(scans, way)(), key=lambda entry: str(entry.session_id))
        except StoreError as fault:
            stale += 1
            code = fault.code
        else:
            code = Code.STALE_REVISION
            assert shown in (before, after), moments
        assert code is Code.STALE_REVISION
        if meddler.calls < moments:
            break
    assert stale >= 6


# cancellation


def test_a_listing_stops_between_files_and_between_reads(house: House, scans: Scans) -> None:
    """LIST-81: whenever the token is set, the scan ends there; a fresh one is dropped, a continuation kept."""
    put(house, *"ab")
    house.put_bytes("big", b"".join(record(house, "big", "x" * 1000) + b"\n" for _ in range(300)))
    asked = 0

    def count() -> bool:
        nonlocal asked
        asked += 1
        return False

    scans.cancelled = count
    first = scans.page(limit=1)
    assert asked >= 2 * 3 + 3 + 2 + 5  # entries of both passes, files, their reads
    for moment in range(asked):
        scans.cancelled = trips(moment)
        with pytest.raises(Cancelled):
            scans.page(first)
    scans.cancelled = count
    assert scans.page(first).complete
    scans.cancelled = lambda: True
    with pytest.raises(Cancelled):
        scans.page()
    assert scans.listing.revision is None
