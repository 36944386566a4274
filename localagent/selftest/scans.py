"""Faults of scans: their steps, their validation, their errors; and what a scan or a listing leaves behind."""

import json
import os
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from .mutant import fault
from .tools import answered, around, failing, put

_MIB = 1024 * 1024


def _stepping(**changed: int) -> None:
    """Let the steps of a scan have other bounds."""
    from localagent.sessions import discovery

    put(discovery, "_BOUNDS", replace(discovery._BOUNDS, **changed))


@fault
def steps_without_end_of_lines() -> None:
    """A step of a scan looks at as many lines as there are."""
    _stepping(step_lines=10_000_000)


@fault
def steps_without_end_of_bytes() -> None:
    """A step of a scan reads up to 64 MiB."""
    _stepping(step_bytes=64 * _MIB)


@fault
def steps_without_end_of_names() -> None:
    """A step of a scan takes up to 4,096 names."""
    _stepping(step_directory_entries=4096)


@fault
def work_bound_is_an_error() -> None:
    """A step of a scan that has worked enough fails."""
    from localagent.protocol.codes import Code
    from localagent.sessions.discovery import Discovery
    from localagent.sessions.errors import StoreError

    @around(Discovery, "page")
    def page(original: Any, self: Any, *rest: Any) -> Any:
        given = original(self, *rest)
        if given.progress in ("directory_work", "record_work", "byte_work", "inventory_validation"):
            raise StoreError(Code.DISCOVERY_UNAVAILABLE)
        return given


@fault
def large_histories_passed_over() -> None:
    """A history that takes more than one step is left out."""
    from localagent.sessions.discovery import _Scan

    @around(_Scan, "step")
    def step(original: Any, self: Any, *rest: Any) -> Any:
        self._drop_reader()
        return original(self, *rest)


@fault
def begun_record_lost() -> None:
    """What a step has read of a record is forgotten by the next."""
    from localagent.sessions.discovery import _Scan

    @around(_Scan, "step")
    def step(original: Any, self: Any, *rest: Any) -> Any:
        if self._reading is not None:
            self._reading[0]._take()
        return original(self, *rest)


@fault
def scan_without_validation() -> None:
    """A scan is complete once all names were taken."""
    from localagent.sessions.discovery import _Scan

    put(_Scan, "_validate", lambda self, step: True)


@fault
def validation_in_one_step() -> None:
    """The second pass of a scan takes all names at once."""
    from localagent.sessions.discovery import _Scan

    @around(_Scan, "_validate")
    def validate(original: Any, self: Any, step: Any) -> Any:
        step.entries = 0
        return original(self, step)


@fault
def validation_compares_nothing() -> None:
    """The second pass of a scan, a step of its own, compares nothing."""
    from localagent.sessions.discovery import _BOUNDS, _Scan

    begun: list[Any] = []

    def validate(self: Any, step: Any) -> bool:
        if self in begun:
            return True
        begun[:] = [self]
        step.entries = _BOUNDS.step_directory_entries
        return False

    put(_Scan, "_validate", validate)


@fault
def validation_of_sessions_alone() -> None:
    """The second pass of a scan does not see how other files than sessions change."""
    from localagent.sessions import discovery

    @around(discovery, "entry_signature")
    def entry_signature(original: Any, name: str, found: Any) -> Any:
        return original(name, found) if name.endswith(".jsonl") else (found.st_ino,)


@fault
def renewal_ends_a_scan() -> None:
    """The renewal of a lease makes a scan stale."""
    from localagent.sessions import discovery
    from localagent.sessions.inventory import signature

    put(discovery, "entry_signature", lambda name, found: signature(found))


@fault
def scan_sees_writers_alone() -> None:
    """A scan looks for no lease but a writer's."""
    from localagent.sessions import discovery, inventory

    put(discovery, "locks_of", lambda session_id: inventory.locks_of(session_id)[:1])


def _recording(bytes_: int) -> None:
    from localagent.protocol.limits import LIMITS
    from localagent.sessions import inventory

    put(inventory, "LIMITS", replace(LIMITS, discover=replace(LIMITS.discover, record_bytes=bytes_)))


@fault
def record_bytes_over() -> None:
    """A record has up to 16 MiB."""
    _recording(16 * _MIB)


@fault
def record_bytes_below() -> None:
    """A record of 8 MiB is too long."""
    _recording(8 * _MIB - 1)


@fault
def long_record_left_out() -> None:
    """A history with a record of more than 4 MiB is left out."""
    from localagent.sessions.errors import BadRecord
    from localagent.sessions.inventory import Reader

    @around(Reader, "fill")
    def fill(original: Any, self: Any, most: int) -> Any:
        if self._begun_bytes > 4 * _MIB:
            raise BadRecord("a long record")
        return original(self, most)


@fault
def wrong_code_for_the_store() -> None:
    """A store that cannot be listed is told as too large."""
    failing("discovery_unavailable", "discovery_limit")


@fault
def error_names_the_file() -> None:
    """An error of a scan tells the file that it is about."""
    from .frames import rewriting

    def change(frame: dict[str, Any]) -> None:
        if frame.get("error") == {"code": "discovery_unavailable"}:
            frame["error"]["file"] = "sessions/bad name.jsonl"

    rewriting(change)


@fault
def cancelled_scan_goes_on() -> None:
    """A scan may be continued after a step that was cancelled."""
    from localagent.sessions.discovery import Discovery

    put(Discovery, "abandon", lambda self: None)


