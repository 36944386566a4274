"""Results of the seventeen methods, as the backend writes them (base 19.1, EXT 7, CT 11).

Fields stand in alphabetical order, which is the order of the keys on the wire (D70). A field that may be UNSET is
absent then; every other field is always written (D73). A client may decode by these structs: unknown result fields are
ignored, unknown enum values raise ``msgspec.ValidationError``, as the contract asks.
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from .limits import LIMITS, ClientToolLimits

Effort = Literal["default", "low", "medium", "high", "xhigh", "max"]
EffortSupport = Literal["supported", "unsupported", "unknown"]
StartupFailure = Literal[
    "configuration_invalid",
    "provider_unavailable",
    "profile_invalid",
    "mcp_unavailable",
    "startup_cancelled",
    "startup_failed",
]


class Output(Struct, frozen=True, kw_only=True):
    """The common nature of all that the backend writes: immutable, built by keyword."""


class Selection(Output, frozen=True, kw_only=True):
    """The selection object, exactly these keys (SEL-04 to SEL-06). Masked names are null (BASE-OP-91)."""

    effective_effort: Effort | None
    effort_support: EffortSupport
    model: str | None
    permitted_efforts: tuple[Effort, ...]
    provider: str | None
    requested_effort: Effort
    revision: str


class Status(Output, frozen=True, kw_only=True):
    """Result of ``status``, and ``status`` of the initialization result (STATUS-03 to STATUS-19, BASE-OP-80)."""

    context_id: str | None
    model: str | None
    provider: str | None
    readiness: Literal["initializing", "ready"] | StartupFailure
    run_id: str | None
    selection: Selection | None = None
    session_id: str | None
    state: Literal["starting", "idle", "running", "failed"]


class ClientTools(Output, frozen=True, kw_only=True):
    """``client_tools`` of the initialization result; names in registration order (CT-22, CT-27)."""

    limits: ClientToolLimits = LIMITS.client_tools
    tools: tuple[str, ...]


class ClientToolsDescriptor(Output, frozen=True, kw_only=True):
    """``extensions["client.tools"]``: the same names and limits (CT-24 to CT-26, CT-OP-02)."""

    limits: ClientToolLimits = LIMITS.client_tools
    registration: Literal["startup_only"] = "startup_only"
    schema_version: Literal[1] = 1
    tools: tuple[str, ...]


class DiscoverDescriptor(Output, frozen=True, kw_only=True):
    """``extensions["session.discover"]``: nine constants (EXT-DISC-24, EXT 8.1)."""

    consistency: Literal["provisional_until_complete"] = "provisional_until_complete"
    ordering: Literal["directory"] = "directory"
    page_bytes: int = LIMITS.discover.page_bytes
    page_entries: int = LIMITS.discover.page_entries
    record_bytes: int = LIMITS.discover.record_bytes
    step_bytes: int = LIMITS.discover.step_bytes
    step_directory_entries: int = LIMITS.discover.step_directory_entries
    step_lines: int = LIMITS.discover.step_lines
    step_ms: int = LIMITS.discover.step_ms


class RefreshDescriptor(Output, frozen=True, kw_only=True):
    """``extensions["model.refresh"]``: four constants (EXT-REFRESH-54, EXT 8.2)."""

    cache_bytes: int = LIMITS.refresh.cache_bytes
    models: int = LIMITS.refresh.models
    preferences: Literal["unchanged"] = "unchanged"
    providers_per_request: int = LIMITS.refresh.providers_per_request


class CardsDescriptor(Output, frozen=True, kw_only=True):
    """``extensions["tool.cards"]``: nineteen constants of schema 1 (TC-38)."""

    blocks_per_card: int = LIMITS.cards.blocks_per_card
    card_bytes: int = LIMITS.cards.card_bytes
    cards_per_run: int = LIMITS.cards.cards_per_run
    children_depth: int = LIMITS.cards.children_depth
    children_per_block: int = LIMITS.cards.children_per_block
    core_bytes: int = LIMITS.cards.core_bytes
    diff_lines_per_block: int = LIMITS.cards.diff_lines_per_block
    event: Literal["tool.card"] = "tool.card"
    history_field: Literal["tool_card"] = "tool_card"
    metadata_bytes: int = LIMITS.cards.metadata_bytes
    preview_bytes: int = LIMITS.cards.preview_bytes
    retained_card_bytes: int = LIMITS.cards.retained_card_bytes
    rows_per_block: int = LIMITS.cards.rows_per_block
    run_snapshot_bytes: int = LIMITS.cards.run_snapshot_bytes
    schema_version: Literal[1] = 1
    snapshot_parts: int = LIMITS.cards.snapshot_parts
    snapshots_per_run: int = LIMITS.cards.snapshots_per_run
    string_bytes: int = LIMITS.cards.string_bytes
    title_bytes: int = LIMITS.cards.title_bytes


class Extensions(Output, frozen=True, kw_only=True):
    """``extensions`` of the initialization result: a descriptor for each negotiated name that has one (EXT-OP-02)."""

    client_tools: ClientToolsDescriptor | UnsetType = field(name="client.tools", default=UNSET)
    model_refresh: RefreshDescriptor | UnsetType = field(name="model.refresh", default=UNSET)
    session_discover: DiscoverDescriptor | UnsetType = field(name="session.discover", default=UNSET)
    tool_cards: CardsDescriptor | UnsetType = field(name="tool.cards", default=UNSET)


class Initialized(Output, frozen=True, kw_only=True):
    """Result of ``initialize`` (NEG-22).

    ``extensions`` is absent when it would be empty, ``client_tools`` unless negotiated (EXT-OP-02, CT-22).
    ``capabilities`` come from :func:`.names.advertised`, ``limits`` from :func:`.limits.published`.
    """

    capabilities: tuple[str, ...]
    client_tools: ClientTools | UnsetType = UNSET
    extensions: Extensions | UnsetType = UNSET
    limits: dict[str, int]
    status: Status


class Stopping(Output, frozen=True, kw_only=True):
    """Result of ``shutdown`` (SHUT-04)."""

    state: Literal["stopping"] = "stopping"


class Attached(Output, frozen=True, kw_only=True):
    """Result of ``session.create`` and ``session.open``; the revision is a history revision (SESS-17, SESS-30)."""

    durable: bool
    notices: tuple[Literal["cwd_unverified", "saved_selection_unavailable", "saved_selection_notice"], ...]
    revision: str
    session_id: str


class ListingEntry(Output, frozen=True, kw_only=True):
    """One session of a listing or a discovery, exactly these keys (LIST-11, EXT-DISC-12)."""

    eligibility: Literal["available", "cwd_unverified", "busy"]
    notices: tuple[Literal["cwd_unverified"], ...]
    session_id: str
    title: str | None
    updated_at: str | None


class ListingPage(Output, frozen=True, kw_only=True):
    """Result of ``session.list``, exactly these keys (LIST-10)."""

    complete: bool
    next_cursor: str | None
    notices: tuple[Literal["sessions_omitted_invalid"], ...]
    revision: str
    sessions: tuple[ListingEntry, ...]


class DiscoverPage(Output, frozen=True, kw_only=True):
    """Result of ``session.discover`` (EXT-DISC-08 to EXT-DISC-11)."""

    complete: bool
    consistency: Literal["provisional_until_complete"] = "provisional_until_complete"
    next_cursor: str | None
    notices: tuple[Literal["sessions_omitted_invalid"], ...]
    progress: Literal[
        "directory_work",
        "history_work",
        "record_work",
        "byte_work",
        "inventory_validation",
        "deadline",
        "page_entries",
        "page_bytes",
        "complete",
    ]
    recovery: Literal["continue_cursor", "none"]
    revision: str
    sessions: tuple[ListingEntry, ...]


class HistoryEntry(Output, frozen=True, kw_only=True):
    """One part of a history entry (HIST-23, HIST-24); ``tool_card`` only if negotiated, on an activity (TC-235)."""

    kind: Literal["user", "assistant", "reasoning_summary", "activity", "compaction", "diagnostic"]
    last_part: bool
    message_id: str
    part: int
    partial: bool
    text: str
    tool_card: dict[str, Any] | UnsetType | None = UNSET


class HistoryPage(Output, frozen=True, kw_only=True):
    """Result of ``history.page``, exactly these keys (HIST-03)."""

    complete: bool
    entries: tuple[HistoryEntry, ...]
    next_cursor: str | None
    revision: str
    session_id: str


class Choice(Output, frozen=True, kw_only=True):
    """One selectable model, exactly these keys; ``selection_id`` is 64 ASCII bytes (CAT-12 to CAT-15)."""

    availability: Literal["available", "authentication_unavailable"]
    effort_support: EffortSupport
    model: str
    model_name: str | None
    permitted_efforts: tuple[Effort, ...]
    provider: str
    provider_name: str | None
    selection_id: str


CatalogNotices = tuple[Literal["provider_catalog_unavailable", "catalog_entries_omitted_unsafe"], ...]


class CatalogPage(Output, frozen=True, kw_only=True):
    """Result of ``model.catalog``, exactly these keys (CAT-10, CAT-11)."""

    choices: tuple[Choice, ...]
    complete: bool
    next_cursor: str | None
    notices: CatalogNotices
    revision: str
    source: Literal["cache_only"] = "cache_only"


class ProviderStatus(Output, frozen=True, kw_only=True):
    """One provider of ``model.catalog.status``, exactly these keys (EXT-STATUS-11 to EXT-STATUS-31)."""

    authentication: Literal["ready", "authentication_unavailable", "not_checked"]
    catalog_status: Literal[
        "available",
        "missing_cache",
        "empty_cache",
        "invalid_format",
        "invalid_schema",
        "incompatible_fingerprint",
    ]
    provider: str
    recovery: Literal["none", "configure_authentication", "refresh_catalog", "enable_models_and_restart"]
    relevant: bool


class CatalogStatusPage(Output, frozen=True, kw_only=True):
    """Result of ``model.catalog.status``: the six keys of a catalog page and two more (EXT-STATUS-07)."""

    choices: tuple[Choice, ...]
    complete: bool
    configuration_reload: Literal["restart_child"] = "restart_child"
    next_cursor: str | None
    notices: CatalogNotices
    providers: tuple[ProviderStatus, ...]
    revision: str
    source: Literal["cache_only"] = "cache_only"


RefreshReason = Literal[
    "authentication_unavailable",
    "authentication_rejected",
    "configuration_invalid",
    "remote_unavailable",
    "remote_timeout",
    "rate_limited",
    "empty_catalog",
    "invalid_catalog",
    "catalog_limit",
    "cache_write_failed",
]


class Refreshed(Output, frozen=True, kw_only=True):
    """Result of ``model.refresh``, a failed one included (EXT-REFRESH-14 to EXT-REFRESH-21, EXT-OP-31, EXT-OP-32)."""

    catalog_error: Literal["catalog_limit", "catalog_unavailable"] | None
    catalog_revision: str | None
    configuration_reload: Literal["restart_child"] = "restart_child"
    outcome: Literal["refreshed", "failed"]
    provider: str
    reason: RefreshReason | None
    recovery: Literal["reload_catalog"] = "reload_catalog"
    selection_unchanged: bool = True


class Cancelling(Output, frozen=True, kw_only=True):
    """Result of ``operation.cancel`` (EXT-CANCEL-07 to EXT-CANCEL-09)."""

    request_id: str
    state: Literal["cancelling"] = "cancelling"


class SelectionSaved(Output, frozen=True, kw_only=True):
    """Result of ``selection.set``, exactly these keys (SEL-78 to SEL-80, SEL-85)."""

    catalog_revision: str
    durable: bool = True
    history_revision: str | None
    notices: tuple[Literal["selection_normalized", "metadata_update_failed", "history_unavailable"], ...]
    scope: Literal["session"] = "session"
    selection: Selection
    session_id: str


class TurnAccepted(Output, frozen=True, kw_only=True):
    """Result of ``turn.start``: admission only (TURN-09, TURN-10)."""

    accepted: bool = True
    run_id: str


class CancellationRequested(Output, frozen=True, kw_only=True):
    """Result of ``turn.cancel`` (TURN-20)."""

    cancellation_requested: bool = True


class ApprovalRecorded(Output, frozen=True, kw_only=True):
    """Result of ``approval.answer`` (APPR-02)."""

    recorded: bool = True


class ToolResultAccepted(Output, frozen=True, kw_only=True):
    """Result of ``client.tool.result`` (CT-98)."""

    accepted: bool = True
