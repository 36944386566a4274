"""Every bound of version 1, one frozen struct. A bound with a name on the wire bears that name (base 20, D72).

Units are in the names: ``_bytes`` are bytes as the clause beside the field measures them, ``_ms`` milliseconds,
``_lines``, ``_entries``, ``_parts`` and bare plurals are counts. Bounds are inclusive: the value itself still passes.
"""

from typing import Final

from msgspec import Struct

KIB: Final = 1024
MIB: Final = 1024 * KIB


class PublishedLimits(Struct, frozen=True, kw_only=True):
    """The object ``limits`` of the initialization result: exactly these thirty keys (NEG-27 to NEG-30, D72)."""

    catalog_file_bytes: int = 1 * MIB  # CAT-57: one cache file
    catalog_models: int = 2048  # CAT-56: before exclusions
    catalog_page_bytes: int = 32 * KIB  # CAT-52: serialized result, metadata included
    catalog_page_entries: int = 100  # CAT-53
    catalog_providers: int = 32  # CAT-55: the three built-in ones included
    catalog_scan_bytes: int = 8 * MIB  # CAT-58: cache bytes read per scan
    catalog_scan_ms: int = 2000  # CAT-61: cooperative
    catalog_snapshot_bytes: int = 1 * MIB  # CAT-59: serialized choices
    catalog_string_bytes: int = 256  # CAT-60
    content_chunk_bytes: int = 16 * KIB  # BOUND-08: UTF-8, history; less where escaping requires
    discovery_directory_entries: int = 4096  # LIST-68: iterations, in each of two passes
    discovery_page_bytes: int = 32 * KIB  # LIST-66: serialized result, metadata included
    discovery_page_entries: int = 100  # LIST-67
    discovery_scan_bytes: int = 64 * MIB  # LIST-74: read per request
    discovery_scan_lines: int = 100_000  # LIST-75: read per request
    discovery_scan_ms: int = 2000  # LIST-76: cooperative
    discovery_session_bytes: int = 8 * MIB  # LIST-72: read per history
    discovery_session_lines: int = 10_000  # LIST-73: read per history
    discovery_sessions: int = 256  # LIST-71: entries of a snapshot
    discovery_title_bytes: int = 256  # LIST-77: input of a title
    frame_bytes: int = 64 * KIB  # BOUND-01: input, raw, LF excluded, CR included; BOUND-02: output, LF included
    history_page_bytes: int = 32 * KIB  # BOUND-16: serialized result
    history_page_entries: int = 100  # BOUND-17
    id_bytes: int = 64  # BOUND-04: ASCII; request ids, methods, capabilities, and every opaque id (HIST-09)
    json_depth: int = 32  # BOUND-03: containers, the root counts (D02)
    output_deadline_ms: int = 2000  # BOUND-27: from queueing, not reset by partial progress (BOUND-28)
    pending_responses: int = 32  # BOUND-22: frames the pipe has not taken (D49)
    prompt_bytes: int = 16 * KIB  # BOUND-06: UTF-8
    requests_per_child: int = 4096  # BOUND-05: ids, rejected well-formed requests included
    selection_append_bytes: int = 4 * KIB  # SEL-69: one session_preferences record


class ClientToolLimits(Struct, frozen=True, kw_only=True):
    """``client_tools.limits`` of the initialization result: exactly these twelve keys (CT 12.1, CT-OP-03)."""

    arguments_bytes: int = 16 * KIB  # CT-65: compact serialized
    default_timeout_ms: int = 30_000  # CT-39
    description_bytes: int = 2 * KIB  # CT-35: UTF-8
    max_timeout_ms: int = 300_000  # CT-38
    min_timeout_ms: int = 1_000  # CT-38
    name_bytes: int = 64  # CT-33: ASCII, `client__` included
    pending_calls: int = 16  # CT-71: root, subagents and Code Mode together
    registry_bytes: int = 32 * KIB  # CT-40: compact serialized effective descriptors
    result_bytes: int = 32 * KIB  # CT-66: UTF-8 text plus compact serialized structured value
    schema_bytes: int = 8 * KIB  # CT-41: compact serialized, each schema
    schema_depth: int = 16  # CT-42: containers, the root counts
    tools: int = 32  # CT-32: descriptors per child


class DiscoverLimits(Struct, frozen=True, kw_only=True):
    """Bounds of ``session.discover``; the first seven stand in its descriptor (EXT 8.1)."""

    page_bytes: int = 32 * KIB  # serialized result
    page_entries: int = 100
    record_bytes: int = 8 * MIB  # EXT-DISC-78: raw bytes of one stored line
    step_bytes: int = 8 * MIB
    step_directory_entries: int = 256
    step_lines: int = 10_000
    step_ms: int = 2000
    reader_bytes: int = 8 * KIB  # the one reader buffer of a scan


