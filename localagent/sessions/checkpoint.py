"""What the records that a compaction removes come to: the payload of its checkpoint (REC-46, REC-47). Pure.

Numbers of the earlier checkpoint, the first line of a file, are carried on: its records were moved away. A
``compaction`` further down stands beside the records that it sums up, so that its numbers would count twice (REC-48).

What cannot be known from the records is flagged ``incomplete``: tokens of a turn that was not answered or whose
provider did not say, of a subagent, of a summary; effects of a call without result, or with a result that does not
tell them.
"""

import re
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from localagent.protocol.ids import is_blank
from localagent.text.clean import scrub
from localagent.text.redact import redact

from . import efforts, instants, scope
from .errors import BadRecord
from .facts import Facts
from .labels import same_tool
from .payloads import HIDDEN_ORIGINS, members, word
from .records import Record

_PROMPT_CHARACTERS: Final = 4000
_SAMPLES: Final = 24
_CLARIFICATIONS: Final = 64
_SUMS: Final = ("input", "output", "cache_read")
_HARMLESS: Final = ("read", "view_image", "grep", "ast_grep", "find", "list_files", "web", "magi_control", "code_mode")
"""Tools that change no file by themselves; what ``code_mode`` calls has records of its own."""
_decimal = re.compile(r"[0-9]{1,19}", re.ASCII).fullmatch


class Tally:
    """Sums up the records that are removed, added in file order from the first line on."""

    def __init__(self) -> None:
        self.count = 0
        """How many were added."""
        self._facts = Facts()
        self._prompts = 0
        self._first_prompt: str | None = None
        self._newest: int | None = None
        self._tokens = dict.fromkeys((*_SUMS, "unknown_cache"), 0)
        self._tokens_incomplete = False
        self._unanswered = False  # the last turn, so far
        self._active_ms = 0
        self._mutations = self._shells = 0
        self._samples: deque[dict[str, str]] = deque(maxlen=_SAMPLES)  # the newest ones
        self._effects_incomplete = False
        self._pending: set[tuple[bool, str, str]] = set()

    def add(self, record: Record) -> None:
        """Add the next record. Raises BadRecord for a scope that REC-12 refuses."""
        self._facts.add(record)
        if record.kind != "compaction" and (self._newest is None or record.instant > self._newest):
            self._newest = record.instant
        note = _NOTES.get(record.kind)
        if note is not None:
            note(self, members(record.payload))
        self.count += 1

    def spend(self, usage: object) -> None:
        """Count tokens, given as in ``assistant_output``; None means that nobody knows."""
        spent = members(usage)
        for name in _SUMS:
            number = _number(spent.get(name))
            if number is not None:
                self._tokens[name] += number
            elif name == "cache_read" and spent:
                self._tokens["unknown_cache"] += 1
            else:
                self._tokens_incomplete = True

    def payload(self, summary: str, provider: str, model: str, session_path: str) -> dict[str, Any]:
        """Return the payload. Raises BadRecord for a blank summary, provider or model: no replay takes it (REC-13)."""
        summary = redact(scrub(summary)).strip()
        if is_blank(summary) or is_blank(provider) or is_blank(model):
            raise BadRecord("a blank summary, provider or model")
        return {
            "schema_version": 1,
            "summary": summary,
            "provider": provider,
            "model": model,
            "cutoff_event_count": 0,
            "aggregate": {
                "first_user_input_text": self._first_prompt,
                "latest_activity_timestamp": None if self._newest is None else instants.spell(self._newest),
                "latest_title": self._facts.title,
                "session_path": session_path if scrub(session_path) == session_path else None,
                "user_input_count": self._prompts,
            },
            "session_usage": self._usage(),
            "primary_usage_since_output": False,
            "session_active_ms": self._active_ms,
            "execution_effects": {
                "incomplete": self._effects_incomplete or bool(self._pending),
                "mutation_calls": self._mutations,
                "samples": list(self._samples),
                "shell_calls": self._shells,
            },
            **self._carried(),
        }

    def _usage(self) -> dict[str, Any]:
        return {
            **{name: str(self._tokens[name]) for name in _SUMS},
            "incomplete": self._tokens_incomplete or self._unanswered,
            "recorded": any(self._tokens.values()),
            "records": {},
            "unknown_cache": self._tokens["unknown_cache"],
        }

    def _carried(self) -> dict[str, Any]:
        """The saved selection and the task scope, if the removed records had one."""
        carried: dict[str, Any] = {}
        saved, ceiling = self._facts.preferences, self._facts.scope
        if saved is not None:
            requested = efforts.for_file(saved.requested_effort)
            carried["session_preferences"] = {
                "model": saved.model, "provider": saved.provider, "requested_thinking": requested,
            }  # fmt: skip
        if ceiling is not None:
            carried |= {"task_scope": _bounded(ceiling), "task_scope_version": 1}
        return carried

    # the records that count

    def _earlier(self, payload: dict[str, Any]) -> None:
        self._turn_over()
        if self.count:  # not the first line
            return
        aggregate = members(payload.get("aggregate"))
        self._prompts = _number(aggregate.get("user_input_count")) or 0
        first = aggregate.get("first_user_input_text")
        self._first_prompt = redact(first)[:_PROMPT_CHARACTERS] if isinstance(first, str) else None
        self._newest = instants.parse(word(aggregate.get("latest_activity_timestamp")))
        self._active_ms = _number(payload.get("session_active_ms")) or 0

        usage = members(payload.get("session_usage"))
        told = {name: word(usage.get(name)) for name in _SUMS}
        self._tokens |= {name: int(number) for name, number in told.items() if _decimal(number)}
        unknown = _number(usage.get("unknown_cache"))
        self._tokens["unknown_cache"] = unknown or 0
        whole = all(map(_decimal, told.values())) and unknown is not None and not usage.get("records")
        self._tokens_incomplete = not (whole and usage.get("incomplete") is False)

        effects = members(payload.get("execution_effects"))
        mutations, shells = _number(effects.get("mutation_calls")), _number(effects.get("shell_calls"))
        self._mutations, self._shells = mutations or 0, shells or 0
        samples = effects.get("samples")
        for sample in map(members, samples if isinstance(samples, list) else []):
            self._sample(sample.get("call_id"), sample.get("path"))
        self._effects_incomplete = not (effects.get("incomplete") is False and None not in (mutations, shells))

    def _user_input(self, payload: dict[str, Any]) -> None:
        self._turn_over()
        self._unanswered = True
        if word(payload.get("origin")) not in HIDDEN_ORIGINS:
            self._prompts += 1
            if self._first_prompt is None:
                self._first_prompt = redact(word(payload.get("text")))[:_PROMPT_CHARACTERS]

    def _assistant_output(self, payload: dict[str, Any]) -> None:
        self._unanswered = False
        self.spend(payload.get("usage"))

    def _turn_status(self, _payload: dict[str, Any]) -> None:
        self._turn_over()

    def _turn_over(self) -> None:
        self._tokens_incomplete |= self._unanswered
        self._unanswered = False

    def _foreign_tokens(self, _payload: dict[str, Any]) -> None:
        """Tokens of a subagent stand in its own file; a ``session_usage`` says it in words we do not know."""
        self._tokens_incomplete = True

    def _call(self, payload: dict[str, Any], *, nested: bool = False) -> None:
        self._pending.add(_identity(payload, "id", nested))
        self._shells += same_tool(word(payload.get("name")), "bash")

    def _result(self, payload: dict[str, Any], *, nested: bool = False) -> None:
        identity = _identity(payload, "call_id", nested)
        self._pending.discard(identity)
        changed = _changed(payload)
        if changed is not None:
            count, paths = changed
            self._mutations += count > 0
            for path in paths:
                self._sample(identity[2], path)
        elif not nested:  # a nested call that does not tell was not run (section 2.3)
            tool = word(members(payload.get("result")).get("tool_name"))
            self._effects_incomplete |= not any(same_tool(tool, name) for name in _HARMLESS)

    def _nested_call(self, payload: dict[str, Any]) -> None:
        self._call(payload, nested=True)

    def _nested_result(self, payload: dict[str, Any]) -> None:
        self._result(payload, nested=True)

    def _sample(self, call_id: object, path: object) -> None:
        if isinstance(call_id, str) and isinstance(path, str):
            self._samples.append({"call_id": call_id, "path": path})


