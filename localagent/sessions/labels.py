"""What a tool call is called in front of people: its name and one detail of its arguments (HISTP-09, D75)."""

import re
from collections.abc import Callable
from typing import Any, Final

from localagent.text.clean import clean
from localagent.text.redact import redact

from .payloads import members

_ALIASES: Final = {"shell": "bash", "ffgrep": "grep", "fffind": "find"}
_remove_controls = re.compile(r"[\x00-\x1f\x7f-\x9f]").sub


def same_tool(one: str, other: str) -> bool:
    """Tell whether two names name one tool: they are equal, or names of one built-in."""
    return one == other or _ALIASES.get(one, one) == _ALIASES.get(other, other)


def label(name: str, arguments: object) -> str:
    """Return the recorded name with the detail its tool has, cleaned and redacted (CRED-10, CRED-11, CRED-13)."""
    tool = _ALIASES.get(name, name)
    detail = _DETAILS.get(tool, _none)(members(arguments))
    text = clean(f"{name} {detail}" if detail else name)
    return redact(_remove_controls("", text) if tool == "read" else text)


def _none(_arguments: dict[str, Any]) -> str:
    return ""


def _first(*names: str) -> Callable[[dict[str, Any]], str]:
    """The first of the named arguments that is a string."""

    def detail(arguments: dict[str, Any]) -> str:
        return next((arguments[name] for name in names if isinstance(arguments.get(name), str)), "")

    return detail


def _path_or_count(arguments: dict[str, Any]) -> str:
    path, paths = arguments.get("path"), arguments.get("paths")
    if isinstance(path, str):
        return path
    return _count(paths, "file") if isinstance(paths, list) else ""


def _patterns(arguments: dict[str, Any]) -> str:
    several = arguments.get("patterns")
    texts = [each for each in several if isinstance(each, str)] if isinstance(several, list) else []
    return ", ".join(texts) if texts else _first("pattern")(arguments)


def _tasks(arguments: dict[str, Any]) -> str:
    tasks = arguments.get("tasks")
    return f"\u00b7 {_count(tasks, 'task')}" if isinstance(tasks, list) else ""


def _control(arguments: dict[str, Any]) -> str:
    action = _first("action")(arguments)
    return action if action in {"compact", "context_usage"} else ""


def _count(things: list[Any], noun: str) -> str:
    return f"1 {noun}" if len(things) == 1 else f"{len(things)} {noun}s"


_DETAILS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "bash": _first("command", "cmd"),
    "write": _first("path"),
    "hash_edit": _first("path"),
    "list_files": _first("path"),
    "read": _path_or_count,
    "view_image": _path_or_count,
    "grep": _patterns,
    "ast_grep": _first("pattern"),
    "find": _first("query"),
    "web": _first("query"),
    "subagents": _tasks,
    "bash_job": _first("action"),
    "magi_control": _control,
}
