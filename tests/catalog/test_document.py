"""Cache files: every way to be wrong, and the status it gives (CACHE-02 to CACHE-05, EXT-STATUS-16 to -20)."""

import json
from typing import Any

import pytest

from localagent.catalog.document import expected, judge
from localagent.settings.snapshot import Provider

from .kit import BUILT_IN, Desk, House, custom, document, entry

BENCH = custom()


def status(provider: Provider = BENCH, /, **more: Any) -> str:
    return judge(json.dumps(document(provider.id, **more)).encode(), provider).status


def entries(*members: dict[str, Any]) -> list[Any]:
    return [entry("bench", "tiny") | each for each in members]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" \n",
        b"{",
        json.dumps(document()).encode()[:-1],
        json.dumps(document()).encode()[: len(json.dumps(document())) // 2],
        b"[]",
        b"null",
        b'"a"',
        b"\xef\xbb\xbf" + json.dumps(document()).encode(),
        json.dumps(document()).encode() + b"{}",
        json.dumps(document()).encode().replace(b"tiny", b"ti\xffy"),
        json.dumps(document()).encode().replace(b"tiny", b"\\ud800"),
        b"[" * 200_000,
        b'{"schema_version":9,"x":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b"<!DOCTYPE html><html></html>",
        b"\0" * 4096,
    ],
)
def test_what_is_no_document(data: bytes) -> None:
    assert judge(data, BENCH).status == "invalid_format"
    assert judge(data, BENCH).entries == ()


@pytest.mark.parametrize("member", ["schema_version", "provider", "fetched_at", "cache_fingerprint", "entries"])
def test_a_required_member_is_missing_or_null(member: str) -> None:
    assert status(**{member: ...}) == "invalid_format"
    assert status(**{member: None}) == "invalid_format"


@pytest.mark.parametrize(
    "wrong",
    [
        {"schema_version": "9"},
        {"schema_version": 9.5},
        {"schema_version": True},
        {"provider": 1},
        {"fetched_at": "yesterday"},
        {"fetched_at": "2026-03-01T00:00:00"},
        {"fetched_at": 1},
        {"cache_fingerprint": []},
        {"cache_fingerprint": {"enrichment_version": "3"}},
        {"cache_fingerprint": {"extra_models": "a"}},
        {"entries": {}},
        {"entries": ["tiny"]},
        {"entries": [None]},
        {"entries": entries({"model": 1})},
        {"entries": entries({"id": None})},
        {"entries": entries({"display_name": 1})},
        {"entries": entries({"context_window": "many"})},
        {"entries": entries({"context_window": -1})},
        {"entries": entries({"context_window": True})},
        {"entries": entries({"reasoning_efforts": "high"})},
        {"entries": entries({"reasoning_efforts": [1]})},
        {"entries": entries({"reasoning_efforts": ["extreme"]})},
        {"entries": entries({"reasoning_efforts": ["High"]})},
        {"entries": entries({"supports_reasoning": "yes"})},
        {"entries": entries({"input_cost": 1})},
        {"entries": entries({"service_tiers": [{"id": 1}]})},
        {"entries": [*entries({}), {"provider": "bench", "model": "x"}]},
    ],
)
def test_a_member_of_a_wrong_type_wherever_it_stands(wrong: dict[str, Any]) -> None:
    """Format comes first: it hides every other fault (EXT-STATUS-18)."""
    assert status(**wrong) == "invalid_format"
    assert status(**({"schema_version": 8} | wrong)) == "invalid_format"


def test_each_check_hides_those_behind_it() -> None:
    other = {"enrichment_version": 2}
    strange = [entry("bench", "tiny", id="bench/other")]
    assert status(schema_version=8, cache_fingerprint=other, entries=strange) == "invalid_schema"
    assert status(provider="other", cache_fingerprint=other, entries=[]) == "invalid_schema"
    assert status(cache_fingerprint=other, entries=[]) == "incompatible_fingerprint"
    assert status(cache_fingerprint=other, entries=strange) == "incompatible_fingerprint"
    assert status(entries=[]) == "empty_cache"
    assert status(entries=strange) == "invalid_format"
    assert status() == "available"


@pytest.mark.parametrize(
    "strange",
    [
        {"provider": "other"},
        {"provider": "other", "id": "other/tiny"},
        {"model": "", "id": "bench/"},
        {"id": "tiny"},
        {"id": "bench/Tiny"},
    ],
)
def test_identities_of_entries_come_last(strange: dict[str, Any]) -> None:
    """EXT-OP-28: one bad entry is enough, and none of the others is used."""
    judged = judge(json.dumps(document(entries=[entry("bench", "good"), *entries(strange)])).encode(), BENCH)
    assert judged == ("invalid_format", ())