_NOTES: Final = {
    "compaction": Tally._earlier,
    "user_input": Tally._user_input,
    "assistant_output": Tally._assistant_output,
    "turn_status": Tally._turn_status,
    "subagent_session": Tally._foreign_tokens,
    "session_usage": Tally._foreign_tokens,
    "tool_call": Tally._call,
    "tool_result": Tally._result,
    "code_mode_tool_call": Tally._nested_call,
    "code_mode_tool_result": Tally._nested_result,
}


def _number(value: object) -> int | None:
    """A count, as it may stand in a file; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def _identity(payload: Mapping[str, Any], name: str, nested: bool) -> tuple[bool, str, str]:
    """The identity of a call (HISTP-07)."""
    return nested, word(payload.get("parent_call_id")) if nested else "", word(payload.get(name))


def _changed(payload: Mapping[str, Any]) -> tuple[int, list[Any]] | None:
    """How many paths a call has changed, and some of them; None when its result does not tell."""
    effects = members(payload.get("execution_effects"))
    count, paths = _number(effects.get("changed_path_count")), effects.get("paths")
    if count is not None:
        return count, paths if isinstance(paths, list) else []
    paths = payload.get("changed_paths")
    return (len(paths), paths) if isinstance(paths, list) else None


def _bounded(found: scope.TaskScope) -> Any:
    """The scope with the newest clarifications that its bounds leave room for (REC-12); reading does not bound them."""
    payload = msgspec.to_builtins(found)
    payload["clarifications"] = payload["clarifications"][-_CLARIFICATIONS:]
    while payload["clarifications"]:
        try:
            scope.read(payload)
            break
        except BadRecord:
            del payload["clarifications"][0]
    return payload
