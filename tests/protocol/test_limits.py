"""Bounds: the thirty published ones against real captures, the rest against the tables of the contract."""

import msgspec
import pytest

from localagent.protocol.limits import LIMITS, Limits, PublishedLimits, published

from .captures import CAPTURES, frames


@pytest.mark.parametrize("capture", CAPTURES)
def test_published_limits_are_those_of_the_published_backend(capture: str) -> None:
    """D72: the captured answer to ``initialize`` has the same thirty keys, values and order."""
    captured = frames(capture, "backend")[0]["result"]["limits"]
    assert published() == captured
    assert list(published()) == list(captured)
    assert len(captured) == 30


def test_published_names_are_attributes_of_the_one_struct() -> None:
    assert issubclass(Limits, PublishedLimits)
    assert {name: getattr(LIMITS, name) for name in published()} == published()


def test_limits_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        LIMITS.frame_bytes = 1  # type: ignore[misc]


def test_other_bounds() -> None:
    """Base 20.1 and 20.3, typed from the page."""
    expected = {
        "activities": 4096,
        "activity_id_bytes": 1024,
        "approval_ms": 60000,
        "assistant_bytes": 8388608,
        "assistant_segments": 512,
        "auth_file_bytes": 1048576,
        "claude_status_ms": 10000,
        "cleanup_ms": 2000,
        "closing_ms": 2000,
        "critical_wait_ms": 2000,
        "history_file_bytes": 67108864,
        "history_file_lines": 100000,
        "history_snapshot_bytes": 8388608,
        "history_snapshot_parts": 10000,
        "live_chunk_bytes": 4000,
        "name_bytes": 256,
        "page_limit": 100,
        "partial_frames": 1,
        "provider_cache_bytes": 2097152,
        "read_batch_bytes": 4096,
        "required_capabilities": 16,
        "required_capabilities_client_tools": 18,
        "retention_days": 30,
        "selection_id_bytes": 64,
        "selection_metadata_bytes": 1048576,
        "startup_workers": 1,
        "summary_bytes": 1024,
        "title_characters": 50,
        "worker_events": 32,
        "workers": 1,
    }
    extensions = {"client_tools", "discover", "refresh", "cards"}
    assert set(Limits.__struct_fields__) == set(published()) | set(expected) | extensions
    assert {name: getattr(LIMITS, name) for name in expected} == expected


def test_client_tool_bounds() -> None:
    """CT 12.1: exactly these twelve keys."""
    assert msgspec.to_builtins(LIMITS.client_tools) == {
        "tools": 32,
        "name_bytes": 64,
        "description_bytes": 2048,
        "registry_bytes": 32768,
        "schema_bytes": 8192,
        "schema_depth": 16,
        "arguments_bytes": 16384,
        "result_bytes": 32768,
        "pending_calls": 16,
        "default_timeout_ms": 30000,
        "min_timeout_ms": 1000,
        "max_timeout_ms": 300000,
    }


def test_extension_bounds() -> None:
    """EXT 8.3, which no descriptor shows; the descriptors are tested with the results."""
    assert LIMITS.discover.reader_bytes == 8192
    refresh = msgspec.to_builtins(LIMITS.refresh)
    assert refresh == {
        "cache_bytes": 1048576,
        "models": 2048,
        "providers_per_request": 1,
        "body_bytes": 2097152,
        "connect_ms": 10000,
        "enrichment_bytes": 8388608,
        "enrichment_ms": 30000,
        "wall_ms": 300000,
        "workers": 32,
    }