class RefreshLimits(Struct, frozen=True, kw_only=True):
    """Bounds of ``model.refresh``; the first three stand in its descriptor (EXT 8.2)."""

    cache_bytes: int = 1 * MIB  # EXT-REFRESH-27: serialized, as written
    models: int = 2048  # EXT-REFRESH-26: unique entries
    providers_per_request: int = 1
    body_bytes: int = 2 * MIB  # EXT-REFRESH-55: a provider's response
    connect_ms: int = 10_000  # EXT-REFRESH-57
    enrichment_bytes: int = 8 * MIB  # EXT-REFRESH-59
    enrichment_ms: int = 30_000  # EXT-REFRESH-60
    wall_ms: int = 300_000  # EXT-REFRESH-58
    workers: int = 32  # EXT-REFRESH-56: catalog HTTP workers of the process


class CardLimits(Struct, frozen=True, kw_only=True):
    """Bounds of ``tool.cards``, all in its descriptor (TC-38). Ceilings, not allocations (TC-39)."""

    blocks_per_card: int = 16
    card_bytes: int = 16 * KIB
    cards_per_run: int = 4096
    children_depth: int = 8
    children_per_block: int = 32
    core_bytes: int = 2 * KIB
    diff_lines_per_block: int = 128
    metadata_bytes: int = 512
    preview_bytes: int = 4 * KIB
    retained_card_bytes: int = 8 * MIB
    rows_per_block: int = 32
    run_snapshot_bytes: int = 32 * MIB
    snapshot_parts: int = 1
    snapshots_per_run: int = 16_384
    string_bytes: int = 1 * KIB
    title_bytes: int = 256


class Limits(PublishedLimits, frozen=True, kw_only=True):
    """The thirty published bounds, and every other bound of base 20.1 and 20.3 and of the extensions."""

    activities: int = 4096  # BOUND-14: activity identities per run
    activity_id_bytes: int = 1 * KIB  # BOUND-15: internal ids, never on the wire
    approval_ms: int = 60_000  # BOUND-26: then denied (APPR-07)
    assistant_bytes: int = 8 * MIB  # BOUND-12: authoritative UTF-8 text per run (BASE-OP-171)
    assistant_segments: int = 512  # BOUND-13: per run
    auth_file_bytes: int = 1 * MIB  # CAT-63: read per file
    claude_status_ms: int = 10_000  # CAT-65
    cleanup_ms: int = 2000  # BOUND-30: counted from the end of draining
    closing_ms: int = 2000  # BOUND-29: draining after end of input, and after the closing errors (BASE-OP-59)
    critical_wait_ms: int = 2000  # BOUND-25: a critical worker event waiting for its place
    history_file_bytes: int = 64 * MIB  # BOUND-20: original JSONL read; SEL-70: the same after an append
    history_file_lines: int = 100_000  # BOUND-21
    history_snapshot_bytes: int = 8 * MIB  # BOUND-18: serialized entry projection
    history_snapshot_parts: int = 10_000  # BOUND-19
    live_chunk_bytes: int = 4000  # BOUND-10: UTF-8 text of a delta or a reconciliation part
    name_bytes: int = 256  # STATUS-08, SEL-34, EXT-REFRESH-03: UTF-8, provider and model
    page_limit: int = 100  # LIST-02, LIST-03: greatest and default `limit`; the least is 1
    partial_frames: int = 1  # BOUND-32
    provider_cache_bytes: int = 2 * MIB  # SEL-67: cached validation of one provider
    read_batch_bytes: int = 4096  # BOUND-33: one batch at a time
    required_capabilities: int = 16  # NEG-10
    required_capabilities_client_tools: int = 18  # NEG-12
    retention_days: int = 30  # SESS-62: policy of the product, not of this protocol; zero turns pruning off
    selection_id_bytes: int = 64  # CAT-15: ASCII
    selection_metadata_bytes: int = 1 * MIB  # CAT-62: read per catalog page
    startup_workers: int = 1  # BOUND-34
    summary_bytes: int = 1 * KIB  # BOUND-11: UTF-8, after redaction
    title_characters: int = 50  # LIST-19: code points (BASE-OP-134)
    workers: int = 1  # BOUND-35: session worker and turn worker together
    worker_events: int = 32  # BOUND-24

    client_tools: ClientToolLimits = ClientToolLimits()
    discover: DiscoverLimits = DiscoverLimits()
    refresh: RefreshLimits = RefreshLimits()
    cards: CardLimits = CardLimits()


LIMITS: Final = Limits()


def published() -> dict[str, int]:
    """Return the thirty published bounds by their wire names, alphabetically: the ``limits`` object as it is sent."""
    return {name: getattr(LIMITS, name) for name in PublishedLimits.__struct_fields__}
