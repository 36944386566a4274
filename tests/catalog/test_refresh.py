"""``model.refresh`` against servers on 127.0.0.1: what is asked, what is kept, what is written (EXT-REFRESH)."""

import json
import os
from datetime import datetime
from typing import Any

import msgspec
import pytest

from localagent.protocol.codes import Code
from localagent.settings.snapshot import Provider
from tests.sessions.kit import StillClock

from .kit import Desk, House, custom, entry, refusal
from .server import Connection, answering, models, refreshed, serving

MIB = 1024 * 1024


def test_a_new_cache(house: House) -> None:
    """EXT-REFRESH-14 to -21, -38, -45."""
    house.folder.rmdir()
    with serving(answering(models("tiny", "big", {"id": "a/b"}))) as server:
        desk = Desk(house, custom("bench", "tiny", base_url=server.url))
        before = desk.page()
        assert before.notices == ("provider_catalog_unavailable",)
        told = desk.refresher.refresh("bench", None)
        assert json.loads(msgspec.json.encode(told)) == {
            "catalog_error": None,
            "catalog_revision": desk.catalog.revision,
            "configuration_reload": "restart_child",
            "outcome": "refreshed",
            "provider": "bench",
            "reason": None,
            "recovery": "reload_catalog",
            "selection_unchanged": True,
        }
        assert desk.models() == ["tiny"]
        assert server.requests == ["GET /v1/models HTTP/1.1"]
        assert server.connections[0].header("authorization") is None
        assert server.connections[0].header("accept-encoding") == "identity"
    assert house.file().stat().st_mode & 0o777 == 0o600
    assert house.folder.stat().st_mode & 0o777 == 0o700
    text = house.file().read_text()
    written = json.loads(text)
    assert datetime.fromisoformat(written.pop("fetched_at")).tzinfo is not None
    assert written == {
        "schema_version": 9,
        "provider": "bench",
        "cache_fingerprint": {"enrichment_version": 3, "models_dev_provider": "bench"},
        "entries": [entry("bench", "a/b"), entry("bench", "big"), entry("bench", "tiny")],
    }
    assert text.startswith('{\n  "schema_version": 9,\n  "provider": "bench",\n  "fetched_at": "')
    assert text.endswith("}\n")


def test_the_key_goes_to_the_provider_and_nowhere_else(house: House) -> None:
    with serving(answering(models("tiny"))) as server:
        provider = custom("bench", "tiny", base_url=server.url, api_key_env_var="KEY")
        told = Desk(house, provider, environ={"KEY": "very-private"}).refresher.refresh("bench", None)
        assert server.connections[0].header("authorization") == "Bearer very-private"
    assert told.outcome == "refreshed"
    assert not [path for path, (_, data) in house.tree().items() if b"very-private" in data]


@pytest.mark.parametrize("key", [None, "", "a\nb", "a b", "é", "a\x7f"])
def test_without_a_usable_key_nobody_is_asked(house: House, key: str | None) -> None:
    environ = {} if key is None else {"KEY": key}
    told = refreshed(house, _never, api_key_env_var="KEY", desk={"environ": environ})
    assert (told.outcome, told.reason) == ("failed", "authentication_unavailable")
    assert told.catalog_revision is not None


def _never(connection: Connection) -> None:
    raise AssertionError("nobody is to be asked")


@pytest.mark.parametrize("provider", ["openai-codex", "claude-subscription", "anthropic"])
def test_built_in_providers_without_credentials(house: House, provider: str) -> None:
    """CRED-03: two of them never have any here."""
    told = Desk(house).refresher.refresh(provider, None)
    assert (told.provider, told.reason) == (provider, "authentication_unavailable")


@pytest.mark.parametrize("provider", ["nobody", "Bench", "", "scripted", "../bench"])
def test_an_unknown_provider_invalidates_nothing(house: House, provider: str) -> None:
    """EXT-REFRESH-04, EXT-OP-35."""
    house.put()
    desk = Desk(house, custom("bench", "tiny"), Provider(id="scripted", kind="scripted"))
    page = desk.page()
    assert refusal(lambda: desk.refresher.refresh(provider, None)) is Code.INVALID_PARAMS
    assert desk.catalog.revision == page.revision


