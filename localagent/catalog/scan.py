"""One bounded look at all caches, and at whether their providers are ready: what a catalog request costs (CAT-62).

Read safely: below the root no link is followed, and only regular files are opened (CACHE-01, ROOT-12). Nothing is
written and nobody is asked. A bound that is passed ends the scan without a result (CAT-39 to CAT-41); so does what
cannot be read safely (CAT-42).
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Final, NamedTuple

from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS
from localagent.sessions import files
from localagent.sessions.clock import CancelCheck, Clock, proceed
from localagent.sessions.errors import StoreError
from localagent.sessions.paths import Root
from localagent.settings.snapshot import Authentication, Provider

from .choices import Cached, Choices, embedded, is_relevant, resolve, scanned
from .document import MISSING, Judged, file_of, judge

CACHE: Final = "cache"
FOLDER: Final = "model-catalog"

Readiness = Callable[[Provider], Authentication]
"""Tells whether a provider is ready, locally; asked at most once per relevant provider and scan (CAT-64)."""

_SAFELY: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_FILE: Final = b"\1"


class Seen(NamedTuple):
    """The bytes of all caches, read but not judged yet, and who is ready; equal fingerprints say: nothing changed."""

    files: tuple[tuple[Provider, bytes | None, Authentication | None], ...]
    fingerprint: bytes
    """Over cache contents and readiness (CAT-45)."""
    meter: "_Meter"

    def judged(self, selected: str | None) -> Choices:
        """Decode and resolve what was read, within the time of the same scan. Raises as :func:`scan`."""
        caches = []
        for provider, data, authentication in self.files:
            self.meter.proceed()
            judged = _judged(provider, data)
            self.meter.found(len(judged.entries))
            caches.append(Cached(provider, judged, authentication))
        self.meter.proceed()
        choices = resolve(caches, selected)
        self.meter.proceed()
        return choices


class Found(NamedTuple):
    """What a scan found, and the fingerprint over cache contents and readiness (CAT-45)."""

    choices: Choices
    fingerprint: bytes


def scan(
    root: Root,
    providers: Iterable[Provider],
    selected: str | None,
    readiness: Readiness,
    clock: Clock,
    cancelled: CancelCheck,
) -> Found:
    """Look at every provider that :func:`.choices.scanned` names; ``selected`` is the current one's id.

    Raises Cancelled, or StoreError with ``catalog_limit`` or ``catalog_unavailable``.
    """
    seen = look(root, providers, selected, readiness, clock, cancelled)
    return Found(seen.judged(selected), seen.fingerprint)


def look(
    root: Root,
    providers: Iterable[Provider],
    selected: str | None,
    readiness: Readiness,
    clock: Clock,
    cancelled: CancelCheck,
) -> Seen:
    """The first half of a scan: all that is read, and all that is asked. Raises as :func:`scan`."""
    meter = _Meter(clock, cancelled)
    covered = scanned(providers)
    if len(covered) > LIMITS.catalog_providers:
        raise _limit("providers")
    fingerprint = hashlib.sha256()
    seen = []
    with ExitStack() as stack:
        folder = open_folder(root, stack)
        for provider in covered:
            meter.proceed()
            data = None
            if folder is not None and provider.kind != "scripted":
                data = read(file_of(provider.id), folder, meter.room())
            if data is not None:
                meter.read(len(data))
                fingerprint.update(_FILE + hashlib.sha256(data).digest())
            authentication = readiness(provider) if is_relevant(provider, selected) else None
            fingerprint.update(repr((provider.id, authentication)).encode())
            seen.append((provider, data, authentication))
            meter.proceed()
    return Seen(tuple(seen), fingerprint.digest(), meter)


def _judged(provider: Provider, data: bytes | None) -> Judged:
    if provider.kind == "scripted":
        return embedded(provider)
    return MISSING if data is None else judge(data, provider)


def open_folder(root: Root, stack: ExitStack) -> int | None:
    """Open the directory of the caches, for as long as ``stack`` lasts; None if there is none yet.

    Raises StoreError(``catalog_unavailable``) for anything else that stands there, a link included.
    """
    try:
        directory = stack.enter_context(root.directory())
        for name in (CACHE, FOLDER):
            directory = stack.enter_context(files.opened(name, directory))
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise _unavailable(f"{FOLDER}: {fault.strerror}") from None
    return directory


def read(name: str, folder: int, most: int = LIMITS.catalog_file_bytes) -> bytes | None:
    """Return all of a cache file, at most ``most`` bytes; None if there is none (CACHE-01).

    Raises StoreError: ``catalog_limit`` for a longer one, ``catalog_unavailable`` for one that is a link, is no regular
    file, or cannot be read. Owner and permissions are not judged: a cache holds no secret (ROOT-04).
    """
    try:
        found = files.status(name, folder)
        if found is None:
            return None
        _require_regular(name, found)  # opening a FIFO or a device may already do something
        descriptor = os.open(name, _SAFELY, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise _unavailable(f"{name}: {fault.strerror}") from None
    try:
        _require_regular(name, os.fstat(descriptor))
        return _read_all(name, descriptor, most)
    except OSError as fault:
        raise _unavailable(f"{name}: {fault.strerror}") from None
    finally:
        os.close(descriptor)


def _read_all(name: str, descriptor: int, most: int) -> bytes:
    """Read to the end, whatever length was told: the file may grow meanwhile."""
    pieces: list[bytes] = []
    rest = most + 1
    while rest and (piece := os.read(descriptor, rest)):
        pieces.append(piece)
        rest -= len(piece)
    if not rest:
        raise _limit(f"bytes of {name}")
    return b"".join(pieces)


def _require_regular(name: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _unavailable(f"{name}: not a regular file")


class _Meter:
    """The work of one scan against its bounds (CAT-55 to CAT-58, CAT-61). Whatever passes one is ``catalog_limit``."""

    def __init__(self, clock: Clock, cancelled: CancelCheck) -> None:
        self._steady, self._cancelled = clock.steady, cancelled
        self._deadline = clock.steady() + LIMITS.catalog_scan_ms / 1000
        self._bytes = self._models = 0

    def proceed(self) -> None:
        """Between steps. Raises Cancelled, or StoreError when 2,000 ms have passed."""
        proceed(self._cancelled)
        if self._steady() > self._deadline:
            raise _limit("time")

    def room(self) -> int:
        """How many bytes the next cache may have."""
        return min(LIMITS.catalog_file_bytes, LIMITS.catalog_scan_bytes - self._bytes)

    def read(self, count: int) -> None:
        """So many bytes were read."""
        self._bytes += count

    def found(self, models: int) -> None:
        """So many models came with the next cache, whether or not any of them is admitted."""
        self._models += models
        if self._models > LIMITS.catalog_models:
            raise _limit("models")


def _limit(what: str) -> StoreError:
    return StoreError(Code.CATALOG_LIMIT, f"too much: {what}")


def _unavailable(why: str) -> StoreError:
    return StoreError(Code.CATALOG_UNAVAILABLE, why)
