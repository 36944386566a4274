"""Every code that can stand on the wire, with its family and the clause that defines it (base 21.1, EXT, CT)."""

from enum import StrEnum
from typing import Final, Self


class Code(StrEnum):
    """One wire code. Its value is the text on the wire; ``family`` and ``clause`` say where it belongs.

    Families: protocol, startup, session, history, listing, catalog, selection, turn, extension, client_tools.
    A code with several causes bears its first: ``provider_unavailable`` is also a selection code (ERR-40),
    ``stale_revision`` a listing code (ERR-30), ``content_limit`` a turn code (ERR-31), ``stale_selection``
    and ``persistence_failed`` turn codes too (ERR-38, ERR-45).
    """

    family: str
    clause: str

    # The defaults are never used: they let type checkers accept the look-up Code("busy").
    def __new__(cls, value: str, family: str = "", clause: str = "") -> Self:  # noqa: D102 - the class describes it
        member = str.__new__(cls, value)
        member._value_ = value
        member.family = family
        member.clause = clause
        return member

    INVALID_FRAME = "invalid_frame", "protocol", "ERR-08"
    INVALID_REQUEST = "invalid_request", "protocol", "ERR-09"
    INVALID_PARAMS = "invalid_params", "protocol", "ERR-10"
    PROTOCOL_MISMATCH = "protocol_mismatch", "protocol", "ERR-11"
    UNSUPPORTED_METHOD = "unsupported_method", "protocol", "ERR-12"
    UNSUPPORTED_CAPABILITY = "unsupported_capability", "protocol", "ERR-13"
    NOT_INITIALIZED = "not_initialized", "protocol", "ERR-14"
    ALREADY_INITIALIZED = "already_initialized", "protocol", "ERR-15"
    DUPLICATE_ID = "duplicate_id", "protocol", "ERR-16"
    REQUEST_LIMIT = "request_limit", "protocol", "ERR-17"
    FRAME_TOO_LARGE = "frame_too_large", "protocol", "ERR-18"
    INCOMPLETE_FRAME = "incomplete_frame", "protocol", "ERR-19"

    CONFIGURATION_INVALID = "configuration_invalid", "startup", "ERR-20"
    PROVIDER_UNAVAILABLE = "provider_unavailable", "startup", "ERR-20"
    PROFILE_INVALID = "profile_invalid", "startup", "ERR-20"
    MCP_UNAVAILABLE = "mcp_unavailable", "startup", "ERR-20"
    STARTUP_CANCELLED = "startup_cancelled", "startup", "ERR-21"
    STARTUP_FAILED = "startup_failed", "startup", "ERR-20"

    BUSY = "busy", "session", "ERR-23"
    STALE_SESSION = "stale_session", "session", "ERR-24"
    SESSION_MISSING = "session_missing", "session", "ERR-25"
    SESSION_BUSY = "session_busy", "session", "ERR-26"
    SESSION_INVALID = "session_invalid", "session", "ERR-27"
    CWD_MISMATCH = "cwd_mismatch", "session", "ERR-28"
    OPERATION_CANCELLED = "operation_cancelled", "session", "ERR-32"

    HISTORY_LIMIT = "history_limit", "history", "ERR-29"
    STALE_REVISION = "stale_revision", "history", "ERR-30"
    CONTENT_LIMIT = "content_limit", "history", "ERR-31"

    DISCOVERY_LIMIT = "discovery_limit", "listing", "ERR-33"
    DISCOVERY_UNAVAILABLE = "discovery_unavailable", "listing", "ERR-34"

    CATALOG_LIMIT = "catalog_limit", "catalog", "ERR-35"
    CATALOG_UNAVAILABLE = "catalog_unavailable", "catalog", "ERR-36"
    STALE_CATALOG = "stale_catalog", "catalog", "ERR-37"

    STALE_SELECTION = "stale_selection", "selection", "ERR-38"
    SELECTION_INVALID = "selection_invalid", "selection", "ERR-39"
    EFFORT_UNSUPPORTED = "effort_unsupported", "selection", "ERR-41"
    PERSISTENCE_FAILED = "persistence_failed", "selection", "ERR-42"

    STALE_RUN = "stale_run", "turn", "ERR-43"
    STALE_APPROVAL = "stale_approval", "turn", "ERR-44"
    EXECUTION_FAILED = "execution_failed", "turn", "ERR-45"
    OUTPUT_UNAVAILABLE = "output_unavailable", "turn", "FLOW-13"

    DISCOVERY_RECORD_BYTES = "discovery_record_bytes", "extension", "EXT-DISC-78"
    DISCOVERY_PAGE_BYTES = "discovery_page_bytes", "extension", "EXT-DISC-80"
    OPERATION_MISSING = "operation_missing", "extension", "EXT-CANCEL-10"

    STALE_CLIENT_TOOL_CALL = "stale_client_tool_call", "client_tools", "CT-110"
    CLIENT_TOOL_BUSY = "client_tool_busy", "client_tools", "CT-72"
    CLIENT_TOOL_PAYLOAD_LIMIT = "client_tool_payload_limit", "client_tools", "CT-68"


STARTUP_FAILURES: Final = frozenset(code for code in Code if code.family == "startup")
"""The six codes of a failed startup: the answer to ``initialize``, then ``readiness`` of every status (ERR-20)."""

CLOSING: Final = frozenset({Code.PROTOCOL_MISMATCH, Code.REQUEST_LIMIT, Code.FRAME_TOO_LARGE})
"""The three codes that close the connection; after every other error it stays usable (ERR-04, ERR-05)."""
