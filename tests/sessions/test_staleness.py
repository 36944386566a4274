"""Sticky staleness: any change from outside ends a revision (HIST-44 to HIST-48, BASE-OP-124)."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from localagent.protocol.codes import Code
from localagent.sessions import lines
from localagent.sessions.handle import Handle
from tests.sessions.kit import FIRST, SECOND, House, StillClock, all_parts, begun, refusal, shown, turn

Change = Callable[[Path], object]


def append_record(path: Path) -> None:
    with path.open("ab") as file:
        file.write(path.read_bytes().splitlines(keepends=True)[-1])


def overwrite_in_place(path: Path) -> None:
    """As long as before."""
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.write(data.replace(b"prompt 1", b"prompt X"))


def overwrite_and_restore_the_mtime(path: Path) -> None:
    """What the change time tells, as soon as the kernel's clock has ticked."""
    before = path.stat()
    overwrite_in_place(path)
    while path.stat().st_ctime_ns == before.st_ctime_ns or path.stat().st_mtime_ns != before.st_mtime_ns:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.chmod(0o600)
    copy.rename(path)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


CHANGES: list[Change] = [
    append_record,
    overwrite_in_place,
    overwrite_and_restore_the_mtime,
    replace,
    truncate,
    Path.unlink,
    lambda path: path.chmod(0o640),
    lambda path: os.link(path, path.with_name("link")),
    lambda path: path.rename(path.with_name("moved")),
    lambda path: path.parent.chmod(0o750),
    lambda path: path.parent.rename(path.parent.with_name("moved")),
]


def is_stale(handle: Handle, revision: str, cursor: str | None = None) -> bool:
    assert refusal(lambda: handle.page(revision, cursor)) is Code.STALE_REVISION
    return True


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("reopened", [False, True])
def test_a_change_from_outside_makes_the_revision_stale_for_good(house: House, change: Change, reopened: bool) -> None:
    """At once after our own append, and at once after reading."""
    store = house.store()
    handle = store.create()
    handle.append(turn(1))
    path = house.file(handle.session_id)
    if reopened:
        handle.release()
        handle = store.open(handle.session_id)
    revision = handle.refresh()
    assert shown(handle) == FIRST
    data = path.read_bytes()
    change(path)
    assert is_stale(handle, revision)
    assert handle.revision is None
    for folder in (path.parent, path.parent.with_name("moved")):
        if folder.exists():
            folder.chmod(0o700)
            folder.rename(path.parent)
    path.unlink(missing_ok=True)
    path.write_bytes(data)  # as it was, but that does not help any more
    path.chmod(0o600)
    assert is_stale(handle, revision)
    assert handle.refresh() != revision
    assert shown(handle) == FIRST


def test_a_file_that_appears_under_a_lazy_handle(house: House) -> None:
    handle = house.store().create()
    revision = handle.revision
    assert revision is not None
    house.put(handle.session_id, house.line(handle.session_id, "user_input", {"text": "who was that?"}))
    assert is_stale(handle, revision)
    handle.refresh()
    assert handle.durable
    assert shown(handle)[0] == ("user", "who was that?", False)


def test_an_append_makes_the_revision_stale(house: House) -> None:
    """HIST-48."""
    handle = begun(house)
    revision = handle.revision
    assert revision is not None
    cursor = handle.page(revision, None).next_cursor
    assert cursor is None
    handle.append(turn(2))
    assert handle.revision is None
    assert is_stale(handle, revision)
    assert len(all_parts(handle)) if handle.refresh() else False


def test_revisions_are_never_repeated(house: House) -> None:
    handle = begun(house)
    revisions = {handle.refresh() for _ in range(20)}
    assert len(revisions) == 20
    assert is_stale(handle, sorted(revisions - {handle.revision or ""})[0])


def test_renewal_and_reading_do_not_make_it_stale(house: House) -> None:
    store = house.store()
    handle = store.create()
    handle.append(turn(1))
    handle.refresh()
    for now in range(1, 5):
        store.renew(now * SECOND)
        assert house.file(handle.session_id).read_bytes()
        assert shown(handle) == FIRST


# how it is noticed


@pytest.fixture
def blocks_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all blocks that are read of session files."""
    sizes: list[int] = []
    original = lines.blocks

    def counting(*args: object) -> object:
        for block in original(*args):  # type: ignore[arg-type]
            sizes.append(len(block))
            yield block

    monkeypatch.setattr(lines, "blocks", counting)
    return sizes


def test_a_page_does_not_read_the_file_again(house: House, blocks_read: list[int]) -> None:
    handle = begun(house)
    all_parts(handle)
    assert blocks_read == []
    handle.release()
    still = StillClock(house.file(handle.session_id).stat().st_ctime_ns + SECOND)
    again = house.store(still.clock).open(handle.session_id)
    read = len(blocks_read)
    for _ in range(10):
        all_parts(again)
    assert len(blocks_read) == read == 1


def test_a_file_that_was_just_touched_is_compared_until_the_tick_has_passed(
    house: House, blocks_read: list[int]
) -> None:
    path = house.put("s", house.line("s", "user_input", {"text": "prompt 1"}))
    still = StillClock(path.stat().st_ctime_ns + 20_000_000)
    handle = house.store(still.clock).open("s")
    assert len(blocks_read) == 1
    all_parts(handle)
    assert len(blocks_read) == 2
    still.wall += 1
    all_parts(handle)
    assert len(blocks_read) == 3
    all_parts(handle)
    assert len(blocks_read) == 3


def test_a_change_within_one_tick_is_noticed_by_its_bytes(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system whose time stamps stand still: identity alone would not tell."""
    from localagent.sessions.files import Identity

    path = house.put("s", house.line("s", "user_input", {"text": "prompt 1"}))
    frozen = path.stat()

    def coarse(found: os.stat_result) -> Identity:
        return Identity(found.st_dev, found.st_ino, found.st_size, frozen.st_mtime_ns, frozen.st_ctime_ns)

    monkeypatch.setattr(Identity, "of", coarse)
    handle = house.store(StillClock(frozen.st_ctime_ns + 1_000_000).clock).open("s")
    revision = handle.revision
    assert revision is not None
    handle.page(revision, None)
    overwrite_in_place(path)
    assert is_stale(handle, revision)


def test_a_thousand_turns_read_nothing_again(house: House, blocks_read: list[int]) -> None:
    """What was appended extends the projection: a history after each turn costs that turn."""
    handle = house.store().create()
    for number in range(1_000):
        handle.append(turn(number))
        handle.refresh()
    assert blocks_read == []
    assert len(shown(handle)) == 2_000
