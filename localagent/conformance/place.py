"""Where the children of one case live: a home, and a directory to work in."""

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from json import dumps
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700

_NONE: Final[Mapping[str, int]] = {}

State = Mapping[str, tuple[int, ...]]
"""Path of each file and directory -> its kind and mode, and of files the size, the time of change and the inode."""


class Place:
    """A home, a copy of ``home`` if that is given, and a working directory, ``cwd`` if that is given.

    All is in a temporary directory that is removed at the end. Raises ``OSError``, ``shutil.Error``.
    """

    def __init__(self, home: str | None, cwd: str | None) -> None:
        self._template = home
        self._top = Path(tempfile.mkdtemp(prefix="localagent-conform-"))
        self._count = 0
        self._given = cwd
        try:
            self.cwd = Path(cwd) if cwd is not None else self._new("work")
            self.outside = self._new("outside")
            """A directory that is neither."""
            self.home = self._copied()
        except BaseException:
            self.remove()
            raise

    def _new(self, name: str) -> Path:
        self._count += 1
        made = self._top / f"{name}{self._count}"
        made.mkdir(mode=DIRECTORY_MODE)
        return made

    def _copied(self) -> Path:
        home = self._new("home")
        if self._template is not None:
            shutil.copytree(self._template, home, symlinks=True, dirs_exist_ok=True)
        return home

    def move(self) -> None:
        """Another working directory, new and empty."""
        self._given, self.cwd = None, self._new("work")

    def renew(self) -> None:
        """Another home, as the first one was."""
        self.home = self._copied()

    def filled(self, text: str, ports: Mapping[str, int] = _NONE) -> str:
        """A text for a file: ``{home}``, ``{cwd}`` and ``{outside}`` are those directories, inside a JSON text.

        ``{port:NAME}`` is the port of a server of the case.
        """
        for name, path in (("home", self.home), ("cwd", self.cwd), ("outside", self.outside)):
            text = text.replace(f"{{{name}}}", dumps(os.path.realpath(path), ensure_ascii=False)[1:-1])
        for name, port in ports.items():
            text = text.replace(f"{{port:{name}}}", str(port))
        return text

    def write(self, path: str, data: bytes, mode: int = FILE_MODE, top: str = "home") -> None:
        """Write a file in the home or the working directory, with the directories above it. Raises ``OSError``."""
        file = (self.cwd if top == "cwd" else self.home) / path
        if not file.parent.exists():
            for above in reversed(file.parents):  # ``parents`` of mkdir makes them of any mode
                above.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        file.write_bytes(data)
        file.chmod(mode)

    def read(self, path: str) -> bytes | None:
        """The bytes of a file of the home; None where there is none."""
        try:
            return (self.home / path).read_bytes()
        except OSError:
            return None

    def delete(self, path: str) -> None:
        """Remove a file or a directory of the home, if it is there. Raises ``OSError``."""
        found = self.home / path
        if found.is_dir() and not found.is_symlink():
            shutil.rmtree(found)
        else:
            found.unlink(missing_ok=True)

    def has(self, pattern: str) -> list[str]:
        """What in the home fits a pattern as of ``glob``."""
        return sorted(str(each.relative_to(self.home)) for each in self.home.glob(pattern))

    def state(self) -> State:
        """What is in the home, and in a working directory of ours."""
        tops = [self.home] if self._given is not None else [self.home, self.cwd]
        found: dict[str, tuple[int, ...]] = {}
        for top in tops:
            for directory, names, files in os.walk(top):
                for name in (*names, *files):
                    path = Path(directory, name)
                    told = path.lstat()
                    plain = stat.S_ISDIR(told.st_mode)
                    more = () if plain else (told.st_size, told.st_mtime_ns, told.st_ino)
                    found[str(path.relative_to(self._top))] = (told.st_mode, *more)
        return found

    def remove(self) -> None:
        """Remove it all; what resists stays."""
        shutil.rmtree(self._top, ignore_errors=True)


def difference(before: State, now: State) -> str:
    """What was created, removed or changed, in words; nothing if all is as it was."""
    made = [f"created {path}" for path in now if path not in before]
    gone = [f"removed {path}" for path in before if path not in now]
    changed = [f"changed {path}" for path in now if path in before and before[path] != now[path]]
    return ", ".join([*made, *gone, *changed])
