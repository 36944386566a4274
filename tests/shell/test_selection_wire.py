"""``selection.set`` and ``status.selection`` at the wire, with real children, caches and settings (SEL)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.catalog.homes import BENCH, CHAT, Home
from tests.kit.child import line

from .selecting import ALL, EFFORTS, Picker, code, picker, set_to


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def child(home: Home) -> Iterator[Picker]:
    with picker(home) as child:
        child.begin()
        yield child


# the selection of a status


def test_the_embedded_selection_has_no_efforts(child: Picker) -> None:
    """SEL-01 to SEL-06, SEL-14, SEL-18, STATUS-07."""
    status = child.status()
    assert (status["provider"], status["model"]) == ("scripted", "demo")
    assert status["selection"] == {
        "effective_effort": None,
        "effort_support": "unsupported",
        "model": "demo",
        "permitted_efforts": ["default"],
        "provider": "scripted",
        "requested_effort": "default",
        "revision": status["selection"]["revision"],
    }


@pytest.mark.parametrize(
    ("model", "level", "support", "permitted", "effective"),
    [
        ("chat", "x_high", "supported", [*ALL], "xhigh"),  # SEL-13, SET-12
        ("chat", "max", "supported", [*ALL], "default"),  # SEL-09, SEL-19
        ("embed", "low", "unsupported", ["default"], None),  # SEL-14
        ("plain", "low", "unknown", ["default"], None),  # SEL-15 to SEL-17
        ("never-heard-of", "low", "unknown", ["default"], None),  # CACHE-08
    ],
)
def test_the_startup_selection_is_resolved_from_the_caches(
    home: Home, model: str, level: str, support: str, permitted: list[str], effective: str | None
) -> None:
    home.settings({"provider": "bench", "model": model, "thinking_level": level})
    with picker(home) as child:
        status = child.initialize()["status"]
    found = status["selection"]
    assert (status["provider"], status["model"], found["provider"], found["model"]) == ("bench", model, "bench", model)
    assert found["requested_effort"] == {"x_high": "xhigh"}.get(level, level)
    assert (found["effort_support"], found["permitted_efforts"]) == (support, permitted)
    assert found["effective_effort"] == effective


def test_every_attachment_gives_a_fresh_revision_and_a_refused_one_does_not(child: Picker) -> None:
    """SEL-21, SESS-44, BASE-OP-99."""
    first = child.selection()
    child.open(child.session)
    second = child.selection()
    assert second == {**first, "revision": second["revision"]}
    assert second["revision"] != first["revision"]
    assert code(child.call("session.open", session_id="nobody")) == "session_missing"
    assert child.selection() == second


# success


def test_a_selection_is_saved_and_shown(child: Picker, home: Home) -> None:
    """SEL-22, SEL-68 to SEL-82, SEL-94 to SEL-96, SESS-26, SESS-27."""
    before, settings = child.selection(), (home.path / "settings.json").read_bytes()
    assert home.records(child.session) == []
    result = child.select("bench/chat", set_to("xhigh"))["result"]
    assert result == {
        "catalog_revision": child.catalog,
        "durable": True,
        "history_revision": result["history_revision"],
        "notices": [],
        "scope": "session",
        "selection": {
            "effective_effort": "xhigh",
            "effort_support": "supported",
            "model": "chat",
            "permitted_efforts": [*ALL],
            "provider": "bench",
            "requested_effort": "xhigh",
            "revision": result["selection"]["revision"],
        },
        "session_id": child.session,
    }
    assert result["selection"]["revision"] != before["revision"]
    status = child.status()
    assert status["selection"] == result["selection"]
    assert (status["provider"], status["model"], status["state"]) == ("bench", "chat", "idle")
    [record] = home.records(child.session)
    assert record["event_type"] == "session_preferences"
    assert record["payload"] == {"model": "chat", "provider": "bench", "requested_thinking": "x_high"}
    assert len(json.dumps(record)) < 4096
    assert (home.path / "settings.json").read_bytes() == settings  # SEL-75
    assert child.entries(result["history_revision"]) == []  # SEL-73: no prompt, no placeholder


def test_the_longest_name_fits_the_record(home: Home) -> None:
    """SEL-34, SEL-69: 256 bytes, each of which JSON escapes."""
    name = '"\\' * 128
    home.settings(enabled=(f"bench/{name}",))
    home.cache("bench", {name: CHAT})
    with picker(home) as other:
        other.begin()
        assert other.select(f"bench/{name}")["result"]["selection"]["model"] == name
        assert home.saved(other.session)[0]["model"] == name
        assert home.session(other.session).stat().st_size <= 4096


def test_the_same_catalog_serves_another_selection_and_old_guards_do_not(child: Picker, home: Home) -> None:
    """SEL-22, SEL-57, SEL-82, BASE-OP-144, BASE-OP-147."""
    old = child.selection()["revision"]
    first = child.select("bench/chat")["result"]["selection"]
    again = child.select("bench/chat")["result"]["selection"]
    assert again == {**first, "revision": again["revision"]}
    assert len({old, first["revision"], again["revision"]}) == 3
    assert code(child.select(selection_revision=old)) == "stale_selection"
    assert code(child.select(selection_revision=first["revision"])) == "stale_selection"
    assert len(home.saved(child.session)) == 2


def test_older_history_and_listing_revisions_are_stale(child: Picker) -> None:
    """SEL-83, SEL-84, LIST-57."""
    other = child.session
    child.select()
    child.session = child.create()
    child.history = child.select()["result"]["history_revision"]
    listing = child.call("session.list", limit=1)["result"]
    assert listing["next_cursor"] is not None
    result = child.select("bench/embed")["result"]
    assert child.entries(child.history) == "stale_revision"
    assert child.entries(result["history_revision"]) == []
    continued = {"revision": listing["revision"], "cursor": listing["next_cursor"], "limit": 1}
    assert code(child.call("session.list", **continued)) == "stale_revision"
    listed = child.call("session.list")["result"]["sessions"]
    assert {each["session_id"] for each in listed} >= {other, child.session}


def test_the_modes_of_effort(child: Picker, home: Home) -> None:
    """SEL-35 to SEL-39, SEL-61, BASE-OP-146."""
    assert child.select("bench/chat", set_to("high"))["result"]["selection"]["requested_effort"] == "high"
    assert child.select("bench/chat")["result"]["selection"]["requested_effort"] == "high"
    assert child.select("bench/chat", {"mode": "keep"})["result"]["selection"]["requested_effort"] == "high"
    assert code(child.select("bench/embed")) == "effort_unsupported"  # keep does not fit, and nothing is guessed
    assert code(child.select("bench/plain", {"mode": "keep"})) == "effort_unsupported"
    found = child.select("bench/embed", {"mode": "default"})["result"]["selection"]
    assert (found["requested_effort"], found["effective_effort"]) == ("default", None)
    found = child.select("bench/chat")["result"]["selection"]
    assert (found["requested_effort"], found["effective_effort"]) == ("default", "default")
    saved = [(each["model"], each["requested_thinking"]) for each in home.saved(child.session)]
    assert saved == [("chat", "high")] * 3 + [("embed", "default"), ("chat", "default")]


def test_every_level_is_permitted_or_refused(child: Picker) -> None:
    """SEL-17, SEL-20, SEL-39, SEL-61."""
    for level in EFFORTS:
        answer = child.select("bench/chat", set_to(level))
        if level in ALL:
            assert answer["result"]["selection"]["effective_effort"] == level
        else:
            assert code(answer) == "effort_unsupported"
        assert code(child.select("bench/embed", set_to(level))) == "effort_unsupported"
        assert code(child.select("bench/plain", set_to(level))) == "effort_unsupported"


# refusals, each of which leaves everything as it was

MALFORMED_EFFORTS: tuple[Any, ...] = (
    *(None, "high", 1, [], {}, {"mode": None}, {"mode": "Keep"}, {"mode": "reset"}, {"mode": ["keep"]}),
    *({"mode": "set"}, {"mode": "set", "value": None}, {"mode": "set", "value": "default"}),
    *({"mode": "set", "value": word} for word in ("x_high", "HIGH", "High", "none", "minimal", "", 3)),
    *({"mode": mode, "value": value} for mode in ("keep", "default") for value in ("low", None)),
    *({"mode": mode, "extra": 1} for mode in ("keep", "default")),
    *({"mode": "set", "value": "low", "extra": 1}, {"value": "low"}),
)
MALFORMED: tuple[dict[str, Any], ...] = (
    *({name: None} for name in ("session_id", "selection_revision", "catalog_revision", "provider", "model")),
    *({name: 7} for name in ("session_id", "selection_revision", "catalog_revision", "provider", "model")),
    *({name: bad} for name in ("provider", "model") for bad in ("", "a\nb", "\x7f", "x" * 257, "\u00e9" * 129)),
    *({name: bad} for name in ("selection_revision", "catalog_revision") for bad in ("", "a b", "x" * 65)),
    *({"session_id": bad} for bad in ("", "a.b", "x" * 65)),
    *({name: "global"} for name in ("scope", "fallback", "api_key", "persist", "config")),
)


def test_malformed_params(child: Picker) -> None:
    """SEL-07, SEL-31 to SEL-34, SEL-40 to SEL-48: invalid_params, and nothing has moved."""
    good = child.asking()
    with child.unchanged():
        for effort in MALFORMED_EFFORTS:
            assert code(child.call("selection.set", **{**good, "effort": effort})) == "invalid_params", effort
        for spoilt in MALFORMED:
            missing = [name for name, value in spoilt.items() if value is None]
            params = {name: value for name, value in {**good, **spoilt}.items() if name not in missing}
            assert code(child.call("selection.set", **params)) == "invalid_params", spoilt
        for name, twice in (("model", '"model":"chat"'), ("effort", '"effort":{"mode":"keep","mode":"keep"}')):
            child.send(
                line(f"twice-{name}", "selection.set", **good).replace(
                    b'"params": {', b'"params": {' + f"{twice},".encode()
                )
            )
            assert code(child.answer(f"twice-{name}")) == "invalid_params"
    assert "result" in child.select()  # the connection is as good as before (SEL-96)


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("nobody/chat", ..., "selection_invalid"),  # SEL-59: unknown provider
        ("bench/unheard", ..., "selection_invalid"),  # unknown model
        ("bench/hidden", ..., "selection_invalid"),  # not enabled
        ("bench/gone", ..., "selection_invalid"),  # enabled, but retired
        ("bench/CHAT", ..., "selection_invalid"),  # SEL-63, SEL-64: no alias, no fallback
        ("bench/bench/chat", ..., "selection_invalid"),
        ("bench/ chat", ..., "selection_invalid"),
        ("anthropic/claude", ..., "selection_invalid"),
        ("bench/sk-chat", ..., "selection_invalid"),
        ("gated/vault", ..., "provider_unavailable"),  # SEL-60
        ("gated/vault", set_to("max"), "provider_unavailable"),  # D30: readiness before effort
        ("bench/chat", set_to("max"), "effort_unsupported"),  # SEL-61
    ],
)
def test_what_is_no_choice_is_refused(child: Picker, model: str, effort: Any, expected: str) -> None:
    with child.unchanged():
        assert code(child.select(model, effort)) == expected
    child.history = child.select()["result"]["history_revision"]
    with child.unchanged():  # also of a session that is stored
        assert code(child.select(model, effort)) == expected


def test_the_guards(child: Picker) -> None:
    """SEL-55 to SEL-58, and the order of D30."""
    with child.unchanged():
        everything = {"selection_revision": "never", "catalog_revision": "never"}
        assert code(child.select("nobody/none", session_id="other", **everything)) == "stale_session"
        assert code(child.select("nobody/none", **everything)) == "stale_selection"
        assert code(child.select("nobody/none", catalog_revision="never")) == "stale_catalog"
        assert code(child.select("nobody/none")) == "selection_invalid"


def test_without_initialization_attachment_or_catalog(home: Home) -> None:
    """SEL-49, SEL-55, SEL-58."""
    with picker(home) as child:
        params = {"session_id": "s", "selection_revision": "a", "catalog_revision": "b", "provider": "p", "model": "m"}
        assert code(child.call("selection.set", **params)) == "not_initialized"
        child.initialize()
        assert code(child.call("selection.set", **params)) == "session_missing"
        child.session = child.create()
        assert code(child.select(catalog_revision="b")) == "stale_catalog"


def test_after_a_failed_startup(home: Home) -> None:
    """SEL-02, SEL-50."""
    home.settings({"provider": "gated", "model": "vault"})
    with picker(home) as child:
        assert code(child.call("initialize", required_capabilities=[])) == "provider_unavailable"
        params = {"session_id": "s", "selection_revision": "a", "catalog_revision": "b", "provider": "p", "model": "m"}
        assert code(child.call("selection.set", **params)) == "provider_unavailable"
        assert child.status()["selection"] is None


# catalogs


def test_a_replaced_catalog_is_no_guard_any_more(child: Picker) -> None:
    """SEL-58, CAT-49."""
    old = child.catalog
    child.read_catalog()
    with child.unchanged():
        assert code(child.select(catalog_revision=old)) == "stale_catalog"
    assert "result" in child.select()


@pytest.mark.parametrize("damage", ["other", "missing", "link", "garbage", "other provider"])
def test_a_changed_cache_makes_the_catalog_stale_for_good(child: Picker, home: Home, damage: str) -> None:
    """SEL-58, SEL-65, CAT-47, CAT-48: restoring the bytes does not revive it; a fresh catalog does."""
    provider = "gated" if damage == "other provider" else "bench"
    path = home.cache_file(provider)
    good = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "link":
        path.unlink()
        path.symlink_to("gated.json")
    elif damage == "garbage":
        home.replace(provider, b"{")
    else:
        home.cache(provider, {"chat": CHAT})
    with child.unchanged():
        assert code(child.select("bench/chat")) == "stale_catalog"
        home.replace(provider, good)
        assert code(child.select("bench/chat")) == "stale_catalog"
    child.read_catalog()
    assert "result" in child.select("bench/chat")


def test_a_refresh_spoils_the_guard_and_leaves_the_selection(home: Home) -> None:
    """EXT-REFRESH-42, EXT-REFRESH-51, EXT-OP-33, EXT-OP-34: also one that fails, as nobody listens there."""
    with picker(home) as child:
        child.initialize("model.refresh")
        child.session = child.create()
        child.read_catalog()
        chosen = child.select("bench/chat", set_to("high"))["result"]
        child.history = chosen["history_revision"]
        refreshed = child.call("model.refresh", provider="bench")["result"]
        assert (refreshed["outcome"], refreshed["selection_unchanged"]) == ("failed", True)
        with child.unchanged():
            assert child.selection() == chosen["selection"]
            assert code(child.select("bench/embed", {"mode": "default"})) == "stale_catalog"
        child.catalog = refreshed["catalog_revision"]
        assert "result" in child.select("bench/embed", {"mode": "default"})


def test_a_catalog_shows_what_changed_and_rotates_the_revision_only_then(child: Picker, home: Home) -> None:
    """SEL-23, SEL-24: a new name means nothing, new efforts do; the request is retained."""
    chosen = child.select("bench/chat", set_to("high"))["result"]["selection"]
    home.cache("bench", {**BENCH, "chat": {**CHAT, "display_name": "Chat"}})
    child.read_catalog()
    assert child.selection() == chosen
    home.cache("bench", {**BENCH, "chat": {"reasoning_efforts": ["low"]}})
    assert child.selection() == chosen  # STATUS-21: from memory
    child.read_catalog()
    seen = child.selection()
    assert seen["revision"] != chosen["revision"]
    assert (seen["requested_effort"], seen["effective_effort"]) == ("high", "default")
    assert seen["permitted_efforts"] == ["default", "low"]
    assert code(child.select(selection_revision=chosen["revision"])) == "stale_selection"
    home.cache_file("bench").unlink()
    child.read_catalog()
    seen = child.selection()
    assert (seen["effort_support"], seen["effective_effort"], seen["requested_effort"]) == ("unknown", None, "high")