@fault
def failed_scan_goes_on() -> None:
    """A scan may be continued after an error, in the directory as it is then."""
    from localagent.sessions import discovery
    from localagent.sessions.errors import StoreError

    put(discovery.Discovery, "abandon", lambda self: None)
    failed: list[bool] = []

    @around(discovery.Discovery, "page")
    def page(original: Any, self: Any, *rest: Any) -> Any:
        before = self._scan, self._revision, self._cursor
        if failed:
            failed.clear()
            self._scan._identity = discovery._identity(self._scan._directory)
        try:
            return original(self, *rest)
        except StoreError:
            self._scan, self._revision, self._cursor = before
            failed[:] = [True]
            raise


@fault
def scan_never_complete() -> None:
    """The last page of a scan is not complete."""
    answered("session.discover", lambda result: replace(result, complete=False))


@fault
def scans_use_up_no_ids() -> None:
    """The ids of scan requests do not count."""
    from localagent.core import routes

    @around(routes, "identity")
    def identity(original: Any, request: Any, facts: Any) -> Any:
        failed = original(request, facts)
        if request.method == "session.discover":
            facts.ids.discard(request.id)
        return failed


# what a listing or a scan leaves behind


def written(root: Any, name: str, data: bytes, more: int = os.O_TRUNC) -> None:
    """Write or append a file in ``sessions/``, or one above it."""
    with root.sessions() as directory:
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | more, 0o600, dir_fd=directory)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)


def _ids(root: Any) -> list[str]:
    with root.sessions() as directory:
        return [name.removesuffix(".jsonl") for name in os.listdir(directory) if name.endswith(".jsonl")]


def _before_each(work: Callable[[Any], None], *, behind: bool = False) -> None:
    """Let every page of a listing or a scan do this to the root as well, before it or behind it."""
    from localagent.sessions.discovery import Discovery
    from localagent.sessions.listing import Listing

    for owner in (Listing, Discovery):

        @around(owner, "page")
        def page(original: Any, self: Any, *rest: Any) -> Any:
            if not behind:
                work(self._root)
            given = original(self, *rest)
            if behind:
                work(self._root)
            return given


@fault
def listing_repairs() -> None:
    """A listing cuts a torn line off a history."""

    def repair(root: Any) -> None:
        with root.sessions() as directory:
            for name in _ids(root):
                descriptor = os.open(f"{name}.jsonl", os.O_RDWR | os.O_CLOEXEC, dir_fd=directory)
                with os.fdopen(descriptor, "r+b") as file:
                    text = file.read()
                    if text and not text.endswith(b"\n"):
                        file.truncate(text.rfind(b"\n") + 1)

    _before_each(repair)


@fault
def listing_writes_history() -> None:
    """A listing leaves a record in every history."""

    def write(root: Any) -> None:
        for name in _ids(root):
            record = {"event_type": "note", "timestamp": "2026-05-05T05:05:05Z", "session_id": name, "payload": 0}
            written(root, f"{name}.jsonl", json.dumps(record).encode() + b"\n", os.O_APPEND)

    _before_each(write, behind=True)


@fault
def listing_makes_a_history() -> None:
    """A listing leaves an empty history."""
    _before_each(lambda root: written(root, "listed.jsonl", b""))


@fault
def listing_writes_settings() -> None:
    """A listing writes the settings that are missing."""
    _before_each(lambda root: written(root, "../settings.json", b"{}"))


@fault
def listing_makes_side_files() -> None:
    """A listing leaves a side file for every history."""

    def write(root: Any) -> None:
        for name in _ids(root):
            written(root, f"{name}.metadata.json", b"{}")

    _before_each(write)


@fault
def listing_prunes() -> None:
    """A listing removes what is older than ten years."""

    def prune(root: Any) -> None:
        with root.sessions() as directory:
            for name in _ids(root):
                with os.fdopen(os.open(f"{name}.jsonl", os.O_RDONLY, dir_fd=directory), "rb") as file:
                    old = b'"timestamp":"200' in file.read()
                if old:
                    os.unlink(f"{name}.jsonl", dir_fd=directory)

    _before_each(prune)


@fault
def scan_plays_again() -> None:
    """A scan plays a turn."""
    from localagent.core.connection import Connection
    from localagent.core.fill import Answer
    from localagent.protocol.events import InputPersisted, RunFinished
    from localagent.protocol.results import DiscoverPage

    @around(Connection, "_send")
    def send(original: Any, self: Any, filled: Any, now: float) -> None:
        original(self, filled, now)
        if isinstance(filled, Answer) and isinstance(filled.result, DiscoverPage):
            run: dict[str, Any] = {"run_id": "again", "session_id": "still-3", "revision": "again"}
            original(self, InputPersisted(message_id="m1", **run), now)
            original(self, RunFinished(error_code=None, outcome="completed", persistence="durable", **run), now)


@fault
def titles_from_side_files() -> None:
    """A listing shows the title of the side file."""
    from localagent.sessions.listing import _Scan

    @around(_Scan, "_history")
    def history(original: Any, self: Any, session_id: str, inventory: Any, directory: int) -> None:
        original(self, session_id, inventory, directory)
        try:
            descriptor = os.open(f"{session_id}.metadata.json", os.O_RDONLY, dir_fd=directory)
        except OSError:
            return
        with os.fdopen(descriptor, "rb") as file:
            self._entries[-1] = replace(self._entries[-1], title=json.load(file)["title"])
