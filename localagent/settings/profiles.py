"""Subagent profiles and the primary agent (PROF-05 to PROF-08). What is broken is ``profile_invalid``."""

import os
import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

from localagent.protocol.codes import Code
from localagent.protocol.results import Effort
from localagent.sessions import efforts
from localagent.sessions.paths import Root

from . import folders, markdown, source
from .faults import Fault, Inadmissible
from .snapshot import Profile

SUBAGENTS: Final = "subagents"
AGENTS: Final = "agents"
OLD_AGENTS: Final = "primary-agents"
BYTES: Final = 64 * 1024
SCHEMAS: Final = ("none", "plan", "research", "implement", "review", "document")
BUILT_IN_TOOLS: Final = frozenset(
    (
        *("ast_grep", "bash", "bash_job", "code_mode", "find", "grep", "hash_edit", "list_files", "magi_control"),
        *("read", "subagents", "view_image", "web", "write", "shell", "ffgrep", "fffind"),
    )
)
_SUFFIX: Final = ".md"
_is_id = re.compile(r"[A-Za-z0-9_-]+").fullmatch
_is_other_tool = re.compile(r"[A-Za-z0-9-][A-Za-z0-9_-]*__[A-Za-z0-9_.-]+").fullmatch
"""Of an MCP server or of the client: both have ``__`` inside. Whether there is such a tool shows only later."""


def subagents(root: Root, disabled: Collection[str]) -> Mapping[str, Profile]:
    """Return the profiles by id. Files whose id is invalid are ignored, disabled ones are not looked at (PROF-07).

    Raises Inadmissible(``profile_invalid``) with every broken one.
    """
    path = os.path.join(root.path, SUBAGENTS)
    found: dict[str, Profile] = {}
    faults: list[Fault] = []
    try:
        with folders.opened(path) as folder:
            for name in folder[1] if folder else ():
                id_ = name.removesuffix(_SUFFIX)
                if not name.endswith(_SUFFIX) or not _is_id(id_) or id_ in disabled:
                    continue
                try:
                    found[id_] = _read(os.path.join(path, name), id_, folder[0] if folder else None)
                except Inadmissible as fault:
                    faults += fault.faults
    except folders.Unlistable as fault:
        faults.append(Fault(path, "", "a directory that can be read", str(fault)))
    if faults:
        raise Inadmissible(Code.PROFILE_INVALID, faults)
    return MappingProxyType(found)


def primary(root: Root, id_: str | None) -> Profile | None:
    """Return the primary agent that is configured, if one is (PROF-08). Raises Inadmissible(``profile_invalid``)."""
    if id_ is None:
        return None
    agents = os.path.join(root.path, AGENTS)
    if not os.path.lexists(agents):
        agents = os.path.join(root.path, OLD_AGENTS)  # read in place, never renamed (ROOT-08)
    path = os.path.join(agents, f"{id_}{_SUFFIX}")
    try:
        with folders.opened(agents) as folder:
            if folder is None:
                raise _broken(path, "", "a file (agent.primary_agent)", "nothing")
            return _read(path, id_, folder[0], whole=False)
    except folders.Unlistable as fault:
        raise _broken(agents, "", "a directory that can be read", str(fault)) from None


def _broken(path: str, key: str, expected: str, found: str = "") -> Inadmissible:
    return Inadmissible(Code.PROFILE_INVALID, (Fault(path, key, expected, found),))


def _read(path: str, id_: str, directory: int | None, *, whole: bool = True) -> Profile:
    """Read a profile; of a primary agent (not ``whole``) only name, description and body count."""
    data = source.read(path, BYTES, directory=directory, code=Code.PROFILE_INVALID)
    if data is None:
        raise _broken(path, "", "a file (agent.primary_agent)", "nothing")
    text = source.text(path, data, Code.PROFILE_INVALID)
    if "\r" in text:
        raise _broken(path, "", "lines that end in LF", "CR")
    try:
        document = markdown.parsed(text)
    except markdown.Malformed as fault:
        raise _broken(path, "", str(fault)) from None
    if document.front is None:
        raise _broken(path, "", f"front matter between two lines {markdown.FENCE}", "none")
    front = document.front
    name, description = (_plain(path, front, key) for key in ("name", "description"))
    if not document.body.strip():
        raise _broken(path, "", "a prompt after the front matter", "nothing")
    optional: dict[str, Any] = {}
    if whole:
        readers = {"model": _model, "reasoning": _reasoning, "output_schema": _schema, "disabled_tools": _tools}
        optional = {key: read(path, front[key]) for key, read in readers.items() if key in front}
    return Profile(id=id_, path=path, name=name, description=description, prompt=document.body, **optional)


_Value = str | tuple[str, ...]


def _plain(path: str, front: Mapping[str, _Value], key: str) -> str:
    value = front.get(key)
    if not isinstance(value, str) or not value:
        raise _broken(path, key, "a string", "nothing" if not value else "a list")
    return value


def _model(path: str, value: _Value) -> tuple[str, str]:
    provider, _, model = value.partition("/") if isinstance(value, str) else ("", "", "")
    if not provider or not model:
        raise _broken(path, "model", "provider/model")
    return provider, model


def _reasoning(path: str, value: _Value) -> Effort:
    effort = efforts.from_file(value)
    if effort is None:
        raise _broken(path, "reasoning", "default, low, medium, high, xhigh or max")
    return effort


def _schema(path: str, value: _Value) -> str | Mapping[str, Any]:
    if value in SCHEMAS:
        return str(value)
    if isinstance(value, str) and value.startswith("inline:"):
        try:
            schema = source.document(path, value.removeprefix("inline:").encode())
        except Inadmissible as fault:
            (first, *_) = fault.faults
            raise _broken(path, "output_schema", f"{first.expected} after inline:", first.found) from None
        return MappingProxyType(schema)
    raise _broken(path, "output_schema", f"{', '.join(SCHEMAS)}, or inline: and a JSON object")


def _tools(path: str, value: _Value) -> tuple[str, ...]:
    if isinstance(value, str):
        if not (value.startswith("[") and value.endswith("]")):
            raise _broken(path, "disabled_tools", "[a, b], or a line - a for each tool")
        inside = value[1:-1].strip()
        value = tuple(each.strip() for each in inside.split(",")) if inside else ()
    for each in value:
        if each not in BUILT_IN_TOOLS and not _is_other_tool(each):
            raise _broken(path, "disabled_tools", "names of built-in, MCP or client tools", "another name")
    return value
