"""Faults of what is stored: bounds of histories, listings and caches, summaries, selections, leases."""

import os
import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from .mutant import fault
from .scans import written
from .tools import around, bounds, failing, put, put_item

_MIB = 1024 * 1024


# histories


@fault
def history_parts_over() -> None:
    """A history has up to 20,000 parts."""
    from localagent.sessions import history, projection

    put(projection, "ENTRIES", 20_000)
    bounds(history, history_snapshot_parts=20_000)


@fault
def history_parts_below() -> None:
    """A history has up to 9,999 parts."""
    from localagent.sessions import history

    bounds(history, history_snapshot_parts=9_999)


@fault
def history_bytes_over() -> None:
    """A history has up to 16 MiB."""
    from localagent.sessions import history, projection

    put(projection, "TEXT_BYTES", 16 * _MIB)
    bounds(history, history_snapshot_bytes=16 * _MIB)


@fault
def history_bytes_below() -> None:
    """A history has up to 4 MiB."""
    from localagent.sessions import history

    bounds(history, history_snapshot_bytes=4 * _MIB)


@fault
def history_lines_over() -> None:
    """A history is read up to 100,001 lines."""
    from localagent.sessions import journal

    bounds(journal, history_file_lines=100_001)


@fault
def history_lines_below() -> None:
    """A history is read up to 99,999 lines."""
    from localagent.sessions import journal

    bounds(journal, history_file_lines=99_999)


@fault
def history_file_over() -> None:
    """A history is read, and appended to, up to 128 MiB."""
    from localagent.sessions import journal

    bounds(journal, history_file_bytes=128 * _MIB)


@fault
def history_file_below() -> None:
    """A history is read up to 64 MiB less a byte."""
    from localagent.sessions import journal

    bounds(journal, history_file_bytes=64 * _MIB - 1)


