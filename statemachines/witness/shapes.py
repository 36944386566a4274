"""Shapes: the keys and types of everything that crosses, and every code.

One table in a small notation holds them all; ``misshapen`` reads an object against it. A closed shape is closed here,
since a judge is stricter than a client, who ignores what it does not know (TC-OP-02).
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple


class Fault(NamedTuple):
    """One thing that must not be, and the clauses that forbid it."""

    what: str
    clauses: tuple[str, ...]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STARTUP_CODES: Final = _words(
    "configuration_invalid provider_unavailable profile_invalid mcp_unavailable startup_cancelled startup_failed"
)
_STORED: Final = _words(
    "session_missing session_busy session_invalid cwd_mismatch history_limit stale_revision content_limit"
)
_CACHED: Final = _words("catalog_limit catalog_unavailable stale_catalog")
_PICKED: Final = _words("selection_invalid provider_unavailable effort_unsupported persistence_failed stale_selection")
TURN_CODES: Final = (
    _STORED | _CACHED | _PICKED | STARTUP_CODES | _words("execution_failed output_unavailable stale_session")
)
CODES: Final = TURN_CODES | _words(
    """invalid_frame invalid_request invalid_params protocol_mismatch unsupported_method unsupported_capability
    not_initialized already_initialized duplicate_id request_limit frame_too_large incomplete_frame busy
    operation_cancelled stale_run stale_approval operation_missing stale_client_tool_call discovery_limit
    discovery_unavailable discovery_record_bytes discovery_page_bytes"""
)
"""Every code of a response (base 21.1, EXT, CT). The two local failures of CT never cross as one (CT-OP-17)."""

WORKER_CODES: Final[Mapping[str, frozenset[str]]] = {
    "initialize": STARTUP_CODES - {"startup_cancelled"},
    "session.create": _STORED,
    "session.open": _STORED,
    "history.page": _STORED,
    "session.list": _words("discovery_limit discovery_unavailable stale_revision"),
    "session.discover": _words("discovery_record_bytes discovery_page_bytes discovery_unavailable stale_revision"),
    "model.catalog": _CACHED,
    "model.catalog.status": _CACHED,
    "model.refresh": _CACHED - {"stale_catalog"},  # by D82 alone: a refresh that failed is a result
    "selection.set": _STORED | _CACHED | _PICKED,
}
"""Asynchronous method -> the codes its worker may end with (base 19.3 with its note, EXT 7, D82)."""


SIXTEEN: Final = _words(
    """initialize status shutdown session.create session.open session.list session.discover model.catalog
    model.catalog.status model.refresh operation.cancel selection.set history.page turn.start turn.cancel
    approval.answer"""
)
"""The base methods, which are the base capabilities (NEG-01, NEG-02)."""
EXTENSIONS: Final = frozenset({"tool.cards", "client.tools"})
"""The further capabilities, which are there when they were required."""

LIMITS: Final = {
    "discovery_page_bytes": 32768, "discovery_page_entries": 100, "discovery_directory_entries": 4096,
    "discovery_sessions": 256, "discovery_session_bytes": 8388608, "discovery_session_lines": 10000,
    "discovery_scan_bytes": 67108864, "discovery_scan_lines": 100000, "discovery_scan_ms": 2000,
    "discovery_title_bytes": 256, "catalog_page_bytes": 32768, "catalog_page_entries": 100, "catalog_providers": 32,
    "catalog_models": 2048, "catalog_file_bytes": 1048576, "catalog_scan_bytes": 8388608,
    "catalog_snapshot_bytes": 1048576, "catalog_string_bytes": 256, "catalog_scan_ms": 2000,
    "selection_append_bytes": 4096,
}  # fmt: skip
"""The twenty keys of ``limits`` that the text names (base 20.2)."""

TOOL_LIMITS: Final = {
    "tools": 32, "name_bytes": 64, "description_bytes": 2048, "registry_bytes": 32768, "schema_bytes": 8192,
    "schema_depth": 16, "arguments_bytes": 16384, "result_bytes": 32768, "pending_calls": 16,
    "default_timeout_ms": 30000, "min_timeout_ms": 1000, "max_timeout_ms": 300000,
}  # fmt: skip
"""``client_tools.limits`` (CT 12.1); whether there are more is CT-OP-03."""

DESCRIPTORS: Final[Mapping[str, Mapping[str, Any]]] = {
    "session.discover": {
        "consistency": "provisional_until_complete", "ordering": "directory", "step_directory_entries": 256,
        "step_lines": 10000, "step_bytes": 8388608, "record_bytes": 8388608, "step_ms": 2000, "page_entries": 100,
        "page_bytes": 32768,
    },
    "model.refresh": {"providers_per_request": 1, "cache_bytes": 1048576, "models": 2048, "preferences": "unchanged"},
    "tool.cards": {
        "schema_version": 1, "event": "tool.card", "history_field": "tool_card", "snapshot_parts": 1,
        "card_bytes": 16384, "core_bytes": 2048, "cards_per_run": 4096, "snapshots_per_run": 16384,
        "run_snapshot_bytes": 33554432, "retained_card_bytes": 8388608, "blocks_per_card": 16, "rows_per_block": 32,
        "diff_lines_per_block": 128, "children_per_block": 32, "children_depth": 8, "string_bytes": 1024,
        "title_bytes": 256, "metadata_bytes": 512, "preview_bytes": 4096,
    },
    "client.tools": {"schema_version": 1, "registration": "startup_only"},
}  # fmt: skip
"""Extension -> its descriptor under ``extensions`` (EXT 8, TC 3, CT-24); others may have one, too (EXT-OP-02)."""


def _text(most: int, least: int = 0) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and least <= len(value.encode("utf-8", "surrogatepass")) <= most


def _like(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


_SINGLE: Final = " -\u02ff\u4e00-\u9fff"
_CERTAIN: Final = re.compile(f"(?<![^{_SINGLE}])[{_SINGLE}]")
"""A code point between which and the one before there is a boundary of grapheme clusters for sure."""


def _title(value: Any) -> bool:
    """At most 50 characters in the wider reading, of clusters (BASE-OP-134), made of at most 256 bytes."""
    return _text(256)(value) and len(_CERTAIN.findall(value)) <= 50


def _whole(least: int, most: int = 2**53 - 1) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and least <= value <= most


_ID: Final = _like("[A-Za-z0-9._-]{1,64}")
TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "ANY": lambda _: True,
    "BOOL": lambda value: isinstance(value, bool),
    "CHUNK": _text(4000),
    "DIGEST": _like("[!-~]{64}"),
    "FALSE": lambda value: value is False,
    "ID": _ID,
    "KNOWN": lambda value: isinstance(value, str) and value in CODES,
    "LABEL": _text(1024),
    "LIMIT": _whole(1, 100),
    "NAME": _text(256, 1),
    "NATURAL": _whole(0),
    "NULL": lambda value: value is None,
    "OBJECT": lambda value: isinstance(value, dict),
    "PART": _text(16384),
    "POSITIVE": _whole(1),
    "PROMPT": lambda value: _text(16384)(value) and bool(value.strip()),
    "SESSION": _like("[A-Za-z0-9_-]{1,64}"),
    "STRING": lambda value: isinstance(value, str),
    "TIME": _like(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)"),
    "TITLE": _title,
    "TRUE": lambda value: value is True,
    "UUID": _like("(?i)[0-9a-f]{8}(-?)[0-9a-f]{4}(\\1[0-9a-f]{4}){2}\\1[0-9a-f]{12}"),
}
"""The upper-case words of the shapes; a lower-case word stands for itself."""

_RUN: Final = "session_id:SESSION run_id:UUID"
_CALL: Final = f"{_RUN} call_id:UUID@CT-82 task_id:LABEL|NULL subagent_id:LABEL|NULL"
_EFFORT: Final = "default|low|medium|high|xhigh|max"
_PAGE: Final = "revision:ID next_cursor:ID|NULL complete:BOOL"
_PAGING: Final = "revision?:ID|NULL cursor?:ID|NULL limit?:LIMIT"
_CHOICES: Final = f"""{_PAGE} choices:[{{choice}}] source:cache_only@CAT-11
    notices:[provider_catalog_unavailable|catalog_entries_omitted_unsafe]@CAT-30"""
_LISTED: Final = f"{_PAGE} sessions:[{{listed}}] notices:[sessions_omitted_invalid]@LIST-35"
_FRAME: Final = "protocol:STRING@ENV-18 version:POSITIVE@ENV-18 instance_id:UUID@ENV-32 seq:POSITIVE@ENV-28"
_CARD_OUTCOME: Final = "success|failure|cancelled|interrupted|unknown|NULL"
_CHANGES: Final = "not_applicable|none|applied|partial|unknown"
_REASON: Final = "redacted|missing_source|not_recorded|unsupported_source|budget_limit|size_limit"

_TABLE: Final = f"""
frame/result ENV-15 {_FRAME} type:response@ENV-16 id:ID|NULL@ENV-10 result:OBJECT ...
frame/error ENV-15 {_FRAME} type:response@ENV-16 id:ID|NULL@ENV-10 error:{{error}} ...
frame/event BASE-OP-163 {_FRAME} type:event event:STRING data:OBJECT ...
error ENV-19 code:KNOWN@ERR-01

