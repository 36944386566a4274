"""The members of a payload that readers check, kind by kind (section 2.3, HISTP-10), and those they merely use.

A member without a default is required. ``UNSET`` stands for one that is checked only if present: null is present. What
is typed ``Any`` is optional and unchecked: of the wrong type, it is as good as absent, which ``word`` says.
"""

from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from .errors import BadRecord

P = TypeVar("P", bound=Struct)

HIDDEN_ORIGINS: Final = frozenset({"automatic_compaction", "automatic_continuation", "provider_only"})
"""Prompts that no user wrote and no history shows (HIST-37); their text is not required."""


class UserInput(Struct):
    """``user_input`` of a visible origin."""

    text: str


class AssistantChunk(Struct):
    """``assistant_chunk``."""

    text: str


class AssistantOutput(Struct):
    """``assistant_output``; without text the chunks are the text (SESS-54)."""

    text: str | UnsetType = UNSET


class ReasoningSummary(Struct):
    """``reasoning_summary`` with provenance."""

    text: str
    item_id: Any = None
    turn_id: Any = None


class ToolCall(Struct):
    """``tool_call`` and ``code_mode_tool_call``."""

    id: str
    name: str
    arguments: Any = None
    parent_call_id: Any = None


class Result(Struct):
    """``result`` of a tool result. ``metadata`` may be anything, null included, but not absent."""

    tool_name: str
    success: bool
    content: str
    metadata: Any


class ToolResult(Struct):
    """``tool_result``, ``tool_display_result``, ``code_mode_tool_result``."""

    result: Result
    call_id: Any = None
    parent_call_id: Any = None


class TurnStatus(Struct):
    """``turn_status``."""

    status: Literal["incomplete", "cancelled", "canceled", "failed", "compaction_required", "complete"]
    assistant_text: Any = None
    error_summary: Any = None


class Compaction(Struct):
    """``compaction``."""

    summary: str


class Diagnostic(Struct):
    """``diagnostic`` and ``hook_diagnostic``; without a message it is bookkeeping."""

    message: str | UnsetType = UNSET


class CodeModeWarning(Struct):
    """``code_mode_warning``."""

    warning: str | UnsetType = UNSET


def read(payload: object, kind: type[P]) -> P:
    """Return the members of ``payload``; one that is no object has none. Raises BadRecord."""
    try:
        return msgspec.convert(members(payload), kind, strict=True)
    except msgspec.ValidationError as fault:
        raise BadRecord(f"{kind.__name__}: {fault}") from None


def members(value: object) -> dict[str, Any]:
    """Return the members of an object, none for anything else."""
    return value if isinstance(value, dict) else {}


def word(value: object) -> str:
    """Return a text, empty for anything else."""
    return value if isinstance(value, str) else ""
