"""Reading the user's files: each opened without surprises, judged, read up to its bound; JSON without ambiguities.

A file that is absent is None. Whatever else is wrong is :class:`.faults.Inadmissible`, but for what the process itself
lacks (descriptors, memory), which stays an OSError.
"""

import errno
import os
import re
import stat
from typing import Any, Final

import msgspec

from localagent.protocol.codes import Code
from localagent.protocol.measure import depth, members, without_strings

from .faults import Fault, Inadmissible, Path, kind, misconfigured, spelt

MIB: Final = 1024 * 1024
_DEPTH: Final = 127  # what the published backend's parser takes (REC-06)
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def read(
    path: str,
    limit: int,
    *,
    links: bool = False,
    private: bool = False,
    owned: bool = False,
    directory: int | None = None,
    code: Code = Code.CONFIGURATION_INVALID,
) -> bytes | None:
    """Return the bytes of the file at ``path``, None if nothing stands there.

    It must be regular and hold at most ``limit`` bytes; unless ``links``, its last part must be no link (ROOT-12); if
    ``private``, group and others have no permissions; if ``owned``, it is ours. Otherwise Inadmissible(``code``).
    A FIFO is not waited for. With an open ``directory`` the file is opened by its name there.
    """

    def refuse(expected: str, found: str) -> Inadmissible:
        return Inadmissible(code, (Fault(path, "", expected, found),))

    try:
        name = path if directory is None else os.path.basename(path)
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | (0 if links else os.O_NOFOLLOW)
        descriptor = os.open(name, flags, dir_fd=directory)
    except OSError as fault:
        if fault.errno in _EXHAUSTED:
            raise
        if fault.errno == errno.ENOENT and not os.path.islink(path):  # a link that leads nowhere is not absent
            return None
        if fault.errno == errno.ELOOP:
            raise refuse("a regular file", "a link") from None
        raise refuse("a file that can be read", os.strerror(fault.errno or 0)) from None
    except ValueError:
        raise refuse("a path", "a NUL in it") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise refuse("a regular file", _file_kind(found.st_mode))
        if owned and found.st_uid != os.geteuid():
            raise refuse("a file of this user", "another owner")
        if private and stat.S_IMODE(found.st_mode) & 0o077:
            mode = f"mode {stat.S_IMODE(found.st_mode):04o}"
            raise refuse("a file without permissions for group and others (chmod 600)", mode)
        data = _content(descriptor, limit)
    except OSError as fault:
        raise refuse("a file that can be read", os.strerror(fault.errno or 0)) from None
    finally:
        os.close(descriptor)
    if data is None:
        raise refuse(f"at most {limit:,} bytes", "more")
    return data


def _content(descriptor: int, limit: int) -> bytes | None:
    """Everything, or None if it is more than ``limit`` bytes; the file may grow meanwhile."""
    pieces, length = [], 0
    while piece := os.read(descriptor, min(limit + 1 - length, 1 << 20)):
        pieces.append(piece)
        length += len(piece)
        if length > limit:
            return None
    return b"".join(pieces)


def _file_kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a directory"
    return "a FIFO" if stat.S_ISFIFO(mode) else "something else"


def document(path: str, data: bytes) -> dict[str, Any]:
    """Decode a file that holds one JSON object, UTF-8 without byte order mark (SET-01).

    A key that stands twice in one object is refused wherever it is: which of the two counts, readers disagree about.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        raise misconfigured(path, "", "no byte order mark", "one")
    try:
        value = msgspec.json.decode(data)
    except RecursionError:
        raise _too_deep(path) from None
    except msgspec.DecodeError as fault:
        text(path, data)  # if that is the fault, it is said
        raise misconfigured(path, "", "JSON", _where(data, fault)) from None
    if not isinstance(value, dict):
        raise misconfigured(path, "", "an object", kind(value))
    if depth(value) > _DEPTH:
        raise _too_deep(path)
    # A member has one colon outside strings: if there are no more colons than members were kept, no key stood twice.
    if without_strings(data).count(b":") != members(value):
        _refuse_repeats(path, data)
    return value


def _too_deep(path: str) -> Inadmissible:
    return misconfigured(path, "", f"at most {_DEPTH} objects and lists in each other", "more")


def _where(data: bytes, fault: msgspec.DecodeError) -> str:
    """Where JSON ended, as line and column. The decoder's own text is not used but for the place: it may quote."""
    found = re.search(r"\(byte (\d+)\)$", str(fault))
    if found is None:
        return "" if data.strip() else "nothing"
    before = data[: int(found[1])]
    line = before.count(b"\n") + 1
    column = len(before) - (before.rfind(b"\n") + 1) + 1
    return f"something else at line {line}, column {column}"


def _refuse_repeats(path: str, data: bytes) -> None:
    import json  # almost no file comes here

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in members:
            if key in seen:
                raise _Repeated(key)
            seen[key] = value
        return seen

    try:
        json.loads(data, object_pairs_hook=pairs)
    except _Repeated as fault:
        place: Path = (fault.key,)
        raise misconfigured(path, spelt(place), "each key once in an object", "it again") from None


class _Repeated(Exception):  # noqa: N818 - says what was found
    """A key stands twice in one object."""

    def __init__(self, key: str) -> None:
        super().__init__("repeated")
        self.key = key


def text(path: str, data: bytes, code: Code = Code.CONFIGURATION_INVALID) -> str:
    """Decode a file of text. Raises Inadmissible(``code``) for anything but UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Inadmissible(code, (Fault(path, "", "UTF-8"),)) from None