event/input.persisted EVT-09 {_RUN} message_id:ID durable:TRUE@EVT-10 revision:ID
event/message.delta EVT-14 {_RUN} message_id:ID part:NATURAL@EVT-17 text:CHUNK@BOUND-10
event/message.reconcile EVT-20 {_RUN} message_id:ID part:NATURAL@EVT-23 text:CHUNK@BOUND-10
    last_part:BOOL partial:BOOL
event/activity EVT-31 {_RUN} activity_id:LABEL kind:tool|subagent|compaction@EVT-32
    state:started|completed|failed@EVT-33 name:STRING summary:LABEL@EVT-34
event/approval.requested EVT-36 {_RUN} approval_id:UUID@EVT-37 summary:LABEL@EVT-38 expires_in_ms:POSITIVE
event/diagnostic EVT-39 {_RUN} code:STRING summary:LABEL@EVT-40
event/run.finished EVT-42 {_RUN} outcome:completed|cancelled|failed@EVT-43
    persistence:durable|degraded|not_started@EVT-44 revision:ID|NULL error_code:KNOWN|NULL
event/tool.card TC-155 {_RUN} activity_id:ID part:NATURAL last_part:TRUE@TC-156 card:{{card}}
event/client.tool.call CT-76 {_CALL} name:STRING arguments:OBJECT@CT-65 timeout_ms:POSITIVE@CT-38
event/client.tool.cancel CT-124 {_CALL} reason:cancelled|timeout|run_finished|shutdown@CT-125