def test_what_may_be_there_or_not() -> None:
    assert status(schema_version=9, unknown={"deep": [1]}, entries=entries({"new_member": 1})) == "available"
    nulls = dict.fromkeys(("display_name", "context_window", "reasoning_efforts", "supports_reasoning", "modalities"))
    assert status(entries=entries(nulls)) == "available"
    full = {
        "display_name": "T",
        "description": "d",
        "context_window": 1,
        "max_context_window": 2,
        "max_output_tokens": 0,
        "reasoning_efforts": ["x_high", "xhigh", "max", "default"],
        "supports_reasoning_effort": True,
        "input_cost": "0.1",
        "output_cost": "0.2",
        "modalities": {"input": ["text"]},
        "service_tiers": [{"id": "a", "name": "b", "description": "c"}],
    }
    assert status(entries=entries(full)) == "available"


@pytest.mark.parametrize("at", ["1999-01-01T00:00:00Z", "2126-01-01T00:00:00.123456789Z", "2026-03-01T01:00:00+01:00"])
def test_age_is_nothing(at: str) -> None:
    assert status(fetched_at=at) == "available"  # CAT-34


FINGERPRINTS: list[tuple[Provider, dict[str, Any], bool]] = [
    (custom(), {"enrichment_version": 3, "models_dev_provider": "bench"}, True),
    (custom(), {"enrichment_version": 3, "models_dev_provider": "bench", "extra_models": []}, True),
    (custom(), {"enrichment_version": 3, "models_dev_provider": "bench", "codex_client_version": None}, True),
    (custom(), {"enrichment_version": 3, "models_dev_provider": "bench", "what": 1}, True),
    (custom(), {"enrichment_version": 4, "models_dev_provider": "bench"}, False),
    (custom(), {"models_dev_provider": "bench"}, False),
    (custom(), {"enrichment_version": 3}, False),
    (custom(), {"enrichment_version": 3, "models_dev_provider": "openai"}, False),
    (custom(models_dev_provider="openai"), {"enrichment_version": 3, "models_dev_provider": "openai"}, True),
    (custom(), {"enrichment_version": 3, "models_dev_provider": "bench", "codex_client_version": "1"}, False),
    (custom(), {"enrichment_version": 3, "models_dev_provider": "bench", "extra_models": ["a"]}, False),
    (custom(extra_models=("a", "b")), {"enrichment_version": 3, "models_dev_provider": "bench"}, False),
    *(
        (
            custom(extra_models=("a", "b")),
            {"enrichment_version": 3, "models_dev_provider": "bench", "extra_models": listed},
            listed == ["a", "b"],
        )
        for listed in (["a", "b"], ["b", "a"], ["a"], ["a", "b", "b"])
    ),
    (BUILT_IN[0], {"enrichment_version": 3, "codex_client_version": "0.162.0"}, True),
    (BUILT_IN[0], {"enrichment_version": 3}, False),
    (BUILT_IN[0], {"enrichment_version": 3, "codex_client_version": "0.161.0"}, False),
    (BUILT_IN[1], {"enrichment_version": 4}, True),
    (BUILT_IN[1], {"enrichment_version": 3}, False),
    (BUILT_IN[2], {"enrichment_version": 4, "extra_models": None}, True),
]


@pytest.mark.parametrize(("provider", "fingerprint", "fits"), FINGERPRINTS)
def test_fingerprints_member_by_member(provider: Provider, fingerprint: dict[str, Any], fits: bool) -> None:
    """CACHE-04; absent, null and an empty list are equal, the order of a list counts."""
    found = status(provider, cache_fingerprint=fingerprint)
    assert found == ("available" if fits else "incompatible_fingerprint")


def test_the_address_is_no_part_of_it() -> None:
    assert expected(custom(base_url="http://127.0.0.1:1/v1")) == expected(custom(base_url="https://a.example/v1"))


@pytest.mark.parametrize("sound", ["available", "missing_cache"])
def test_the_status_reaches_the_client(house: House, sound: str) -> None:
    if sound == "available":
        house.put()
    desk = Desk(house, custom("bench", "tiny"))
    assert desk.statuses()["bench"].catalog_status == sound
    assert desk.page().notices == (() if sound == "available" else ("provider_catalog_unavailable",))
