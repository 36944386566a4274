"""Global and project settings, read once, judged, merged, judged again (SET-01 to SET-04)."""

import os
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from localagent.protocol.codes import Code
from localagent.sessions.paths import SETTINGS, Root

from . import merge, rules, source
from .faults import Fault, Inadmissible, misconfigured, spelt
from .model import Settings

PROJECT: Final = ".magi-code"
"""The directory of project settings, directly in the working directory (SET-01)."""


def settings(root: Root, cwd: str, environ: Mapping[str, str]) -> Settings:
    """Return the settings of a child in ``cwd``, which is canonical. Raises Inadmissible with all faults of a file."""
    path = os.path.join(root.path, SETTINGS)
    base = _document(path)
    result = judged(path, base, environ)  # alone: no project file can rescue it (SET-03)
    path = os.path.join(cwd, PROJECT, SETTINGS)
    project = _document(_resolved(path, cwd), path)
    if not project:
        return result
    return judged(path, merge.merged(base, merge.without_global_only(project)), environ)


def _document(path: str | None, name: str = "") -> dict[str, Any]:
    if path is None:
        return {}
    data = source.read(path, source.MIB)
    return {} if data is None else source.document(name or path, data)


def _resolved(path: str, cwd: str) -> str | None:
    """Where the project's directory really is, None if it is absent; it must be inside ``cwd`` (SET-01)."""
    directory, name = os.path.split(path)
    if not os.path.lexists(directory):
        return None
    try:
        real = os.path.realpath(directory, strict=True)
    except OSError as fault:
        raise misconfigured(directory, "", "a directory", os.strerror(fault.errno or 0)) from None
    if not os.path.isdir(real):
        raise misconfigured(directory, "", "a directory", "something else")
    if os.path.commonpath((cwd, real)) != cwd:
        raise misconfigured(directory, "", "a directory inside the working directory", "a link out of it")
    return os.path.join(real, name)


def judged(path: str, value: dict[str, Any], environ: Mapping[str, str]) -> Settings:
    """Return ``value`` as settings. Raises Inadmissible with every fault, said of the file at ``path``."""
    try:
        result = msgspec.convert(value, Settings, strict=True)
    except msgspec.ValidationError:
        raise Inadmissible(Code.CONFIGURATION_INVALID, _mismatches(path, value)) from None
    faults = [Fault(path, spelt(place), expected) for place, expected in rules.broken(result, environ)]
    if faults:
        raise Inadmissible(Code.CONFIGURATION_INVALID, faults)
    return result


def _mismatches(path: str, value: dict[str, Any]) -> list[Fault]:
    from .explain import mismatches

    found = [Fault(path, spelt(place), *words) for place, *words in mismatches(value, Settings)]
    return found or [Fault(path, "", "settings as their schema has them")]  # the two agree; a test says so