result/initialize NEG-22 capabilities:[ID] limits:OBJECT status:{{result/status}}@NEG-23 ...
result/status STATUS-03 state:starting|idle|running|failed@STATUS-06 context_id:STRING|NULL
    readiness:initializing|ready|{"|".join(sorted(STARTUP_CODES))}@STATUS-06
    provider:NAME|NULL@STATUS-08 model:NAME|NULL@STATUS-08 session_id:SESSION|NULL@STATUS-12
    run_id:UUID|NULL@STATUS-13 selection?:{{selection}}|NULL@SEL-03 ...
selection SEL-04 revision:ID provider:NAME|NULL model:NAME|NULL requested_effort:{_EFFORT}@SEL-06
    effective_effort:{_EFFORT}|NULL@SEL-06 effort_support:supported|unsupported|unknown@SEL-05
    permitted_efforts:[{_EFFORT}]@SEL-06
result/shutdown SHUT-04 state:stopping ...
result/session.create SESS-17 session_id:SESSION@SESS-45 durable:FALSE@SESS-19 revision:ID notices:[]@SESS-20 ...
result/session.open SESS-30 session_id:SESSION@SESS-45 durable:BOOL revision:ID
    notices:[cwd_unverified|saved_selection_unavailable|saved_selection_notice]@SESS-41 ...
result/history.page HIST-03 {_PAGE} session_id:SESSION entries:[{{entry}}]
entry HIST-23 message_id:ID@HIST-09 text:PART@HIST-28 partial:BOOL part:NATURAL last_part:BOOL
    kind:user|assistant|reasoning_summary|activity|compaction|diagnostic@HIST-24 tool_card?:{{card}}|NULL@TC-235
result/session.list LIST-10 {_LISTED}
result/session.discover EXT-DISC-08 {_LISTED} consistency:provisional_until_complete@EXT-DISC-09
    progress:directory_work|history_work|record_work|byte_work|inventory_validation|deadline|page_entries|page_bytes\
|complete@EXT-DISC-10 recovery:continue_cursor|none@EXT-DISC-11
listed LIST-11 session_id:SESSION@LIST-13 title:TITLE|NULL@LIST-19 updated_at:TIME|NULL@LIST-16
    eligibility:available|cwd_unverified|busy@LIST-12 notices:[cwd_unverified]@LIST-30