def _summarized(change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    from localagent.sessions.projection import _EFFECTS, _P

    summary = _P._reasoning_summary
    put_item(_EFFECTS, "reasoning_summary", lambda self, given: summary(self, change(given)))


@fault
def summaries_without_identity() -> None:
    """A summary that comes again in its turn is another entry."""
    _summarized(lambda given: {key: value for key, value in given.items() if key != "item_id"})


@fault
def summaries_of_one_item() -> None:
    """All summaries of a turn are one entry."""
    _summarized(lambda given: {**given, "item_id": "the summary"})


# selections


@fault
def wrong_code_for_saving() -> None:
    """A selection that cannot be saved is told as a session that is invalid."""
    failing("persistence_failed", "session_invalid")


@fault
def unsaved_selection_taken() -> None:
    """A selection that could not be saved has a new revision all the same."""
    from .frames import rewriting

    failed: list[bool] = []

    def change(frame: dict[str, Any]) -> None:
        if frame.get("error") == {"code": "persistence_failed"}:
            failed[:] = [True]
        elif failed and (frame.get("result") or {}).get("selection"):
            frame["result"]["selection"]["revision"] = "taken"

    rewriting(change)


@fault
def side_file_counts() -> None:
    """A selection is not saved while its side file cannot be written."""
    from localagent.sessions.errors import AppendFailed, Outcome
    from localagent.sessions.handle import Handle

    @around(Handle, "append")
    def append(original: Any, self: Any, drafts: Any, *rest: Any) -> Any:
        try:
            written(self._desk.root, f"{self.session_id}.metadata.json", b"{}")
        except OSError as refused:
            raise AppendFailed(Outcome.REFUSED, str(refused)) from None
        return original(self, drafts, *rest)


@fault
def damage_kept_silent() -> None:
    """A selection goes into a history that nobody can read, and the answer does not say so."""
    from localagent.catalog.selector import Changed, Selector

    @around(Selector, "change")
    def change(original: Any, self: Any, asked: Any, session: Any, verify: Any, *rest: Any) -> Any:
        done = original(self, asked, session, lambda: None, *rest)
        return Changed(replace(done.result, notices=()), done.history_revision)


@fault
def other_names_of_a_choice() -> None:
    """A choice may be named otherwise: by its id, its label, in capitals."""
    from localagent.catalog.choices import Choices

    def plain(name: str | None) -> str:
        return (name or "").lower().rpartition("/")[2].replace(" ", "-")

    @around(Choices, "find")
    def find(original: Any, self: Any, provider: str, model: str) -> Any:
        for each in self.offered:
            names = {plain(each.provider), plain(each.provider_name)}, {plain(each.model), plain(each.model_name)}
            if plain(provider) in names[0] and plain(model) in names[1]:
                return each
        return original(self, provider, model)


# listings


def _listing(**changed: int) -> None:
    from localagent.sessions import listing

    bounds(listing, **changed)


@fault
def listed_bytes_over() -> None:
    """A history of more than 8 MiB is listed."""
    _listing(discovery_session_bytes=16 * _MIB)


@fault
def listed_bytes_below() -> None:
    """A history of 8 MiB is too large for a listing."""
    _listing(discovery_session_bytes=8 * _MIB - 1)


@fault
def listed_lines_over() -> None:
    """A history of 10,001 lines is listed."""
    _listing(discovery_session_lines=10_001)


@fault
def listed_lines_below() -> None:
    """A history of 10,000 lines is too long for a listing."""
    _listing(discovery_session_lines=9_999)


@fault
def scanned_bytes_over() -> None:
    """A listing reads more than 64 MiB."""
    _listing(discovery_scan_bytes=128 * _MIB)


@fault
def scanned_bytes_below() -> None:
    """A listing reads less than 64 MiB."""
    _listing(discovery_scan_bytes=64 * _MIB - 1)


@fault
def scanned_lines_over() -> None:
    """A listing reads 100,001 lines."""
    _listing(discovery_scan_lines=100_001)


@fault
def scanned_lines_below() -> None:
    """A listing reads 99,999 lines."""
    _listing(discovery_scan_lines=99_999)


@fault
def wrong_code_for_a_change() -> None:
    """What changes under a listing, which takes its time, is told as a store that cannot be listed."""
    from localagent.sessions.listing import _Scan

    failing("stale_revision", "discovery_unavailable")

    @around(_Scan, "_history")
    def history(original: Any, self: Any, *rest: Any) -> None:
        time.sleep(0.05)
        original(self, *rest)


@fault
def passes_share_their_bound() -> None:
    """Both passes over the directory may take 4,096 names together."""
    _listing(discovery_directory_entries=2048)


def _adding_up(*, anew: bool) -> None:
    """Let the lines of several requests count together; ``anew``: a fresh listing begins to count."""
    from localagent.sessions.listing import Listing, _Meter

    lines = [0]

    @around(Listing, "page")
    def page(original: Any, self: Any, revision: Any, *rest: Any) -> Any:
        if anew and revision is None:
            lines[0] = 0
        return original(self, revision, *rest)

    @around(_Meter, "looked_at")
    def looked_at(original: Any, self: Any, count: int) -> None:
        original(self, count)
        lines[0] += count

    @around(_Meter, "lines_left")
    def lines_left(original: Any, self: Any) -> int:
        left: int = original(self) + self._lines - lines[0]
        return max(left, 0)


@fault
def work_adds_up() -> None:
    """The lines of all pages of a listing count together."""
    _adding_up(anew=True)


@fault
def work_never_forgotten() -> None:
    """The lines of all listings count together."""
    _adding_up(anew=False)


@fault
def renewal_ends_a_listing() -> None:
    """The renewal of a lease makes a listing stale."""
    from localagent.sessions.inventory import locks_of
    from localagent.sessions.listing import _Scan

    @around(_Scan, "_inventory")
    def inventory(original: Any, self: Any) -> Any:
        found = original(self)
        with self._root.sessions() as directory:
            for session_id in found.leases:
                times = [
                    os.stat(name, dir_fd=directory).st_mtime_ns
                    for name in locks_of(session_id)
                    if os.access(name, os.F_OK, dir_fd=directory)
                ]
                found.leases[session_id] = (*found.leases[session_id], *times)
        return found


# leases


@fault
def leases_never_let_go() -> None:
    """A session that was replaced, or the last one, is never free again."""
    from localagent.sessions.ownership import Ownership

    put(Ownership, "_let_go", lambda self: None)


@fault
def leases_let_go_at_once() -> None:
    """An attached session is held by nobody."""
    from localagent.sessions.ownership import Ownership

    @around(Ownership, "__init__")
    def init(original: Any, self: Any, *rest: Any) -> None:
        original(self, *rest)
        self._let_go()


# caches


def _caching(**changed: int) -> None:
    from localagent.catalog import scan

    bounds(scan, **changed)


@fault
def cache_bytes_over() -> None:
    """A cache of more than 1 MiB is read."""
    _caching(catalog_file_bytes=2 * _MIB)


@fault
def cache_bytes_below() -> None:
    """A cache of 1 MiB is too large."""
    _caching(catalog_file_bytes=_MIB - 1)


@fault
def cached_bytes_over() -> None:
    """Caches of more than 8 MiB together are read."""
    _caching(catalog_scan_bytes=16 * _MIB)


@fault
def cached_bytes_below() -> None:
    """Caches of 8 MiB together are too large."""
    _caching(catalog_scan_bytes=8 * _MIB - 1)
