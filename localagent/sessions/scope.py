"""The task scope of a delegated session: a ceiling on its tools that travels with the file (REC-12, SESS-61)."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from localagent.protocol.ids import is_blank
from localagent.protocol.measure import compact_bytes, utf8_bytes

from .errors import BadRecord

_SCOPE_BYTES: Final = 512 * 1024
_INTENT_BYTES: Final = 32 * 1024
_CONTEXT_BYTES: Final = 256 * 1024
_CLARIFICATIONS: Final = 64
_CLARIFICATION_BYTES: Final = 64 * 1024


class OriginalTask(Struct, forbid_unknown_fields=True):
    """What was delegated: five members, all present, null allowed except in the first two."""

    intent: str
    mode: Literal["inspect", "standard"]
    agent: str | None
    context: str | None
    cwd: str | None
    identity: Any = UNSET


class Ceiling(Struct, forbid_unknown_fields=True):
    """What the delegated session may do at most. Tool names are canonical names of built-ins."""

    cwd: str | None
    inspection: bool
    enabled_builtins: list[str]
    disabled_tools: list[str]
    read_absolute_paths: bool
    view_image_absolute_paths: bool
    hashline_absolute_paths: bool
    write_absolute_paths: bool
    grep_absolute_paths: bool
    find_absolute_paths: bool
    list_files_absolute_paths: bool
    ast_grep_absolute_paths: bool
    bash_absolute_paths: bool
    subagents_absolute_paths: bool
    bash_shell_expansion: bool
    remaining_depth: Annotated[int, Meta(ge=0, le=4)]
    code_mode_disabled_tools: list[str] | UnsetType = UNSET
    client_tools: Any = UNSET


class TaskScope(Struct, forbid_unknown_fields=True):
    """The payload of ``task_scope``: exactly these keys."""

    version: Literal[1]
    original_task: OriginalTask
    ceiling: Ceiling
    clarifications: list[str]


def read(payload: object) -> TaskScope:
    """Return the scope that ``payload`` states. Raises BadRecord for a malformed one."""
    try:
        scope = msgspec.convert(payload, TaskScope, strict=True)
    except msgspec.ValidationError as fault:
        raise BadRecord(f"task_scope: {fault}") from None
    task = scope.original_task
    if (
        is_blank(task.intent)
        or utf8_bytes(task.intent) > _INTENT_BYTES
        or utf8_bytes(task.context or "") > _CONTEXT_BYTES
        or len(scope.clarifications) > _CLARIFICATIONS
        or sum(map(utf8_bytes, scope.clarifications)) > _CLARIFICATION_BYTES
        or compact_bytes(payload) > _SCOPE_BYTES
    ):
        raise BadRecord("task_scope: a bound is passed")
    return scope