result/model.catalog CAT-10 {_CHOICES}
result/model.catalog.status EXT-STATUS-07 {_CHOICES} configuration_reload:restart_child@EXT-STATUS-09
    providers:[{{provider}}]@EXT-STATUS-10
choice CAT-12 selection_id:DIGEST@CAT-15 provider:NAME model:NAME provider_name:NAME|NULL model_name:NAME|NULL
    availability:available|authentication_unavailable@CAT-13
    effort_support:supported|unsupported|unknown@CAT-14 permitted_efforts:[{_EFFORT}]@SEL-06
provider EXT-STATUS-11 provider:NAME relevant:BOOL authentication:ready|authentication_unavailable|not_checked
    catalog_status:available|missing_cache|empty_cache|invalid_format|invalid_schema|incompatible_fingerprint\
@EXT-STATUS-16 recovery:none|configure_authentication|refresh_catalog|enable_models_and_restart@EXT-STATUS-31
result/model.refresh EXT-REFRESH-14 provider:NAME outcome:refreshed|failed@EXT-REFRESH-16
    reason:authentication_unavailable|authentication_rejected|configuration_invalid|remote_unavailable|remote_timeout\
|rate_limited|empty_catalog|invalid_catalog|catalog_limit|cache_write_failed|NULL@EXT-REFRESH-18
    catalog_revision:ID|NULL@EXT-REFRESH-19 catalog_error:catalog_limit|catalog_unavailable|NULL@EXT-REFRESH-20
    recovery:reload_catalog configuration_reload:restart_child selection_unchanged:TRUE@EXT-REFRESH-21
result/operation.cancel EXT-CANCEL-07 state:cancelling@EXT-CANCEL-08 request_id:ID
result/selection.set SEL-78 session_id:SESSION selection:{{selection}} catalog_revision:ID scope:session@SEL-79
    durable:TRUE@SEL-80 history_revision:ID|NULL
    notices:[selection_normalized|metadata_update_failed|history_unavailable]@SEL-85
result/turn.start TURN-09 run_id:UUID@TURN-11 accepted:TRUE ...
result/turn.cancel TURN-20 cancellation_requested:TRUE ...
result/approval.answer APPR-02 recorded:TRUE ...
result/client.tool.result CT-98 accepted:TRUE

card TC-41 schema_version:POSITIVE card_id:ID@TC-45 activity_id:ID@TC-45 parent_activity_id:ID|NULL@TC-49
    parent_state:root|available|missing|omitted task_id:ID|NULL@TC-50 state:running|finished title:NAME@TC-89
    tool_kind:read|search|write|edit|command|web|mcp|code_mode|subagent|other@TC-52 revision:NATURAL@TC-75
    outcome:{_CARD_OUTCOME} changes:{_CHANGES} origin:live|saved@TC-77 detail:{{detail}} metadata:{{metadata}}
    blocks:[{{block}}]@TC-104 omissions:[{{omission}}]
detail TC-79 availability:complete|truncated|unavailable|none reason:{_REASON}|NULL
metadata TC-92 tool_name:LABEL|NULL resource_path:LABEL|NULL working_directory:LABEL|NULL
    public_protection:{{protection}}
protection TC-95 decision:not_reported|allowed|blocked|approval_required|denied summary:NAME|NULL@TC-100
omission TC-129 reason:{_REASON}@TC-131 omitted_count:NATURAL|NULL@TC-134
    subject:title|metadata|blocks|rows|text|diff_lines|children|progress|ancestry|updates@TC-130
block TC-105 type:text|resources|results|command|diff|children|progress ...

params/initialize NEG-08 required_capabilities:[ID]@NEG-09 client_tools?:[OBJECT]@NEG-11
params/status STATUS-01
params/shutdown SHUT-01
params/session.create SESS-16
params/session.open SESS-29 session_id:SESSION
params/session.list LIST-01 {_PAGING}
params/session.discover EXT-DISC-01 {_PAGING}
params/model.catalog CAT-01 {_PAGING}
params/model.catalog.status EXT-STATUS-01 {_PAGING}
params/model.refresh EXT-REFRESH-01 provider:NAME
params/operation.cancel EXT-CANCEL-01 request_id:ID
params/selection.set SEL-31 session_id:SESSION selection_revision:ID catalog_revision:ID provider:NAME model:NAME
    effort?:{{effort/mode}}
