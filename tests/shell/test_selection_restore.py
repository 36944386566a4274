"""What a session saved comes back when it is opened; a turn meets a changed cache, or a runner that is not there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.catalog.homes import BENCH, CHAT, EMBED, ENABLED, Home

from .selecting import Picker, picker, set_to


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def child(home: Home) -> Iterator[Picker]:
    with picker(home) as child:
        child.begin()
        yield child


def names(status: dict[str, Any]) -> tuple[str, str, str, str | None]:
    found = status["selection"]
    assert (status["provider"], status["model"]) == (found["provider"], found["model"])
    return found["provider"], found["model"], found["requested_effort"], found["effective_effort"]


def put(home: Home, *saved: Any, session: str = "old") -> str:
    """A stored session whose directory is recorded nowhere, with saved selections."""
    home.put(session, *(("session_preferences", each) for each in saved))
    return session


def preferences(model: str, effort: str, provider: str = "bench") -> dict[str, str]:
    return {"provider": provider, "model": model, "requested_thinking": effort}


# restoring


def test_a_saved_selection_comes_back_in_the_same_child_and_in_another(child: Picker, home: Home) -> None:
    """SEL-76, SESS-36, SESS-37, SEL-21."""
    session = child.session
    chosen = child.select("bench/chat", set_to("xhigh"))["result"]["selection"]
    other = child.create()  # with the startup selection again
    assert names(child.status()) == ("scripted", "demo", "default", None)
    stored = home.session(session).read_bytes()
    opened = child.open(session)
    assert (opened["durable"], opened["notices"]) == (True, [])
    restored = child.selection()
    assert restored == {**chosen, "revision": restored["revision"]}
    assert restored["revision"] != chosen["revision"]
    assert other != session
    child.ask("shutdown")
    assert child.wait() == 0
    with picker(home) as later:
        later.initialize()
        assert later.open(session)["notices"] == []
        assert names(later.status()) == ("bench", "chat", "xhigh", "xhigh")
    assert home.session(session).read_bytes() == stored


def test_going_back_and_forth_never_meets_its_own_leases(child: Picker) -> None:
    """SESS-14, SESS-47, BASE-OP-105: what was replaced a moment ago is not somebody else's."""
    efforts = {}
    for effort in ("low", "high"):
        child.session = child.create()
        child.select("bench/chat", set_to(effort))
        efforts[child.session] = effort
    for _ in range(5):
        for session, effort in efforts.items():
            assert child.open(session)["notices"] == []
            assert child.selection()["requested_effort"] == effort


def test_the_last_valid_saved_selection_counts(home: Home) -> None:
    """REC-64, SET-12: both spellings are read, invalid records are skipped in silence."""
    bad = [preferences("chat", "none"), preferences(" ", "low"), {"provider": "bench"}, [], "chat"]
    with picker(home) as child:
        child.initialize()
        for spelling in ("x_high", "xhigh"):
            put(home, preferences("embed", "low"), preferences("chat", spelling), *bad, session=spelling)
            assert child.open(spelling)["notices"] == ["cwd_unverified"]
            assert names(child.status()) == ("bench", "chat", "xhigh", "xhigh")
        put(home, *bad, session="bad")
        child.open("bad")
        assert names(child.status()) == ("scripted", "demo", "default", None)


UNAVAILABLE = {
    "not enabled": preferences("hidden", "high"),
    "retired": preferences("gone", "high"),
    "not ready": preferences("vault", "high", "gated"),
    "unknown provider": preferences("m", "high", "nobody"),
    "never ready here": preferences("gpt-5.5", "high", "openai-codex"),
}


@pytest.mark.parametrize("saved", UNAVAILABLE.values(), ids=UNAVAILABLE)
def test_an_unavailable_one_leaves_the_startup_selection_and_the_saved_effort(home: Home, saved: Any) -> None:
    """SESS-38 to SESS-40, REC-64."""
    home.settings({"provider": "bench", "model": "chat", "thinking_level": "low"})
    put(home, saved)
    stored = home.session("old").read_bytes()
    with picker(home) as child:
        child.initialize()
        assert child.open("old")["notices"] == ["cwd_unverified", "saved_selection_unavailable"]
        assert names(child.status()) == ("bench", "chat", "high", "high")
        child.create()
        assert names(child.status()) == ("bench", "chat", "low", "low")
    assert home.session("old").read_bytes() == stored


@pytest.mark.parametrize("damage", ["missing", "garbage", "link", "too long", "twice"])
def test_a_cache_that_cannot_be_used_makes_it_unavailable_and_opening_goes_on(home: Home, damage: str) -> None:
    """SESS-40, CACHE-08."""
    put(home, preferences("chat", "high"))
    path = home.cache_file("bench")
    if damage == "link":
        path.rename(path.with_suffix(".real"))
        path.symlink_to("bench.real")
    elif damage == "missing":
        path.unlink()
    elif damage == "twice":
        text = path.read_bytes()
        start = text.index(b'{"provider": "bench", "model": "chat"')
        home.replace("bench", text[:start] + text[start : text.index(b"}", start) + 1] + b", " + text[start:])
    else:
        home.replace("bench", b"{" if damage == "garbage" else path.read_bytes() + b" " * 2**20)
    with picker(home) as child:
        child.initialize()
        assert "saved_selection_unavailable" in child.open("old")["notices"]
        assert names(child.status()) == ("scripted", "demo", "high", None)


