"""Directories of the user's files: listed in the order of bytes, links told apart, nothing opened that is none."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


class Unlistable(Exception):  # noqa: N818 - says what was found
    """Something stands there that is no directory of the user's, or that cannot be read."""


@contextmanager
def opened(path: str, *, links: bool = False, within: int | None = None) -> Iterator[tuple[int, list[str]] | None]:
    """Open a directory and list it, sorted by bytes; None if nothing stands there.

    With ``within``, an open directory, only the last part of ``path`` is looked up, in there. Raises Unlistable.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | (0 if links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path if within is None else os.path.basename(path), flags, dir_fd=within)
    except FileNotFoundError:
        if os.path.islink(path):
            raise Unlistable("a link that leads nowhere") from None
        yield None
        return
    except OSError as fault:
        if fault.errno in _EXHAUSTED:
            raise
        raise Unlistable(os.strerror(fault.errno or 0)) from None
    except ValueError:
        raise Unlistable("no path: there is a NUL in it") from None
    try:
        try:
            names = sorted(os.listdir(descriptor), key=os.fsencode)
        except OSError as fault:
            raise Unlistable(os.strerror(fault.errno or 0)) from None
        yield descriptor, names
    finally:
        os.close(descriptor)
