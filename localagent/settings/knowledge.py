"""Instructions and skills (PROF-01, PROF-03, PROF-04)."""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from localagent.sessions.clock import CancelCheck, never, proceed
from localagent.sessions.paths import Root

from . import folders, markdown, source
from .faults import Inadmissible, misconfigured
from .model import Skills
from .snapshot import Instruction, Skill

AGENTS: Final = "AGENTS.md"
SKILL: Final = "SKILL.md"
_EACH: Final = 256 * 1024
_ALL: Final = 1024 * 1024
_PERSONAL: Final = (".agents", "skills")


def instructions(root: Root, cwd: str, additional: Sequence[str]) -> tuple[Instruction, ...]:
    """Return the files of instructions in their order: the user's, the project's, the configured ones (PROF-01).

    Links are followed. Raises Inadmissible: only the first two may be absent.
    """
    found, length = [], 0
    own = (os.path.join(root.path, AGENTS), os.path.join(cwd, AGENTS))
    for path in (*dict.fromkeys(own), *additional):
        data = source.read(path, _EACH, links=True)
        if data is None:
            if path in own:
                continue
            raise misconfigured(path, "", "a file (knowledge.instructions.additional_markdown_paths)", "nothing")
        length += len(data)
        if length > _ALL:
            raise misconfigured(path, "", f"at most {_ALL:,} bytes of instructions in all", "more")
        found.append(Instruction(path, source.text(path, data)))
    return tuple(found)


def skills(
    root: Root, cwd: str, wanted: Skills, environ: Mapping[str, str], cancelled: CancelCheck = never
) -> tuple[Mapping[str, Skill], tuple[str, ...]]:
    """Return the skills by name, and what was skipped and why (PROF-03, PROF-04).

    A later root wins a name. In one root a skill directly below it wins, then the first group. Raises Cancelled.
    """
    found: dict[str, Skill] = {}
    skipped: list[str] = []
    home = environ.get("HOME", "")
    roots = [os.path.join(home, *_PERSONAL)] if os.path.isabs(home) else []
    roots += [os.path.join(root.path, "skills"), *wanted.additional_paths, os.path.join(cwd, *_PERSONAL)]
    for path in roots:
        of_root: dict[str, Skill] = {}
        for skill in _below(path, skipped, path in wanted.additional_paths, cancelled):
            of_root.setdefault(skill.name, skill)
        found |= of_root
    for name in wanted.disabled:
        found.pop(name, None)
    return MappingProxyType(dict(sorted(found.items()))), tuple(skipped)


def _below(path: str, skipped: list[str], expected: bool, cancelled: CancelCheck) -> Iterator[Skill]:
    """Yield the skills of a root, those directly below it first. A root may be a link (ROOT-12)."""
    groups: list[Skill] = []
    try:
        with folders.opened(path, links=True) as folder:
            if folder is None:
                if expected:
                    skipped.append(f"{path}: no such directory")
                return
            descriptor, names = folder
            for name in names:
                proceed(cancelled)
                yield from _entry(os.path.join(path, name), descriptor, groups, skipped, cancelled)
    except folders.Unlistable as fault:
        skipped.append(f"{path}: {fault}")
    yield from groups


def _entry(path: str, within: int, groups: list[Skill], skipped: list[str], cancelled: CancelCheck) -> Iterator[Skill]:
    """Look at one entry of a root: a skill, a group of skills, or both. Files beside them mean nothing."""
    if not _is_directory(path, within):
        return
    try:
        with folders.opened(path, within=within) as folder:
            if folder is None:
                return
            descriptor, names = folder
            if SKILL in names:
                yield from _skill(path, descriptor, skipped)
            for name in names:
                proceed(cancelled)
                below = os.path.join(path, name)
                if _is_directory(below, descriptor):
                    with folders.opened(below, within=descriptor) as inner:
                        if inner is not None and SKILL in inner[1]:
                            groups.extend(_skill(below, inner[0], skipped))
    except folders.Unlistable as fault:
        skipped.append(f"{path}: {fault}")


def _is_directory(path: str, within: int) -> bool:
    try:
        found = os.stat(os.path.basename(path), dir_fd=within, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode)


def _skill(directory: str, within: int, skipped: list[str]) -> Iterator[Skill]:
    path, name = os.path.join(directory, SKILL), os.path.basename(directory)
    try:
        data = source.read(path, source.MIB, directory=within)
        if data is None:
            return
        name.encode()  # a name that is no UTF-8 cannot be said
        document = markdown.parsed(source.text(path, data).replace("\r\n", "\n"))
    except Inadmissible as fault:
        skipped.extend(map(str, fault.faults))
    except markdown.Malformed as fault:
        skipped.append(f"{path}: expected {fault}")
    except UnicodeEncodeError:
        skipped.append(f"{os.fsencode(directory)!r}: a name that is not UTF-8")
    else:
        front = {key: value for key, value in (document.front or {}).items() if isinstance(value, str)}
        yield Skill(name, path, MappingProxyType(front), document.body)
