"""The one snapshot: pages, cursors, and what makes it stale for good (CAT-44 to CAT-51, EXT-STATUS-33 to -36)."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from localagent.protocol.codes import Code
from localagent.protocol.ids import is_id
from localagent.sessions.errors import Cancelled

from .kit import Desk, House, custom, padded, refusal

MODELS = [f"m{number}" for number in range(7)]
STALE = Code.STALE_CATALOG


@pytest.fixture
def desk(house: House) -> Desk:
    house.put("bench", MODELS)
    return Desk(house, custom("bench", *MODELS), custom("spare", "x"))


def test_pages_to_the_end(desk: Desk) -> None:
    pages = desk.pages(limit=3)
    assert [len(page.choices) for page in pages] == [3, 3, 1]
    assert [page.complete for page in pages] == [False, False, True]
    assert {page.revision for page in pages} == {desk.catalog.revision}
    assert {page.notices for page in pages} == {("provider_catalog_unavailable",)}  # BASE-OP-130
    assert all(is_id(page.next_cursor) for page in pages[:-1] if page.next_cursor)
    assert [each.model for page in pages for each in page.choices] == MODELS


def test_the_limit_may_change_and_a_cursor_may_be_used_again(desk: Desk) -> None:
    """D69, BASE-OP-126, EXT-OP-29."""
    first = desk.page(limit=2)
    assert len(desk.page(first, limit=1).choices) == 1
    again = desk.page(first, limit=100)
    assert ([each.model for each in again.choices], again.complete) == (MODELS[2:], True)
    assert first.next_cursor is not None
    status = desk.catalog.status(first.revision, first.next_cursor, 100, None)
    assert status.choices == again.choices  # the other method goes on where this one stopped


def test_a_fresh_catalog_replaces_the_revision_of_both_methods(desk: Desk) -> None:
    """CAT-49, EXT-STATUS-34."""
    first = desk.page(limit=2)
    other = desk.catalog.status(None, None, 2, None)
    assert other.revision != first.revision
    assert refusal(lambda: desk.page(first)) is STALE
    assert refusal(lambda: desk.catalog.verify(first.revision)) is STALE
    assert desk.catalog.verify(other.revision)


@pytest.mark.parametrize(("revision", "cursor"), [("rev-9", "rev-9.0002"), ("rev-1", "rev-1.0003"), ("rev-1", "x")])
def test_what_was_never_given_out_is_stale_and_spoils_nothing(desk: Desk, revision: str, cursor: str) -> None:
    """D31, BASE-OP-126."""
    first = desk.page(limit=2)
    assert refusal(lambda: desk.catalog.page(revision, cursor, 2, None)) is STALE
    assert len(desk.page(first).choices) == 5


def _changes(house: House) -> dict[str, Callable[[], object]]:
    file = house.file()

    def link() -> None:
        file.rename(file.with_suffix(".old"))
        file.symlink_to(file.with_suffix(".old"))

    def instead(make: Callable[[Path], None]) -> None:
        file.unlink()
        make(file)

    return {
        "content": lambda: house.put("bench", [*MODELS, "more"]),
        "one byte of white space": lambda: file.write_bytes(file.read_bytes() + b" "),
        "gone": file.unlink,
        "empty": lambda: file.write_bytes(b""),
        "a link": link,
        "a FIFO": lambda: instead(os.mkfifo),
        "a directory": lambda: instead(Path.mkdir),
        "too large": lambda: file.write_bytes(padded(file.read_bytes(), 1024 * 1024 + 1)),
        "another cache": lambda: house.put("spare", ["x"]),
        "an unused cache": lambda: house.put("anthropic", ["x"]),
        "an admitted model twice": lambda: house.put("bench", [*MODELS, "m1"]),
        "the folder": lambda: os.rename(house.folder, house.folder.with_name("elsewhere")),
    }


CHANGES = (
    "content",
    "one byte of white space",
    "gone",
    "empty",
    "a link",
    "a FIFO",
    "a directory",
    "too large",
    "another cache",
    "an unused cache",
    "an admitted model twice",
    "the folder",
)


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_is_stale_for_good(house: House, desk: Desk, change: str) -> None:
    """CAT-46 to CAT-48: the very same bytes put back do not help."""
    first = desk.page(limit=2)
    before = house.file().read_bytes()
    _changes(house)[change]()
    assert refusal(lambda: desk.page(first)) is STALE
    assert desk.catalog.revision is None
    _restore(house, before)
    assert refusal(lambda: desk.page(first)) is STALE
    assert refusal(lambda: desk.catalog.verify(first.revision)) is STALE
    assert desk.page().revision != first.revision


def _restore(house: House, before: bytes) -> None:
    elsewhere = house.folder.with_name("elsewhere")
    if elsewhere.exists():
        elsewhere.rename(house.folder)
    for other in ("spare", "anthropic"):
        house.file(other).unlink(missing_ok=True)
    file = house.file()
    if file.is_dir():
        file.rmdir()
    file.unlink(missing_ok=True)
    file.write_bytes(before)


def test_a_change_seen_by_the_guard_is_stale_for_good_too(house: House, desk: Desk) -> None:
    page = desk.page()
    house.put("bench", ["m0"])
    assert refusal(lambda: desk.catalog.verify(page.revision)) is STALE
    house.put("bench", MODELS)
    assert refusal(lambda: desk.catalog.verify(page.revision)) is STALE


def test_a_file_replaced_by_the_same_bytes_is_no_change(house: House, desk: Desk) -> None:
    first = desk.page(limit=2)
    data = house.file().read_bytes()
    house.file().unlink()
    house.file().write_bytes(data)
    house.file().chmod(0o600)
    assert len(desk.page(first).choices) == 5


def test_readiness_is_watched(house: House) -> None:
    """CAT-45: a key that comes or goes is a change; that of a provider nobody uses is not looked at."""
    house.put("bench", MODELS)
    environ = {"KEY": "k", "OTHER": "k"}
    providers = custom("bench", *MODELS, api_key_env_var="KEY"), custom("spare", api_key_env_var="OTHER")
    desk = Desk(house, *providers, environ=environ)
    first = desk.page(limit=2)
    del environ["OTHER"]
    assert desk.page(first, limit=1)
    del environ["KEY"]
    assert refusal(lambda: desk.page(first)) is STALE
    environ["KEY"] = "k"
    assert refusal(lambda: desk.page(first)) is STALE


def test_another_selection_is_no_change(desk: Desk) -> None:
    """BASE-OP-141."""
    first = desk.page(limit=2)
    desk.selected = "anthropic"
    assert len(desk.page(first).choices) == 5
    first = desk.page(limit=2)
    desk.selected = None
    assert len(desk.page(first).choices) == 5


def test_a_fresh_catalog_that_fails_drops_the_one_before(house: House, desk: Desk) -> None:
    """BASE-OP-127."""
    first = desk.page(limit=2)
    before = house.file().read_bytes()
    house.file().write_bytes(padded(b"{}", 1024 * 1024 + 1))
    assert refusal(desk.page) is Code.CATALOG_LIMIT
    house.file().write_bytes(before)
    assert refusal(lambda: desk.page(first)) is STALE


def test_a_cancelled_continuation_keeps_the_snapshot_a_cancelled_fresh_one_drops_it(desk: Desk) -> None:
    first = desk.page(limit=2)
    seen: list[None] = []

    def token() -> bool:
        seen.append(None)
        return len(seen) > allowed

    allowed = 10**6
    desk.cancelled = token
    desk.page(first)
    looks = len(seen)
    assert looks >= 8  # between all providers and steps
    for number in range(looks):
        allowed = number
        seen.clear()
        with pytest.raises(Cancelled):
            desk.page(first)
        assert desk.catalog.revision == first.revision
    allowed = 0
    seen.clear()
    with pytest.raises(Cancelled):
        desk.page()
    assert desk.catalog.revision is None


def test_a_cache_that_grows_while_it_is_read(house: House, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The length that ``fstat`` told is not trusted (CAT-57)."""
    real = os.read
    grown: list[None] = []

    def read(descriptor: int, count: int) -> bytes:
        if not grown:
            grown.append(None)
            house.file().write_bytes(padded(house.file().read_bytes(), 2 * 1024 * 1024))
        return real(descriptor, count)

    monkeypatch.setattr(os, "read", read)
    assert refusal(desk.page) is Code.CATALOG_LIMIT
