"""Every bound of a scan at the limit and one past it (CAT-52 to CAT-61), and what cannot be read (CAT-42)."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS
from localagent.sessions import files
from localagent.sessions.errors import StoreError
from tests.sessions.kit import StillClock

from .child import NOBODY, Nursery
from .kit import BUILT_IN, IS_ROOT, Desk, House, custom, document, entry, padded, refusal

MIB = 1024 * 1024
TOO_MUCH, UNSAFE = Code.CATALOG_LIMIT, Code.CATALOG_UNAVAILABLE


@pytest.mark.parametrize(("count", "code"), [(28, None), (29, None), (30, TOO_MUCH)])
def test_providers(house: House, count: int, code: Code | None) -> None:
    """32 with the three that are built in (CAT-55); caches or not, used or not."""
    desk = Desk(house, *(custom(f"p{number}") for number in range(count)))
    if code is None:
        assert len(desk.statuses()) == count + len(BUILT_IN)
    assert _code(desk.page) is code
    assert _code(desk.statuses) is code


def _code(work: Callable[[], object]) -> Code | None:
    try:
        work()
    except StoreError as fault:
        return fault.code
    return None


@pytest.mark.parametrize(("count", "code"), [(2047, None), (2048, None), (2049, TOO_MUCH)])
def test_models_are_counted_before_exclusions(house: House, count: int, code: Code | None) -> None:
    """CAT-56: over all caches, whether anything of them is enabled or not."""
    house.put("bench", [f"m{number}" for number in range(1000)])
    house.put("other", [f"m{number}" for number in range(count - 1000)])
    assert _code(Desk(house, custom("bench", "m1"), custom("other")).page) is code


def test_models_of_caches_that_yield_none_do_not_count(house: House) -> None:
    """CACHE-05: only an available one yields any."""
    house.put("bench", [f"m{number}" for number in range(2048)])
    house.put("other", [f"m{number}" for number in range(2048)], schema_version=8)
    assert _code(Desk(house, custom(), custom("other")).page) is None


@pytest.mark.parametrize(("length", "code"), [(MIB - 1, None), (MIB, None), (MIB + 1, TOO_MUCH)])
def test_bytes_of_one_cache(house: House, length: int, code: Code | None) -> None:
    """CAT-57, EXT-STATUS-22; of an unused provider too."""
    house.put_bytes(padded(json.dumps(document()).encode(), length))
    assert _code(Desk(house, custom("bench", "tiny")).page) is code
    assert _code(Desk(house, custom()).statuses) is code


@pytest.mark.parametrize(("last", "code"), [(MIB - 1, None), (MIB, None), (1, TOO_MUCH)])
def test_bytes_of_all_caches(house: House, last: int, code: Code | None) -> None:
    """CAT-58: 8 MiB; the ninth cache has no room for a single byte, but for none."""
    count = 8 if code is None else 9
    for number in range(count):
        length = last if number == count - 1 else MIB
        house.put_bytes(b" " * length, f"p{number}")
    desk = Desk(house, *(custom(f"p{number}") for number in range(count)))
    assert _code(desk.page) is code
    if code is not None:
        house.put_bytes(b"", f"p{count - 1}")
        assert _code(desk.page) is None


def _large(house: House) -> tuple[Desk, list[str]]:
    """As many choices as there may be, with names so that they come to something under 1 MiB."""
    names = [f"m{number:04d}-" + "-" * 230 for number in range(2000)]
    for part, name in enumerate("ab"):
        house.put(name, [entry(name, each, display_name="") for each in names[part * 1000 : part * 1000 + 1000]])
    return Desk(house, custom("a", *names, label=None), custom("b", *names, label=None)), names


def test_bytes_of_the_snapshot(house: House) -> None:
    """CAT-59: serialized choices, brackets and commas included."""
    desk, names = _large(house)

    def size() -> int:
        desk.page()
        assert desk.catalog.choices is not None
        return len(msgspec.json.encode(desk.catalog.choices.offered))

    missing = LIMITS.catalog_snapshot_bytes - size()
    assert 0 < missing < 256 * 1000
    short, long = divmod(missing, 1000)
    assert short < 200

    def lengthen(extra: int) -> None:
        """Display names are what is left to make it exact: ``null`` takes four bytes, quotes two."""
        grown = [
            entry("a", each, display_name="-" * (short + 2 + (number < extra)))
            for number, each in enumerate(names[:1000])
        ]
        house.put("a", grown)

    lengthen(long)
    assert size() == LIMITS.catalog_snapshot_bytes
    lengthen(long + 1)
    assert _code(desk.page) is TOO_MUCH
    lengthen(long - 1)
    assert _code(desk.page) is None


def test_bytes_and_entries_of_pages(house: House) -> None:
    """CAT-52 to CAT-54, EXT-STATUS-13: metadata and statuses included, as large as fits."""
    desk, _ = _large(house)
    pages = desk.pages()
    sizes = [len(msgspec.json.encode(page)) for page in pages]
    assert max(sizes) <= 32768
    assert min(sizes[:-1]) > 32768 - 1000  # not one choice more would have fitted
    assert {len(page.choices) for page in pages[:-1]} < set(range(30, 100))
    many = [custom(f"p{number}-" + "x" * 40) for number in range(27)]
    desk = Desk(house, custom("a", *(each.model for page in pages for each in page.choices)), *many)
    status = desk.catalog.status(None, None, 100, None)
    assert len(status.providers) == 31
    assert 32768 - 1000 < len(msgspec.json.encode(status)) <= 32768
    assert 0 < len(status.choices) < len(desk.page().choices)


def test_a_page_is_filled_to_its_last_byte(house: House) -> None:
    """CAT-52: 32,768 bytes with all metadata, and a byte more is one choice less."""
    names = [f"m{number:02d}" for number in range(99)]

    def page(last: int) -> tuple[int, int]:
        """Choices and bytes of the first page, with a name of so many bytes on its last choice."""
        long = dict.fromkeys(names, "-" * 120) | {names[last_shown]: "-" * last}
        house.put("bench", [entry("bench", each, display_name=long[each]) for each in names])
        first = Desk(house, custom("bench", *names)).page()
        return len(first.choices), len(msgspec.json.encode(first))

    last_shown = 0
    count, _ = page(120)
    last_shown = count - 1
    room = 32768 - page(120)[1]
    assert 0 < room < 400
    if room > 136:  # the name would get too long: let the one before take some
        names[last_shown - 1] += "-" * (room - 100)
        room = 32768 - page(120)[1]
    assert page(120 + room) == (count, 32768)
    assert page(120 + room + 1)[0] == count - 1


@pytest.mark.parametrize(("limit", "given"), [(1, 1), (99, 99), (100, 100)])
def test_entries_of_a_page(house: House, limit: int, given: int) -> None:
    models = [f"m{number}" for number in range(150)]
    house.put("bench", models)
    assert len(Desk(house, custom("bench", *models)).page(limit=limit).choices) == given


def test_a_status_page_of_32_long_names_without_choices(house: House) -> None:
    desk = Desk(house, *(custom(f"p{number:02d}" + "-x" * 30) for number in range(29)))
    assert len(msgspec.json.encode(desk.catalog.status(None, None, 100, None))) < 8192


@pytest.mark.parametrize(("seconds", "code"), [(1.999, None), (2.0, None), (2.001, TOO_MUCH)])
def test_the_deadline_of_a_scan(house: House, seconds: float, code: Code | None) -> None:
    """CAT-61, CAT-66: looked at after each step, by an injected clock."""
    house.put()
    still = StillClock()
    desk = Desk(house, custom("bench", "tiny"), clock=still.clock)
    asked = desk.catalog._readiness

    def slow(provider: Any) -> Any:
        still.sleep(seconds)
        return asked(provider)

    desk.catalog._readiness = slow
    assert _code(desk.page) is code


def test_a_deadline_passed_in_a_continuation_is_stale(house: House) -> None:
    """CAT-46, D78."""
    house.put("bench", ["a", "b"])
    still = StillClock()
    desk = Desk(house, custom("bench", "a", "b"), clock=still.clock)
    first = desk.page(limit=1)
    asked = desk.catalog._readiness

    def slow(provider: Any) -> Any:
        still.sleep(3)
        return asked(provider)

    desk.catalog._readiness = slow
    assert refusal(lambda: desk.page(first)) is Code.STALE_CATALOG
    desk.catalog._readiness = asked
    assert refusal(lambda: desk.page(first)) is Code.STALE_CATALOG


# what cannot be read


def _link(path: Path) -> None:
    os.rename(path, path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


def _dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _socket(path: Path) -> None:
    path.unlink()
    here = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize("spoil", [_link, _dangling, _fifo, _directory, _socket])
@pytest.mark.parametrize("enabled", [("tiny",), ()])
def test_what_is_no_regular_file(house: House, spoil: Callable[[Path], None], enabled: tuple[str, ...]) -> None:
    """CAT-42, EXT-STATUS-21: never a format status, and an unused provider makes no difference."""
    spoil(house.put())
    desk = Desk(house, custom("bench", *enabled))
    assert refusal(desk.page) is UNSAFE
    assert refusal(desk.statuses) is UNSAFE


def test_a_fifo_is_not_even_opened(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """That alone would wake whoever waits at its other end."""
    _fifo(house.put())
    real, opened = os.open, []

    def open_(path: Any, *rest: Any, **more: Any) -> int:
        opened.append(str(path))
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", open_)
    assert refusal(Desk(house, custom()).page) is UNSAFE
    assert "bench.json" not in opened


@pytest.mark.parametrize("spoil", [_link, _fifo])
def test_a_file_that_is_exchanged_while_it_is_looked_at(
    house: House, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], None]
) -> None:
    """What was looked at by name is looked at again once it is open."""
    path = house.put()
    real = files.status

    def status(name: str, directory: int) -> os.stat_result | None:
        found = real(name, directory)
        if name == path.name:
            spoil(path)
        return found

    monkeypatch.setattr(files, "status", status)
    assert refusal(Desk(house, custom()).page) is UNSAFE


@pytest.mark.parametrize("which", ["cache", "model-catalog"])
def test_a_folder_that_is_a_link(house: House, which: str) -> None:
    """ROOT-12."""
    house.put()
    folder = house.folder if which == "model-catalog" else house.folder.parent
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))
    assert refusal(Desk(house, custom()).page) is UNSAFE


def test_a_folder_that_is_a_file(house: House) -> None:
    house.folder.rmdir()
    house.folder.write_bytes(b"")
    assert refusal(Desk(house, custom()).page) is UNSAFE


def test_loose_permissions_and_more_links_are_no_fault(house: House) -> None:
    """ROOT-04: a cache holds no secret, other programs may write it as they like."""
    path = house.put()
    path.chmod(0o666)
    os.link(path, path.with_suffix(".again"))
    assert Desk(house, custom("bench", "tiny")).models() == ["tiny"]


@pytest.mark.parametrize("which", ["file", "folder"])
def test_mode_000(house: House, which: str) -> None:
    """Tried by somebody whom it forbids things: root is no proof."""
    path = house.put()
    _open_up(house)
    (path if which == "file" else house.folder).chmod(0)
    with Nursery() as nursery:
        assert nursery.ask("read", house.path) == 0
    (path if which == "file" else house.folder).chmod(0o700)


def _open_up(house: House) -> None:
    """Let others get to the root; pytest keeps its directories to itself."""
    if IS_ROOT:
        for path in (house.path, *house.path.rglob("*")):
            if path.name != "sessions":
                os.chown(path, NOBODY, NOBODY)
        for path in house.path.parents:
            if "pytest" in str(path):
                path.chmod(0o711)


def test_no_descriptor_left_is_unavailable_not_missing(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.put()
    desk = Desk(house, custom("bench", "tiny"))
    real = os.open

    def open_(path: Any, *rest: Any, **more: Any) -> int:
        if str(path).endswith(".json"):
            raise OSError(24, "Too many open files")
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", open_)
    assert refusal(desk.page) is UNSAFE


def test_no_descriptor_is_left_open(house: House) -> None:
    house.put()
    desk = Desk(house, custom("bench", "tiny"))
    before = len(os.listdir("/dev/fd"))
    for spoil in (lambda path: None, _link, _fifo):
        house.file().unlink()
        spoil(house.put())
        _code(desk.page)
    assert len(os.listdir("/dev/fd")) == before