def test_a_saved_effort_that_no_longer_applies_is_said(home: Home) -> None:
    """SEL-09, SEL-19, SESS-41; a deliberate keep of it is refused (SEL-37)."""
    put(home, preferences("chat", "max"))
    with picker(home) as child:
        child.begin()
        assert child.open("old")["notices"] == ["cwd_unverified", "saved_selection_notice"]
        assert names(child.status()) == ("bench", "chat", "max", "default")
        with child.unchanged():
            assert child.select("bench/chat")["error"]["code"] == "effort_unsupported"
        assert "result" in child.select("bench/chat", {"mode": "default"})
    assert [each["requested_thinking"] for each in home.saved("old")] == ["max", "default"]


def test_an_attachment_sees_a_changed_cache(child: Picker, home: Home) -> None:
    """SEL-25."""
    child.select("bench/chat", set_to("high"))
    home.cache("bench", {**BENCH, "chat": EMBED})
    assert child.open(child.session)["notices"] == ["saved_selection_notice"]
    assert names(child.status()) == ("bench", "chat", "high", None)


def test_a_failed_open_leaves_the_selection(child: Picker, home: Home) -> None:
    """SESS-44."""
    child.history = child.select("bench/chat", set_to("low"))["result"]["history_revision"]
    put(home, preferences("embed", "default"))
    with home.session("old").open("a") as file:
        file.write("torn")
    with child.unchanged():
        assert child.call("session.open", session_id="old")["error"]["code"] == "session_invalid"


# turns


def finished(frames: list[dict[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = frames[-1]["data"]
    return data


def kinds(frames: list[dict[str, Any]]) -> list[str]:
    return [frame.get("event", "response") for frame in frames]


def test_a_provider_without_a_runner_fails_the_turn_and_says_so(child: Picker, home: Home) -> None:
    """Issue 7: admitted, stored, then failed with a diagnostic, until its runner is built (ERR-45, EVT-39)."""
    child.select("bench/chat")
    frames = child.turn(child.session, "hello")
    assert kinds(frames) == ["response", "input.persisted", "diagnostic", "run.finished"]
    told = frames[2]["data"]
    assert told["code"] == "execution_failed"
    assert told["summary"] == "The runner of the provider bench is not built yet."
    done = finished(frames)
    assert (done["outcome"], done["error_code"], done["persistence"]) == ("failed", "execution_failed", "durable")
    stored = [record["event_type"] for record in home.records(child.session)]
    assert stored[:2] == ["session_preferences", "user_input"]
    entries = child.entries(done["revision"])
    assert [entry["text"] for entry in entries if isinstance(entry, dict) and entry["kind"] == "user"] == ["hello"]
    assert names(child.status())[:2] == ("bench", "chat")
    assert child.select("scripted/demo")["result"]["selection"]["provider"] == "scripted"
    assert finished(child.turn(child.session, "hello"))["outcome"] == "completed"  # SEL-72: from now on


def test_a_turn_that_meets_changed_efforts_fails_before_its_input(child: Picker, home: Home) -> None:
    """SEL-25 to SEL-29, BASE-OP-154: no input, no retry, a fresh selection to recover from."""
    chosen = child.select("bench/chat", set_to("high"))["result"]["selection"]
    stored = home.session(child.session).read_bytes()
    home.cache("bench", {**BENCH, "chat": {"reasoning_efforts": ["low", "max"]}})
    frames = child.turn(child.session, "hello")
    assert kinds(frames) == ["response", "run.finished"]
    done = finished(frames)
    assert (done["outcome"], done["error_code"], done["persistence"]) == ("failed", "stale_selection", "not_started")
    assert child.entries(done["revision"]) == []
    assert home.session(child.session).read_bytes() == stored
    seen = child.selection()
    assert seen["revision"] != chosen["revision"]
    assert (seen["requested_effort"], seen["effective_effort"]) == ("high", "default")
    assert seen["permitted_efforts"] == ["default", "low", "max"]
    assert child.select(selection_revision=chosen["revision"])["error"]["code"] == "stale_selection"
    assert finished(child.turn(child.session, "again"))["error_code"] == "execution_failed"  # it has been told


@pytest.mark.parametrize("model", ["bench/chat", "bench/plain"])
def test_a_turn_goes_on_when_the_cache_means_the_same(child: Picker, home: Home, model: str) -> None:
    """SEL-24, SEL-26."""
    chosen = child.select(model)["result"]["selection"]
    home.cache("bench", {"plain": {"display_name": "Plain"}, "chat": {**CHAT, "context_window": 9}, "new": CHAT})
    assert "input.persisted" in kinds(child.turn(child.session, "hello"))
    assert child.selection() == chosen


def test_a_lazy_session_stays_lazy_after_a_stale_turn(home: Home) -> None:
    """SEL-27: nothing is stored."""
    home.settings({"provider": "bench", "model": "chat"}, ENABLED)
    with picker(home) as child:
        child.begin()
        home.cache_file("bench").unlink()
        assert finished(child.turn(child.session, "hello"))["error_code"] == "stale_selection"
        assert not home.session(child.session).exists()
        found = child.selection()
        assert (found["effort_support"], found["permitted_efforts"]) == ("unknown", ["default"])
        assert found["effective_effort"] is None
        assert child.open(child.session)["durable"] is False
