"""Params of the seventeen methods, as a client may send them (base 19.1, EXT 7, CT 11).

These structs are the form of params: exact keys, types, grammars and bounds. They hold no unknown key, take no array
for an object, no ``1.0`` for an integer, and null only where null is typed (D13, D16, D17). Decoding by :mod:`.codec`
raises InvalidParams. Building one by hand raises ValueError for what ``__post_init__`` checks, and for nothing else.
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from . import ids
from .limits import LIMITS
from .measure import compact_bytes, utf8_bytes
from .names import CLIENT_TOOLS

Id = Annotated[str, Meta(pattern=ids.ID)]
SessionId = Annotated[str, Meta(pattern=ids.SESSION_ID)]
Echo = Annotated[str, Meta(pattern=ids.ECHO)]
Limit = Annotated[int, Meta(ge=1, le=LIMITS.page_limit)]


class Params(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The common nature of all params: closed and immutable."""


class NoParams(Params, frozen=True, kw_only=True):
    """``status``, ``shutdown``, ``session.create``: exactly ``{}`` (STATUS-01, SHUT-01, SESS-16)."""


class ToolDescriptor(Params, frozen=True, kw_only=True):
    """One client tool. Decoding makes it the *effective* descriptor, ``timeout_ms`` being filled in (CT-28, CT-39).

    Here only the form is checked (CT-29, CT-OP-07); name, bounds and schema by :func:`.client_tools.client_registry`.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    timeout_ms: int = LIMITS.client_tools.default_timeout_ms


class InitializeParams(Params, frozen=True, kw_only=True):
    """``initialize``: at most 16 names of the ID grammar, or 18 with ``client.tools`` (NEG-08 to NEG-12, ENV-12).

    A name may repeat and then counts again; no name at all is fine (D20). Whether ``client_tools`` may or must be
    there, and what it holds, is judged later, after unknown names (D20, CT-OP-05).
    """

    required_capabilities: tuple[Id, ...]
    client_tools: tuple[ToolDescriptor, ...] | UnsetType = UNSET

    def __post_init__(self) -> None:
        with_tools = CLIENT_TOOLS in self.required_capabilities
        most = LIMITS.required_capabilities_client_tools if with_tools else LIMITS.required_capabilities
        _require(len(self.required_capabilities) <= most, "too many required capabilities")


class SessionOpenParams(Params, frozen=True, kw_only=True):
    """``session.open``: the exact id, in the session-ID grammar (SESS-29, SESS-45, BASE-OP-95)."""

    session_id: SessionId


class PageParams(Params, frozen=True, kw_only=True):
    """``session.list``, ``session.discover``, ``model.catalog``, ``model.catalog.status`` (LIST-01 to LIST-09, CAT-01).

    ``revision`` and ``cursor`` are both null or absent for a fresh snapshot, both set for a continuation.
    ``limit`` is 1 to 100 (EXT-DISC-01 to EXT-DISC-07, EXT-STATUS-01 to EXT-STATUS-04).
    """

    revision: Id | None = None
    cursor: Id | None = None
    limit: Limit = LIMITS.page_limit

    def __post_init__(self) -> None:
        _require((self.revision is None) == (self.cursor is None), "revision and cursor come together")


class HistoryPageParams(Params, frozen=True, kw_only=True):
    """``history.page``: start with a null or absent cursor (HIST-01, HIST-02, BASE-OP-107, BASE-OP-108)."""

    session_id: SessionId
    revision: Id
    cursor: Id | None = None


class KeepEffort(Params, frozen=True, kw_only=True, tag_field="mode", tag="keep"):
    """``{"mode":"keep"}``: preserve the effort requested before (SEL-36)."""


class DefaultEffort(Params, frozen=True, kw_only=True, tag_field="mode", tag="default"):
    """``{"mode":"default"}``: back to the policy without override (SEL-38)."""


class SetEffort(Params, frozen=True, kw_only=True, tag_field="mode", tag="set"):
    """``{"mode":"set","value":v}``: one explicit level; ``default`` is not one (SEL-39, SEL-40)."""

    value: Literal["low", "medium", "high", "xhigh", "max"]


EffortRequest = KeepEffort | DefaultEffort | SetEffort


class SelectionSetParams(Params, frozen=True, kw_only=True):
    """``selection.set``: an absent effort means keep; a null one is refused (SEL-31 to SEL-47)."""

    session_id: SessionId
    selection_revision: Id
    catalog_revision: Id
    provider: str
    model: str
    effort: EffortRequest = KeepEffort()

    def __post_init__(self) -> None:
        _require(ids.is_safe_name(self.provider), "provider is no safe name")
        _require(ids.is_safe_name(self.model), "model is no safe name")


class TurnStartParams(Params, frozen=True, kw_only=True):
    """``turn.start``: at most 16,384 UTF-8 bytes, not blank; controls are text (TURN-08, TURN-16, BASE-OP-153)."""

    session_id: SessionId
    prompt: str

    def __post_init__(self) -> None:
        _require(utf8_bytes(self.prompt) <= LIMITS.prompt_bytes, "prompt too long")
        _require(not ids.is_blank(self.prompt), "prompt is blank")


class TurnCancelParams(Params, frozen=True, kw_only=True):
    """``turn.cancel``: any string of the ID grammar; a foreign one is ``stale_run`` (TURN-19, BASE-OP-162)."""

    session_id: SessionId
    run_id: Id


class ApprovalAnswerParams(Params, frozen=True, kw_only=True):
    """``approval.answer``: as for runs, a well-formed foreign identity is ``stale_approval`` (APPR-01, BASE-OP-162)."""

    session_id: SessionId
    run_id: Id
    approval_id: Id
    allow: bool


class OperationCancelParams(Params, frozen=True, kw_only=True):
    """``operation.cancel``: the id of the request to cancel (EXT-CANCEL-01, EXT-CANCEL-02)."""

    request_id: Id


class ModelRefreshParams(Params, frozen=True, kw_only=True):
    """``model.refresh``: one safe provider name; whether it is configured is not form (EXT-REFRESH-01, -03)."""

    provider: str

    def __post_init__(self) -> None:
        _require(ids.is_safe_name(self.provider), "provider is no safe name")


class ClientToolResultParams(Params, frozen=True, kw_only=True):
    """``client.tool.result``: all identity fields echoed, nullable ones included (CT-89 to CT-96, CT-OP-27).

    An absent ``structured`` is UNSET, which is not None (CT-95). Text and structured value together are at most 32,768
    bytes, null counting its four (CT-66, CT-OP-26). Well-formed but foreign ids are stale, not invalid (CT-111).
    """

    instance_id: Id
    session_id: SessionId
    run_id: Id
    call_id: Id
    task_id: Echo | None
    subagent_id: Echo | None
    status: Literal["success", "error"]
    text: str
    structured: Any = UNSET

    def __post_init__(self) -> None:
        size = utf8_bytes(self.text) + (0 if self.structured is UNSET else compact_bytes(self.structured))
        _require(size <= LIMITS.client_tools.result_bytes, "result too large")


def _require(condition: bool, otherwise: str) -> None:
    """Raise ValueError(``otherwise``), which decoding turns into InvalidParams, unless ``condition`` holds."""
    if not condition:
        raise ValueError(otherwise)
