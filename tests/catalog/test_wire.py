"""The three catalog methods over the pipes of a real child, and its frames before the observer."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statemachines.observe import Observer
from tests.kit.child import PATIENCE, Child, line

from .kit import House
from .server import Connection, answering, models, serving

ALL = ("model.catalog", "model.catalog.status", "model.refresh", "operation.cancel")
MODELS = [f"m{number}" for number in range(5)]


class Home(House):
    """A house with settings: a provider ``bench`` at an address."""

    def settings(self, url: str = "http://127.0.0.1:9/v1", *more: str, **custom: Any) -> None:
        enabled = [f"bench/{each}" for each in (*MODELS, "new", *more)]
        providers = {
            "custom": {"bench": {"label": "Bench", "base_url": url} | custom, "spare": {"label": "S", "base_url": url}},
            "catalog": {"enabled": enabled},
        }
        (self.path / "settings.json").write_text(json.dumps({"schema_version": 2, "providers": providers}))

    def child(self, *capabilities: str, **more: Any) -> Child:
        child = Child(self.path, cwd=self.path.parent, **more)
        child.initialize(*(capabilities or ALL))
        return child


@pytest.fixture
def home(tmp_path: Path) -> Home:
    one = Home(tmp_path)
    one.settings()
    one.put("bench", MODELS)
    return one


@pytest.fixture
def child(home: Home) -> Iterator[Child]:
    with home.child() as one:
        yield one


def code(answer: dict[str, Any]) -> str:
    found: str = answer["error"]["code"]
    return found


def after(page: dict[str, Any]) -> dict[str, Any]:
    return {"revision": page["revision"], "cursor": page["next_cursor"]}


def test_pages(child: Child) -> None:
    first = child.call("model.catalog", limit=2)["result"]
    assert sorted(first) == ["choices", "complete", "next_cursor", "notices", "revision", "source"]
    status = child.call("model.catalog.status", limit=2, **after(first))["result"]
    assert sorted(set(status) - set(first)) == ["configuration_reload", "providers"]
    last = child.call("model.catalog", **after(status))["result"]
    assert [each["model"] for page in (first, status, last) for each in page["choices"]] == MODELS
    assert (last["complete"], last["next_cursor"], last["source"]) == (True, None, "cache_only")
    relevant = {each["provider"]: each["relevant"] for each in status["providers"]}
    assert relevant == {
        "anthropic": False,
        "bench": True,
        "claude-subscription": False,
        "openai-codex": False,
        "spare": False,
    }


def test_a_child_without_settings_offers_nothing_and_complains_of_nothing(tmp_path: Path) -> None:
    """CAT-24."""
    with Child(tmp_path / "home") as child:
        child.initialize()
        page = child.call("model.catalog")["result"]
    assert (page["choices"], page["notices"], page["complete"]) == ([], [], True)


def test_what_needs_negotiation(home: Home) -> None:
    with home.child("model.catalog") as child:
        assert child.call("model.catalog")["result"]["complete"]
        assert code(child.call("model.catalog.status")) == "unsupported_capability"
        assert code(child.call("model.refresh", provider="bench")) == "unsupported_capability"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        *(
            (method, params)
            for method in ("model.catalog", "model.catalog.status")
            for params in (
                {"limit": 0},
                {"limit": 101},
                {"limit": 1.0},
                {"limit": None},
                {"revision": "a"},
                {"cursor": "a"},
                {"revision": "a b", "cursor": "a"},
                {"more": 1},
            )
        ),
        ("model.refresh", {}),
        ("model.refresh", {"provider": None}),
        ("model.refresh", {"provider": ""}),
        ("model.refresh", {"provider": "x" * 257}),
        ("model.refresh", {"provider": "a\nb"}),
        ("model.refresh", {"provider": "bench", "more": 1}),
    ],
)
def test_params(child: Child, method: str, params: dict[str, Any]) -> None:
    first = child.call("model.catalog", limit=2)["result"]
    assert code(child.call(method, **params)) == "invalid_params"
    assert "result" in child.call("model.catalog", **after(first))  # a refusal invalidates nothing


@pytest.mark.parametrize("provider", ["nobody", "scripted", "Bench"])
def test_a_provider_that_is_not_configured_invalidates_nothing(child: Child, provider: str) -> None:
    """EXT-REFRESH-04, EXT-OP-35."""
    first = child.call("model.catalog", limit=2)["result"]
    assert code(child.call("model.refresh", provider=provider)) == "invalid_params"
    assert "result" in child.call("model.catalog", **after(first))


def test_stale_for_good_and_then_anew(home: Home, child: Child) -> None:
    first = child.call("model.catalog", limit=2)["result"]
    before = home.file().read_bytes()
    home.put("bench", [*MODELS, "new"])
    assert code(child.call("model.catalog", **after(first))) == "stale_catalog"
    home.file().write_bytes(before)
    assert code(child.call("model.catalog", **after(first))) == "stale_catalog"
    assert code(child.call("model.catalog.status", **after(first))) == "stale_catalog"
    assert child.call("model.catalog")["result"]["revision"] != first["revision"]


def test_unsafe_and_oversized_caches_leave_the_child_usable(home: Home, child: Child) -> None:
    home.file("spare").symlink_to("nowhere")
    assert code(child.call("model.catalog")) == "catalog_unavailable"
    home.file("spare").unlink()
    home.put_bytes(b" " * (1024 * 1024 + 1), "spare")
    answer = child.call("model.catalog.status")
    assert answer["error"] == {"code": "catalog_limit"}
    home.file("spare").unlink()
    os.mkfifo(home.file("spare"))
    assert code(child.call("model.catalog")) == "catalog_unavailable"
    home.file("spare").unlink()
    assert child.call("model.catalog")["result"]["complete"]


def test_a_refresh(home: Home) -> None:
    """EXT-REFRESH-41 to -45, and what it shows only after a reload."""
    with serving(answering(models("new", "other"))) as server:
        home.settings(server.url)
        with home.child() as child:
            first = child.call("model.catalog", limit=2)["result"]
            told = child.call("model.refresh", provider="bench")["result"]
            assert (told["outcome"], told["reason"], told["catalog_error"]) == ("refreshed", None, None)
            assert told["catalog_revision"] != first["revision"]
            assert code(child.call("model.catalog", **after(first))) == "stale_catalog"
            assert [each["model"] for each in child.call("model.catalog")["result"]["choices"]] == ["new"]
            assert str(server.port).encode() not in child.raw  # EXT-REFRESH-22


def test_the_key_never_shows(home: Home) -> None:
    def echo(connection: Connection) -> None:
        answering(connection.request, 401)(connection)

    with serving(echo) as server:
        home.settings(server.url, api_key_env_var="BENCH_KEY")
        with home.child(environ={"BENCH_KEY": "very-private"}) as child:
            told = child.call("model.refresh", provider="bench")["result"]
            assert told["reason"] == "authentication_rejected"
            assert b"very-private" not in child.raw
            assert child.stderr() == b""
        assert server.connections[0].header("authorization") == "Bearer very-private"
    assert not [path for path, (_, data) in home.tree().items() if b"very-private" in data]


def _silence(connection: Connection) -> None:
    connection.gone()


def test_a_refresh_is_busy_answers_status_and_is_cancelled_at_once(home: Home) -> None:
    """EXT-REFRESH-08, -09, -12, -13, -23, -43."""
    with serving(_silence) as server:
        home.settings(server.url)
        before = home.tree()
        with home.child() as child:
            first = child.call("model.catalog", limit=2)["result"]
            refresh = child.ask("model.refresh", provider="bench")
            assert server.asked.wait(20)
            assert child.call("status")["result"]["state"] == "idle"
            for method, params in (
                ("model.catalog", {}),
                ("model.catalog.status", {}),
                ("model.refresh", {"provider": "bench"}),
                ("session.create", {}),
            ):
                assert code(child.call(method, **params)) == "busy"
            cancel = child.ask("operation.cancel", request_id=refresh)
            frames = [child.frame(), child.frame()]
            answers = {frame["id"]: frame for frame in frames}
            assert answers[cancel]["result"]["state"] == "cancelling"
            assert code(answers[refresh]) == "operation_cancelled"
            assert code(child.call("model.catalog", **after(first))) == "stale_catalog"
            assert child.call("model.catalog")["result"]["complete"]
            assert len(server.connections) == 1
        assert home.tree() == before


@pytest.mark.parametrize("how", ["shutdown", "end of input"])
def test_a_refresh_ends_with_the_child(home: Home, how: str) -> None:
    """EXT-REFRESH-13, -67: soon, with status 0, and without a trace in the store."""
    with serving(_silence) as server:
        home.settings(server.url)
        before = home.tree()
        with home.child() as child:
            refresh = child.ask("model.refresh", provider="bench")
            assert server.asked.wait(20)
            if how == "shutdown":
                child.ask("shutdown", id_="end")
                answers = {frame["id"]: frame for frame in (child.frame(), child.frame())}
                assert code(answers[refresh]) == "operation_cancelled"
            else:
                child.close_input()
            assert child.wait() == 0
            assert child.stderr() == b""
        assert home.tree() == before


def test_two_children_refresh_the_same_provider(home: Home) -> None:
    with serving(answering(models(*MODELS)), answering(models("new"))) as server:
        home.settings(server.url)
        with home.child() as one, home.child() as other:
            ids = [each.ask("model.refresh", provider="bench") for each in (one, other)]
            outcomes = [each.answer(id_)["result"] for each, id_ in zip((one, other), ids, strict=True)]
            assert [told["outcome"] for told in outcomes] == ["refreshed", "refreshed"]
            shown = [[c["model"] for c in each.call("model.catalog")["result"]["choices"]] for each in (one, other)]
            assert shown[0] == shown[1]
            assert shown[0] in (["new"], MODELS)


def test_two_requests_in_one_write(child: Child) -> None:
    """Overlap is refused, never queued (EXT-REFRESH-09)."""
    child.send(line("a", "model.catalog", limit=1) + line("b", "model.catalog.status"))
    answers = {frame["id"]: frame for frame in (child.frame(), child.frame())}
    assert "result" in answers["a"]
    assert "result" in answers["b"] or code(answers["b"]) == "busy"


class Spoken(Child):
    """Every frame goes before the observer, in the order in which it was sent or read."""

    def __init__(self, home: Path, **more: Any) -> None:
        super().__init__(home, **more)
        self.observer = Observer()

    def send(self, data: bytes) -> None:
        self.observer.client(json.loads(data))
        super().send(data)

    def frame(self, patience: float = PATIENCE) -> dict[str, Any]:
        frame = super().frame(patience)
        self.observer.backend(frame)
        return frame


def test_the_observer_explains_it_all(home: Home) -> None:
    """Every frame of a conversation with all three methods, by the rows of the machines."""
    with serving(answering(models("new", *MODELS)), answering(b"", 500), _silence) as server:
        home.settings(server.url)
        with Spoken(home.path, cwd=home.path.parent) as child:
            child.initialize(*ALL)
            first = child.call("model.catalog", limit=2)["result"]
            child.call("model.catalog", **after(first))
            child.call("model.refresh", provider="bench")
            child.call("model.catalog", **after(first))
            second = child.call("model.catalog.status", limit=1)["result"]
            assert child.call("model.refresh", provider="bench")["result"]["reason"] == "remote_unavailable"
            assert code(child.call("model.catalog.status", **after(second))) == "stale_catalog"
            server.asked.clear()
            refresh = child.ask("model.refresh", provider="bench")
            assert server.asked.wait(20)
            cancel = child.ask("operation.cancel", request_id=refresh)
            assert {child.frame()["id"], child.frame()["id"]} == {cancel, refresh}
            third = child.call("model.catalog", limit=1)["result"]
            home.file().unlink()
            assert code(child.call("model.catalog", **after(third))) == "stale_catalog"
            home.file().symlink_to("nowhere")
            told = child.call("model.catalog.status")
            assert code(told) == "catalog_unavailable"
            child.call("shutdown")
            assert child.observer.findings == []
