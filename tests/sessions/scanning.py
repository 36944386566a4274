"""Tools of the listing and discovery tests: scans of a house, hostile entries, and what must not change meanwhile."""

import itertools
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from localagent.protocol.codes import Code
from localagent.protocol.results import DiscoverPage, ListingEntry, ListingPage
from localagent.sessions.clock import SYSTEM, CancelCheck, Clock, never
from localagent.sessions.discovery import Discovery
from localagent.sessions.errors import StoreError
from localagent.sessions.inventory import Attachment
from localagent.sessions.listing import Listing

from .kit import House, watching

NOBODY = Attachment()


def fresh_ids() -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: f"fresh-{next(numbers)}"


class Scans:
    """Both ways to see the sessions of a house."""

    def __init__(self, house: House, clock: Clock = SYSTEM) -> None:
        fresh = fresh_ids()
        self.listing = Listing(house.root, house.cwd, fresh, clock)
        self.discovery = Discovery(house.root, house.cwd, fresh, clock)
        self.attachment = NOBODY
        self.cancelled: CancelCheck = never

    def page(self, after: ListingPage | None = None, limit: int = 100) -> ListingPage:
        """The first page, or the one after a page."""
        revision, cursor = (None, None) if after is None else (after.revision, after.next_cursor)
        return self.listing.page(revision, cursor, limit, self.attachment, self.cancelled)

    def step(self, after: DiscoverPage | None = None, limit: int = 100) -> DiscoverPage:
        """The first step, or the one after a step."""
        revision, cursor = (None, None) if after is None else (after.revision, after.next_cursor)
        return self.discovery.page(revision, cursor, limit, self.attachment, self.cancelled)

    def listed(self, limit: int = 100) -> list[ListingEntry]:
        """All that a listing shows."""
        return [entry for page in self.list_pages(limit) for entry in page.sessions]

    def list_pages(self, limit: int = 100) -> list[ListingPage]:
        pages = [self.page(limit=limit)]
        while pages[-1].next_cursor is not None:
            pages.append(self.page(pages[-1], limit))
        return pages

    def discovered(self, limit: int = 100) -> list[ListingEntry]:
        """All that a discovery shows."""
        return [entry for page in self.discover_pages(limit) for entry in page.sessions]

    def discover_pages(self, limit: int = 100) -> list[DiscoverPage]:
        pages = [self.step(limit=limit)]
        while not pages[-1].complete:
            pages.append(self.step(pages[-1], limit))
        return pages


def record(house: House, session_id: str, text: str = "hello", number: int = 1, **fields: object) -> bytes:
    moment = f"2026-03-02T08:{number // 60 % 60:02d}:{number % 60:02d}Z"
    return house.line(session_id, "user_input", {"origin": "user", "text": text}, **{"timestamp": moment, **fields})


def trips(moment: int) -> CancelCheck:
    """A token that is found set when it is asked for the ``moment``-th time, counted from 0."""
    calls = itertools.count()
    return lambda: next(calls) == moment


def sized(house: House, session_id: str, size: int) -> bytes:
    """One record of exactly ``size`` bytes, LF included."""
    frame = len(record(house, session_id, "")) + 1
    return record(house, session_id, "x" * (size - frame)) + b"\n"


def put(house: House, *session_ids: str) -> None:
    """Sessions of one record each."""
    for session_id in session_ids:
        house.put(session_id, record(house, session_id))


def ids(entries: list[ListingEntry] | tuple[ListingEntry, ...]) -> list[str]:
    return [entry.session_id for entry in entries]


def shown_or_refused(scan: Callable[[], list[ListingEntry]]) -> list[str] | Code:
    """The ids that a scan shows, in order, or the code it is refused with."""
    try:
        return sorted(ids(scan()))
    except StoreError as fault:
        return fault.code


def hostile_entries(base: Path) -> dict[str, Callable[[Path], None]]:
    """What may stand where a session file should: name -> how it is made."""

    def link(target: str) -> Callable[[Path], None]:
        return lambda path: path.symlink_to(target)

    def hard(path: Path) -> None:
        outside = base / f"outside-{path.name}"
        outside.touch(0o600)
        os.link(outside, path)

    def bound(path: Path) -> None:
        here = os.getcwd()
        os.chdir(path.parent)  # the name of a socket has room for 107 bytes
        try:
            with socket.socket(socket.AF_UNIX) as end:
                end.bind(path.name)
        finally:
            os.chdir(here)
        path.chmod(0o600)

    def mode(bits: int) -> Callable[[Path], None]:
        def make(path: Path) -> None:
            path.touch()
            path.chmod(bits)

        return make

    (base / "outside").write_bytes(b"")
    return {
        "outside": link(str(base / "outside")),
        "loop": link("loop.jsonl"),
        "dangling": link("nothing"),
        "hard": hard,
        "fifo": lambda path: os.mkfifo(path, 0o600),
        "socket": bound,
        "directory": lambda path: path.mkdir(0o700),
        "group-readable": mode(0o640),
        "world-readable": mode(0o604),
    }


@contextmanager
def untouched(house: House) -> Iterator[None]:
    """Nothing below the root is written, created, removed or touched meanwhile, no lease taken (EXT-DISC-88 to -91)."""

    def state() -> list[object]:
        found: list[object] = []
        for path in sorted(Path(house.root.path).rglob("*")):
            status = path.lstat()
            found.append((str(path), status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns))
            found.append(status.st_ctime_ns)
        return found

    before, steps = state(), list[object]()
    with watching(lambda step, done: steps.append(step)):
        yield
    assert (state(), steps) == (before, [])


def bad_histories(house: House) -> dict[str, bytes]:
    """Contents that no session has (REC-04 to REC-06): name, which is the id -> bytes."""
    return {
        name: content.replace(b"ID", name.encode())
        for name, content in {
            "torn": record(house, "ID") + b"\n" + record(house, "ID")[:-3],
            "blank": record(house, "ID") + b"\n\n" + record(house, "ID") + b"\n",
            "no-json": b"hello\n",
            "array": b"[]\n",
            "bom": b"\xef\xbb\xbf" + record(house, "ID") + b"\n",
            "nul": record(house, "ID") + b"\n" + bytes(64) + b"\n",
            "foreign": record(house, "other") + b"\n",
            "twice": record(house, "ID")[:-1] + b',"payload":{}}\n',
            "not-utf8": record(house, "ID").replace(b"hello", b"\xff") + b"\n",
            "surrogate": record(house, "ID").replace(b"hello", rb"\ud800") + b"\n",
            "no-time": record(house, "ID", timestamp="2026-02-30T08:00:00Z") + b"\n",
            "deep": house.line("ID", "x", json.loads("[" * 127 + "]" * 127)) + b"\n",
            "joined": record(house, "ID") + record(house, "ID") + b"\n",
            "infinite": record(house, "ID").replace(b'"hello"', b"1e999") + b"\n",
        }.items()
    }