effort/keep SEL-43 mode:keep
effort/default SEL-43 mode:default
effort/set SEL-44 mode:set value:low|medium|high|xhigh|max
params/history.page HIST-01 session_id:SESSION revision:ID cursor?:ID|NULL
params/turn.start TURN-08 session_id:SESSION prompt:PROMPT
params/turn.cancel TURN-19 session_id:SESSION run_id:ID
params/approval.answer APPR-01 session_id:SESSION run_id:ID approval_id:ID allow:BOOL
params/client.tool.result CT-89 instance_id:STRING session_id:STRING run_id:STRING call_id:STRING
    task_id:STRING|NULL subagent_id:STRING|NULL status:success|error text:STRING structured?:ANY
"""


class Field(NamedTuple):
    """A key: whether it may be absent, whether its value is a list, the types it may have, its clauses."""

    key: str
    optional: bool
    many: bool
    kinds: tuple[str, ...]
    clauses: tuple[str, ...]


class Shape(NamedTuple):
    """Keys and types of an object; ``open`` when further keys are no fault."""

    fields: tuple[Field, ...]
    clauses: tuple[str, ...]
    open: bool


def _parse(table: str) -> Iterator[tuple[str, Shape]]:
    for entry in re.split(r"\n+(?=\S)", table.strip()):
        name, clause, *words = entry.split()
        fields = []
        for word in words:
            found = re.fullmatch(r"(\w+)(\??):(\[?)(.*?)\]?(?:@([A-Z0-9-]+))?", word)
            if found is not None:
                key, optional, many, kinds, own = found.groups()
                parts = tuple(filter(None, kinds.split("|")))
                fields.append(Field(key, bool(optional), bool(many), parts, (own or clause,)))
        yield name, Shape(tuple(fields), (clause,), "..." in words)


SHAPES: Final[Mapping[str, Shape]] = dict(_parse(_TABLE))
"""``name CLAUSE key:kind|kind@CLAUSE ...``: ``?`` may be absent, ``[]`` a list, ``{}`` a shape, ``...`` more keys."""


def misshapen(name: str, value: Any, at: str) -> Iterator[Fault]:
    """What is wrong with the keys and types of ``value``; ``at`` says where it stands."""
    shape = SHAPES[name]
    if not isinstance(value, dict):
        yield Fault(f"{at} is not an object", shape.clauses)
        return
    known = {each.key for each in shape.fields}
    for key in sorted({each.key for each in shape.fields if not each.optional} - set(value)):
        yield Fault(f"{at} lacks {key}", shape.clauses)
    if not shape.open:
        for key in sorted(set(value) - known):
            yield Fault(f"{at} has the unknown key {key}", shape.clauses)
    for each in shape.fields:
        if each.key in value:
            yield from _mistyped(each, value[each.key], f"{at}.{each.key}")


def _mistyped(expected: Field, value: Any, at: str) -> Iterator[Fault]:
    if not expected.many:
        yield from _unfit(expected, value, at)
    elif not isinstance(value, list):
        yield Fault(f"{at} is not a list", expected.clauses)
    else:
        for i, each in enumerate(value):
            yield from _unfit(expected, each, f"{at}[{i}]")


def _nested(expected: Field, value: Any) -> str | None:
    """The name of the shape that an object must have here; None where no object is due, or none came."""
    nested = next((kind[1:-1] for kind in expected.kinds if kind.startswith("{")), None)
    if nested is None or not isinstance(value, dict):
        return None
    family, _, key = nested.partition("/")
    return nested if nested in SHAPES else f"{family}/{value.get(key)}"


def parts(field: Field, value: Any) -> Iterator[tuple[str, Any]]:
    """The objects in the value of a key, each with the name of its shape."""
    for each in value if field.many and isinstance(value, list) else [value]:
        name = _nested(field, each)
        if name is not None:
            yield name, each


def _unfit(expected: Field, value: Any, at: str) -> Iterator[Fault]:
    name = _nested(expected, value)
    if name is not None:
        yield from misshapen(name, value, at) if name in SHAPES else [Fault(f"{at} is of no kind", expected.clauses)]
    elif not any(TYPES[kind](value) if kind in TYPES else kind == value for kind in expected.kinds):
        yield Fault(f"{at} is {_brief(value)}, not {'|'.join(expected.kinds) or 'empty'}", expected.clauses)


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else text[:39] + "…"


def size_of(value: Any) -> int:
    """Serialized bytes in the shortest spelling: a bound passed even so is passed for sure."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