def test_anthropic_page_by_page(house: House) -> None:
    pages = [
        models({"id": "claude-b", "display_name": "Claude B"}, has_more=True, last_id="claude b&"),
        models({"id": "claude-a", "display_name": "Claude A"}, has_more=False, last_id="claude-a"),
    ]
    with serving(*map(answering, pages)) as server:
        desk = Desk(house, environ={"ANTHROPIC_API_KEY": "k"}, anthropic=server.url)
        assert desk.refresher.refresh("anthropic", None).reason is None
        assert server.requests == [
            "GET /v1/models?limit=1000 HTTP/1.1",
            "GET /v1/models?limit=1000&after_id=claude%20b%26 HTTP/1.1",
        ]
        assert [each.header("x-api-key") for each in server.connections] == ["k", "k"]
        assert server.connections[0].header("anthropic-version") == "2023-06-01"
    assert desk.statuses()["anthropic"].catalog_status == "available"
    written = json.loads(house.file("anthropic").read_bytes())
    assert written["cache_fingerprint"] == {"enrichment_version": 4}
    assert [each["display_name"] for each in written["entries"]] == ["Claude A", "Claude B"]


@pytest.mark.parametrize("more", [{"last_id": None}, {"last_id": "", "data": []}, {"last_id": "x", "data": []}])
def test_anthropic_that_would_go_on_for_ever(house: House, more: dict[str, Any]) -> None:
    with serving(answering(models("a", **({"has_more": True} | more)))) as server:
        desk = Desk(house, environ={"ANTHROPIC_API_KEY": "k"}, anthropic=server.url)
        assert desk.refresher.refresh("anthropic", None).reason == "invalid_catalog"


def test_anthropic_that_repeats_itself(house: House) -> None:
    with serving(answering(models("a", has_more=True, last_id="a"))) as server:
        desk = Desk(house, environ={"ANTHROPIC_API_KEY": "k"}, anthropic=server.url)
        assert desk.refresher.refresh("anthropic", None).reason == "invalid_catalog"
        assert len(server.requests) == 2


def test_anthropic_that_has_too_much_in_too_many_pages(house: House) -> None:
    """No more is asked for once the bound is passed (EXT-REFRESH-26)."""
    pages = [models(*(f"{page}-{n}" for n in range(700)), has_more=True, last_id=str(page)) for page in range(9)]
    with serving(*map(answering, pages)) as server:
        desk = Desk(house, environ={"ANTHROPIC_API_KEY": "k"}, anthropic=server.url)
        assert desk.refresher.refresh("anthropic", None).reason == "catalog_limit"
        assert len(server.requests) == 3


def test_what_an_answer_says_about_a_model(house: House) -> None:
    full = {
        "id": "full",
        "name": " Full ",
        "context_length": 1000,
        "max_output_tokens": 10,
        "reasoning_efforts": ["low", "xhigh"],
        "supports_reasoning": True,
        "secret": "x",
    }
    odd = {"id": "odd", "name": 1, "context_length": True, "reasoning_efforts": ["wild"], "supports_reasoning": "y"}
    assert refreshed(house, answering(models(full, odd))).outcome == "refreshed"
    written = json.loads(house.file().read_bytes())["entries"]
    assert written == [
        entry(
            "bench",
            "full",
            display_name="Full",
            context_window=1000,
            max_output_tokens=10,
            reasoning_efforts=["low", "x_high"],
            supports_reasoning=True,
        ),
        entry("bench", "odd"),
    ]


def test_facts_that_the_answer_does_not_repeat_are_kept(house: House) -> None:
    facts = {"display_name": "Tiny", "reasoning_efforts": ["high"], "modalities": {"input": ["text"]}}
    house.put("bench", [entry("bench", "tiny", **facts), entry("bench", "gone", display_name="Gone")])
    assert refreshed(house, answering(models({"id": "tiny", "display_name": "Tinier"}, "new"))).outcome == "refreshed"
    written = json.loads(house.file().read_bytes())["entries"]
    assert written == [entry("bench", "new"), entry("bench", "tiny", **(facts | {"display_name": "Tinier"}))]


