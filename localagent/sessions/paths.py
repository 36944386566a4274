"""Where the store is, what of it must exist, and the identity of a working directory in it (ROOT, ENV-35 to ENV-43)."""

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from localagent.protocol.codes import Code

from . import disk, files, leases
from .clock import SYSTEM, CancelCheck, Clock, never
from .disk import Step
from .errors import Held, StoreError, Unsafe

SETTINGS: Final = "settings.json"
_FIRST_SETTINGS: Final = b'{\n  "schema_version": 2\n}\n'
_FOLDERS: Final = ("cache", "state", "checkpoints", "sessions")  # in this order, after the root (ROOT-06)


def locate(environ: Mapping[str, str]) -> str:
    """Say where the root is to be, creating nothing (ROOT-01, ROOT-02).

    Raises StoreError(``configuration_invalid``) for a value that is empty, relative, or names something that is no
    directory; a link to a directory is one.
    """
    path = environ.get("MC_HOME")
    if path is None:
        path = _default()
    _require_absolute(path)
    if os.path.lexists(path) and not os.path.isdir(path):
        raise StoreError(Code.CONFIGURATION_INVALID, f"{path} is not a directory")
    return path


def _require_absolute(path: str) -> None:
    if not os.path.isabs(path):  # nor is the empty path
        raise StoreError(Code.CONFIGURATION_INVALID, "the root is not an absolute path")


def _default() -> str:
    import platformdirs  # only who has no MC_HOME pays for it

    return platformdirs.user_data_dir("localagent", appauthor=False)


@dataclass(frozen=True, slots=True)
class Root:
    """The canonical root: it names the store, and every later path is built from it (ROOT-03)."""

    path: str

    @contextmanager
    def directory(self) -> Iterator[int]:
        """Open the root itself. Raises OSError."""
        with files.opened(self.path) as descriptor:
            yield descriptor

    @contextmanager
    def sessions(self) -> Iterator[int]:
        """Open ``sessions/`` and look again whether it may be used (ROOT-05). Raises Unsafe or OSError.

        It is opened anew for each operation, so that whoever moves the folder away moves it away for us too.
        """
        with files.opened(self.path) as root, files.opened("sessions", root) as descriptor:
            files.require_private(os.fstat(descriptor))
            yield descriptor


def prepare(path: str, clock: Clock = SYSTEM, cancelled: CancelCheck = never) -> Root:
    """Create what is missing, in the order of ROOT-06, and return the root under its canonical name (ROOT-03).

    Raises StoreError: ``configuration_invalid`` when ``sessions/`` is not a folder of ours alone (ROOT-05) or ``path``
    is not absolute, ``startup_failed`` when something cannot be created (BASE-OP-82). Raises Cancelled.
    """
    _require_absolute(path)
    try:
        _create_root(path)
        root = Root(canonical(path))
        with root.directory() as directory:
            for name in _FOLDERS:
                disk.make_directory(Step.MAKE_DIRECTORY, name, directory)
        _judge_sessions(root)
        _create_settings(root, clock, cancelled)
    except (OSError, Unsafe, Held) as fault:
        raise StoreError(Code.STARTUP_FAILED, str(fault)) from None
    return root


def _judge_sessions(root: Root) -> None:
    try:
        with root.sessions():
            pass
    except (OSError, Unsafe) as fault:
        raise StoreError(Code.CONFIGURATION_INVALID, f"sessions/: {fault}") from None


def _create_root(path: str) -> None:
    missing = []
    while not os.path.lexists(path):
        path, name = os.path.split(path)
        if name:  # none after a trailing slash
            missing.append(name)
    for name in reversed(missing):
        parent = os.open(path, os.O_RDONLY | os.O_DIRECTORY)  # above the root links are the user's own affair
        try:
            disk.make_directory(Step.MAKE_DIRECTORY, name, parent)
        finally:
            os.close(parent)
        path = os.path.join(path, name)


def _create_settings(root: Root, clock: Clock, cancelled: CancelCheck) -> None:
    """Write the first settings, unless there are some; its lease keeps two first starts apart (LEASE-01)."""
    with root.directory() as directory:
        if files.status(SETTINGS, directory) is not None:
            return
        with leases.waiting(root.directory, SETTINGS, clock, cancelled):
            if files.status(SETTINGS, directory) is None:
                files.replace(SETTINGS, _FIRST_SETTINGS, directory, clock)


def canonical(path: str) -> str:
    """Return the one name of an existing directory: absolute, without links. Raises OSError.

    macOS finds a directory under other spellings too (case, Unicode form); there the kernel is asked for its own.
    """
    if sys.platform == "darwin":
        import fcntl

        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            name: bytes = fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024))
        finally:
            os.close(descriptor)
        return os.fsdecode(name.rstrip(b"\0"))
    return os.path.realpath(path, strict=True)


def is_same_directory(recorded: str, cwd: str) -> bool:
    """Tell whether a recorded working directory is the canonical ``cwd`` (REC-63); one that is gone is not."""
    try:
        return os.path.isabs(recorded) and canonical(recorded) == cwd
    except (OSError, ValueError):  # gone, unreadable, or no path at all
        return False


def context_id(root: Root, cwd: str) -> str:
    """Return the context identity: SHA-256 over the canonical ``cwd`` and the canonical root, 64 hex (ENV-35).

    No path holds a NUL, so that no two pairs give the same bytes.
    """
    parts = (b"localagent context 1", os.fsencode(cwd), os.fsencode(root.path))
    return hashlib.sha256(b"\0".join(parts)).hexdigest()
