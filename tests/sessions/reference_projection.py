"""A second opinion on projection: HISTP-01 to HISTP-09 followed word by word, all records at once, no care for speed.

Shares no code with ``localagent.sessions``; cleaning and redaction are judged elsewhere and used from ``text``.
"""

import re
from typing import Any

from localagent.text.clean import clean
from localagent.text.redact import redact

Shown = tuple[str, str, bool]

ALIASES = {"shell": "bash", "ffgrep": "grep", "fffind": "find"}
HIDDEN = ("automatic_compaction", "automatic_continuation", "provider_only")


class Invalid(Exception):  # noqa: N818 - a verdict
    """session_invalid."""


def get(payload: Any, name: str) -> Any:
    return payload.get(name) if isinstance(payload, dict) else None


def has(payload: Any, name: str) -> bool:
    return isinstance(payload, dict) and name in payload


def required(payload: Any, name: str, kind: type = str) -> Any:
    if not has(payload, name) or type(payload[name]) is not kind:
        raise Invalid(name)
    return payload[name]


def string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def detail(tool: str, arguments: Any) -> str:
    def first(*names: str) -> str:
        for name in names:
            if isinstance(get(arguments, name), str):
                return string(arguments[name])
        return ""

    def count(number: int, noun: str) -> str:
        return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

    if tool == "bash":
        return first("command", "cmd")
    if tool in ("write", "hash_edit", "list_files"):
        return first("path")
    if tool in ("read", "view_image"):
        if isinstance(get(arguments, "path"), str):
            return first("path")
        return count(len(arguments["paths"]), "file") if isinstance(get(arguments, "paths"), list) else ""
    if tool == "grep":
        several = get(arguments, "patterns")
        strings = [each for each in several if isinstance(each, str)] if isinstance(several, list) else []
        return ", ".join(strings) if strings else first("pattern")
    if tool == "ast_grep":
        return first("pattern")
    if tool in ("find", "web"):
        return first("query")
    if tool == "subagents":
        return "\u00b7 " + count(len(arguments["tasks"]), "task") if isinstance(get(arguments, "tasks"), list) else ""
    if tool == "bash_job":
        return first("action")
    if tool == "magi_control":
        return first("action") if first("action") in ("compact", "context_usage") else ""
    return ""


def label(name: str, arguments: Any) -> str:
    tool = ALIASES.get(name, name)
    more = detail(tool, arguments)
    text = clean(name + (" " + more if more else ""))
    if tool == "read":
        text = re.sub(r"[\x00-\x1f\x7f-\x9f]", "", text)
    return redact(text)


