"""Every wire code, against the contract's own list."""

import msgspec
import pytest

from localagent.protocol.codes import CLOSING, STARTUP_FAILURES, Code

# Base 21.1, EXT 8, CT 7.1 and 12, typed from the pages.
BY_FAMILY = {
    "protocol": "invalid_frame invalid_request invalid_params protocol_mismatch unsupported_method "
    "unsupported_capability not_initialized already_initialized duplicate_id request_limit frame_too_large "
    "incomplete_frame",
    "startup": "configuration_invalid provider_unavailable profile_invalid mcp_unavailable startup_cancelled "
    "startup_failed",
    "session": "busy stale_session session_missing session_busy session_invalid cwd_mismatch operation_cancelled",
    "history": "history_limit stale_revision content_limit",
    "listing": "discovery_limit discovery_unavailable",
    "catalog": "catalog_limit catalog_unavailable stale_catalog",
    "selection": "stale_selection selection_invalid effort_unsupported persistence_failed",
    "turn": "stale_run stale_approval execution_failed output_unavailable",
    "extension": "discovery_record_bytes discovery_page_bytes operation_missing",
    "client_tools": "stale_client_tool_call client_tool_busy client_tool_payload_limit",
}


def test_the_codes_and_their_families() -> None:
    expected = {code: family for family, codes in BY_FAMILY.items() for code in codes.split()}
    assert {code.value: code.family for code in Code} == expected


def test_names_values_and_clauses() -> None:
    for code in Code:
        assert code.name == code.value.upper()
        assert code.clause.startswith(("ERR-", "EXT-", "CT-", "FLOW-"))


def test_startup_failures() -> None:
    """Base conventions: six codes."""
    assert set(BY_FAMILY["startup"].split()) == STARTUP_FAILURES


def test_closing_codes() -> None:
    """ERR-05."""
    assert {"protocol_mismatch", "request_limit", "frame_too_large"} == CLOSING


@pytest.mark.parametrize("code", Code)
def test_a_code_is_its_text_on_the_wire_and_back(code: Code) -> None:
    assert msgspec.json.encode(code) == b'"%b"' % code.value.encode()
    assert msgspec.convert(code.value, Code) is code