@pytest.mark.parametrize("wrong", [{"schema_version": 8}, {"provider": "x"}, {"cache_fingerprint": {}}])
def test_no_facts_of_a_cache_that_was_made_for_something_else(house: House, wrong: dict[str, Any]) -> None:
    house.put("bench", [entry("bench", "tiny", display_name="Old")], **wrong)
    assert refreshed(house, answering(models("tiny"))).outcome == "refreshed"
    assert json.loads(house.file().read_bytes())["entries"] == [entry("bench", "tiny")]


def test_extra_models_of_the_settings(house: House) -> None:
    told = refreshed(house, answering(models("tiny", "both")), extra_models=("mine", "both"))
    assert told.outcome == "refreshed"
    written = json.loads(house.file().read_bytes())
    assert [each["model"] for each in written["entries"]] == ["both", "mine", "tiny"]
    assert written["cache_fingerprint"]["extra_models"] == ["mine", "both"]


# the scan behind it


def test_a_scan_that_fails_afterwards(house: House) -> None:
    """EXT-REFRESH-46 to -48, EXT-OP-31: the cache was refreshed all the same."""
    house.file("other").symlink_to("nowhere")
    with serving(answering(models("tiny"))) as server:
        desk = Desk(house, custom("bench", "tiny", base_url=server.url), custom("other"))
        told = desk.refresher.refresh("bench", None)
        assert (told.outcome, told.catalog_revision, told.catalog_error) == ("refreshed", None, "catalog_unavailable")
        house.file("other").unlink()
        house.file("other").write_bytes(b" " * (MIB + 1))
        told = desk.refresher.refresh("bench", None)
        assert (told.outcome, told.catalog_revision, told.catalog_error) == ("refreshed", None, "catalog_limit")
    assert desk.catalog.revision is None


@pytest.mark.parametrize("spoil", ["link", "fifo"])
def test_a_refresh_replaces_what_is_no_cache(house: House, spoil: str) -> None:
    """By name: where a link pointed to stays as it is."""
    target = house.path / "elsewhere"
    target.write_bytes(b"mine")
    house.file().symlink_to(target) if spoil == "link" else os.mkfifo(house.file())
    assert refreshed(house, answering(models("tiny"))).outcome == "refreshed"
    assert house.file().is_file()
    assert not house.file().is_symlink()
    assert target.read_bytes() == b"mine"


@pytest.mark.parametrize("spoil", ["directory", "folder", "cache"])
def test_a_cache_that_cannot_be_written(house: House, spoil: str) -> None:
    if spoil == "directory":
        (house.file() / "below").mkdir(parents=True)
    else:
        folder = house.folder if spoil == "folder" else house.folder.parent
        folder.rename(folder.with_name("elsewhere"))
        folder.symlink_to(folder.with_name("elsewhere"))
    told = refreshed(house, answering(models("tiny")))
    assert (told.outcome, told.reason) == ("failed", "cache_write_failed")
    assert (told.catalog_revision, told.catalog_error) == (None, "catalog_unavailable")
    assert not [each for each in house.tree() if each.endswith(".tmp")]


def test_preferences_and_everything_else_stay(house: House) -> None:
    """EXT-REFRESH-34 to -37."""
    (house.path / "auth.json").write_text("{}")
    house.put("other", ["x"])
    before = house.tree()
    assert refreshed(house, answering(models("tiny"))).outcome == "refreshed"
    after = house.tree()
    assert after.pop(str(house.file()))
    assert after == before


def test_phases_are_told(house: House) -> None:
    told: list[tuple[str, int]] = []
    with serving(answering(models("tiny"))) as server:
        desk = Desk(house, custom("bench", base_url=server.url))
        desk.refresher.refresh("bench", None, told=lambda phase, count: told.append((phase, count)))
    assert [phase for phase, _ in told] == ["asking", "receiving", "writing", "reading back"]
    assert told[1][1] == len(models("tiny"))


def test_the_time_written_is_the_clocks(house: House) -> None:
    still = StillClock(wall=1_800_000_000_500_000_000)
    assert refreshed(house, answering(models("tiny")), desk={"clock": still.clock}).outcome == "refreshed"
    assert json.loads(house.file().read_bytes())["fetched_at"] == "2027-01-15T08:00:00Z"