class Reference:
    """The state of HISTP-02 and the verbs of HISTP-03 to HISTP-06."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.complete = True
        self.reset()

    def reset(self) -> None:
        self.first = len(self.entries)
        self.open: int | None = None
        self.prior = ""
        self.answered = self.ended = self.unfinished = False
        self.pending: dict[Any, tuple[str, Any]] = {}
        self.acts: dict[Any, int] = {}
        self.results: set[Any] = set()
        self.repeated: set[Any] = set()
        self.sums: dict[Any, int] = {}

    def add(self, kind: str, text: str, partial: bool = False, *, raw: bool = False) -> int:
        self.entries.append({"kind": kind, "text": text if raw else clean(text), "partial": partial, "raw": raw})
        return len(self.entries) - 1

    def turn(self, kind: str) -> list[dict[str, Any]]:
        return [entry for entry in self.entries[self.first :] if entry["kind"] == kind]

    def cut(self) -> None:
        if self.open is not None:
            self.prior += self.entries[self.open]["text"]
            self.open = None

    def say(self, text: str, replace: bool = False) -> None:
        text = clean(text)
        if text == "":
            return
        if self.open is None:
            self.open = self.add("assistant", text, True)
        elif replace:
            self.entries[self.open]["text"] = text
        else:
            self.entries[self.open]["text"] += text

    def close(self) -> None:
        begun = bool(self.turn("user") or self.turn("assistant"))
        if not self.ended and (self.pending or (not self.answered and begun)):
            self.complete = False
            self.unfinished = True
            self.add("diagnostic", "Turn interrupted", True)
        if (self.ended or self.answered) and not self.unfinished:
            for entry in self.turn("assistant"):
                entry["partial"] = False
        self.reset()

    def record(self, kind: str, payload: Any) -> None:
        if kind == "user_input":
            self.close()
            if get(payload, "origin") not in HIDDEN:
                self.add("user", required(payload, "text"))
        elif kind == "compaction":
            self.close()
            self.add("compaction", required(payload, "summary"))
        elif kind == "assistant_chunk":
            self.say(required(payload, "text"))
        elif kind == "assistant_output":
            self.output(payload)
        elif kind == "reasoning_summary":
            self.summary(payload)
        elif kind in ("tool_call", "code_mode_tool_call"):
            self.call(payload, kind != "tool_call")
        elif kind in ("tool_result", "tool_display_result", "code_mode_tool_result"):
            self.result(payload, kind == "code_mode_tool_result")
        elif kind == "turn_status":
            self.status(payload)
        elif kind in ("diagnostic", "hook_diagnostic") and has(payload, "message"):
            self.cut()
            self.add("diagnostic", required(payload, "message"))
        elif kind == "code_mode_warning" and has(payload, "warning"):
            self.cut()
            self.add("diagnostic", required(payload, "warning"))

    def output(self, payload: Any) -> None:
        grown = "" if self.open is None else self.entries[self.open]["text"]
        text = clean(required(payload, "text")) if has(payload, "text") else grown
        if self.prior != "" and text.startswith(self.prior):
            rest = text[len(self.prior) :]
            if rest.startswith(grown):
                text = rest
        self.say(text, replace=True)
        self.answered = True
        self.prior = ""

    def summary(self, payload: Any) -> None:
        if get(payload, "provider_summary") is not True:
            return
        text = required(payload, "text")
        self.cut()
        item = get(payload, "item_id")
        identity = (string(get(payload, "turn_id")), item)
        if isinstance(item, str) and identity in self.sums:
            self.entries[self.sums[identity]]["text"] = clean(text)
            return
        index = self.add("reasoning_summary", text)
        if isinstance(item, str):
            self.sums[identity] = index

    def call(self, payload: Any, nested: bool) -> None:
        call, name = required(payload, "id"), required(payload, "name")
        arguments = get(payload, "arguments")
        self.cut()
        index = self.add("activity", label(name, arguments) + ": started", True, raw=True)
        identity = (nested, string(get(payload, "parent_call_id")) if nested else "", call)
        if identity in self.acts:
            self.repeated.add(identity)
        else:
            self.acts[identity] = index
        self.pending[identity] = (name, arguments)

    def result(self, payload: Any, nested: bool) -> None:
        result = required(payload, "result", dict)
        tool, success = required(result, "tool_name"), required(result, "success", bool)
        required(result, "content")
        if "metadata" not in result:
            raise Invalid("metadata")
        self.cut()
        identity = (nested, string(get(payload, "parent_call_id")) if nested else "", string(get(payload, "call_id")))
        name, arguments = self.pending.pop(identity, (tool, None))
        if name != tool and ALIASES.get(name, name) != ALIASES.get(tool, tool):
            raise Invalid("another tool")
        text = label(name, arguments) + (": completed" if success else ": failed")
        replaces = identity in self.acts and identity not in self.results and identity not in self.repeated
        self.results.add(identity)
        if replaces:
            self.entries[self.acts[identity]].update(text=text, partial=False)
        else:
            self.add("activity", text, raw=True)

    def status(self, payload: Any) -> None:
        status = required(payload, "status")
        if status not in ("incomplete", "cancelled", "canceled", "failed", "compaction_required", "complete"):
            raise Invalid("status")
        self.unfinished = status != "complete"
        if not self.turn("assistant"):
            self.say(string(get(payload, "assistant_text")), replace=True)
        for entry in self.turn("assistant"):
            entry["partial"] = self.unfinished
        if self.unfinished:
            self.add("diagnostic", WORDS[status], True)
            why = string(get(payload, "error_summary"))
            if status == "failed" and clean(why).strip():
                self.add("diagnostic", why, True)
        self.ended = True
        self.pending.clear()


WORDS = {
    "incomplete": "Turn incomplete",
    "cancelled": "Turn cancelled",
    "canceled": "Turn cancelled",
    "failed": "Turn failed",
    "compaction_required": "Turn stopped: the context must be compacted",
}


def project(records: list[tuple[str, Any]]) -> tuple[list[Shown], bool] | None:
    """(kind, text, partial) of each entry and ``complete``; None for session_invalid."""
    reference = Reference()
    try:
        for kind, payload in records:
            reference.record(kind, payload)
    except Invalid:
        return None
    reference.close()
    shown = [
        (entry["kind"], entry["text"] if entry["raw"] else redact(entry["text"]), entry["partial"])
        for entry in reference.entries
    ]
    return shown, reference.complete
