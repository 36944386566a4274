"""Names of emits become frames and commands: every one of them, of the right struct, with the right data."""

import itertools
from collections.abc import Mapping
from typing import Any, get_args

import msgspec
import pytest

from localagent.core import connection as connection_module
from localagent.core import worker
from localagent.core.commands import Command
from localagent.core.fill import _BROKEN_WORKER, FILL, Answer, Moment
from localagent.protocol.codes import STARTUP_FAILURES, Code
from localagent.protocol.messages import EVENTS, METHODS, RESULTS
from statemachines.rows import KINDS, Emit, Kind
from statemachines.step import Move
from tests.kit.core_driver import BASE, SELECTION, SERVED, STARTED, TOOL, Driver, attached

from . import test_stories_asks, test_stories_ends, test_stories_runs, test_stories_sessions
from .asking import ALL, PLACES, at, catalog, good, selected
from .stories import play

STORIES: Mapping[str, str] = {
    **test_stories_asks.STORIES,
    **test_stories_ends.STORIES,
    **test_stories_runs.STORIES,
    **test_stories_sessions.STORIES,
}


def test_every_emit_has_a_filler() -> None:
    assert set(FILL) == set(Emit)


def test_every_emit_is_filled_in_some_story_and_is_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {Kind.RESPONSE: (Answer,), Kind.EVENT: tuple(EVENTS.values()), Kind.COMMAND: get_args(Command)}
    filled = set()

    class Watched(dict[Emit, Any]):
        def __getitem__(self, emit: Emit) -> Any:
            def fill(moment: Moment, move: Move) -> Any:
                value = FILL[emit](moment, move)
                assert isinstance(value, kinds[KINDS[emit]]), emit
                filled.add(emit)
                return value

            return fill

    monkeypatch.setattr(connection_module, "FILL", Watched())
    for story in STORIES.values():
        play(story)
    assert filled == set(Emit)


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_every_frame_validates_and_is_written_in_full(story: str) -> None:
    """The structs of the wire accept it, and writing it anew changes nothing: no key more, no key less."""
    d = play(story)
    for frame in d.frames:
        if "error" in frame:
            assert frame["error"] == {"code": Code(frame["error"]["code"])}
            continue
        event = frame["type"] == "event"
        kind = EVENTS[frame["event"]] if event else RESULTS[d.checker.asked[frame["id"]].method]
        data = frame["data" if event else "result"]
        assert data == msgspec.json.decode(msgspec.json.encode(msgspec.convert(data, kind, strict=True)))


# status


def status(d: Driver) -> dict[str, Any]:
    [(_, result)] = d.ask("status").answers
    assert isinstance(result, dict)
    assert set(result) == {
        *("context_id", "model", "provider", "readiness", "run_id", "selection", "session_id", "state"),
    }
    return result


@pytest.mark.parametrize(
    "place", [place for place, column in PLACES.items() if column not in ("uninitialized", "stopping")]
)
def test_status_everywhere(place: str) -> None:
    """STATUS-03 to STATUS-19: from memory, the same shape in every state."""
    d = at(place)
    column, told = PLACES[place], status(d)
    expected = {"starting": ("starting", "initializing"), "failed": ("failed", "mcp_unavailable")}
    expected |= {"run": ("running", "ready")}
    assert (told["state"], told["readiness"]) == expected.get(column, ("idle", "ready"))
    named = column not in ("starting", "failed")
    assert (told["provider"], told["model"], told["context_id"]) == (("p1", "m1", "c" * 64) if named else (None,) * 3)
    assert (told["selection"] is not None) == named
    assert told["run_id"] == (d.checker.run.id if column == "run" and d.checker.run else None)
    assert told["session_id"] == d.checker.attached


def test_a_failed_startup_tells_what_it_knew() -> None:
    """STATUS-19, BASE-OP-85: names that were determined before; no selection."""
    for code in sorted(STARTUP_FAILURES):
        d = Driver()
        d.ask("initialize", good("initialize", d))
        assert d.done(worker.StartFailed(code, "p1", None, "c" * 64)).answers == [("auto1", code)]
        told = status(d)
        assert (told["readiness"], told["provider"], told["model"], told["context_id"]) == (code, "p1", None, "c" * 64)
        assert told["selection"] is None


def test_selection_follows_what_last_succeeded() -> None:
    """STATUS-16, SEL-21 to SEL-26: startup, attachment, selection, a read that saw a change, a run."""
    d = Driver().ready()
    told = [status(d)["selection"]["revision"]]

    def renewed(revision: str) -> Any:
        return msgspec.structs.replace(SELECTION, revision=revision)

    d.ask("session.create")
    told.append(status(d)["selection"]["revision"])
    d.done(attached())
    told.append(status(d)["selection"]["revision"])
    d.ask("session.open", {"session_id": "s2"})
    d.done(worker.SessionAttached(attached().result, "s2", False, "h1", None))
    told.append(status(d)["selection"]["revision"])
    d.ask("model.catalog")
    d.done(worker.Read(attached().result, None, renewed("sel7")))
    told.append(status(d)["selection"]["revision"])
    d.ask("session.list")
    d.done(worker.Selected(attached().result, renewed("foreign"), None))
    told.append(status(d)["selection"]["revision"])
    d.executing().done(worker.TurnEnded("failed", Code.STALE_SELECTION, None, renewed("sel8")))
    told.append(status(d)["selection"]["revision"])
    d.gone()
    told.append(status(d)["selection"]["revision"])
    assert told == ["sel1", "sel1", "sel-h1", "sel-h1", "sel7", "sel7", "sel7", "sel8"]


def test_provider_and_model_are_those_of_the_selection() -> None:
    """STATUS-07, STATUS-17: the effective names, null where they may not be shown."""
    d = Driver().ready().attach()
    d.ask("model.catalog")
    d.done(catalog())
    d.ask("selection.set", good("selection.set", d))
    assert (status(d)["provider"], status(d)["model"]) == ("p1", "m1")
    other = msgspec.structs.replace(SELECTION, provider="p2", model=None)
    d.done(worker.Selected(selected().result, other, "h5"))
    assert (status(d)["provider"], status(d)["model"]) == ("p2", None)


# the initialization result


def initialized(*capabilities: str, served: frozenset[str] = SERVED) -> dict[str, Any]:
    d = Driver(served)
    tools = {"client_tools": [TOOL]} if "client.tools" in capabilities else {}
    d.ask("initialize", {"required_capabilities": list(capabilities), **tools})
    [(_, result)] = d.done(STARTED).answers
    assert isinstance(result, dict)
    return result


WITH_DESCRIPTOR = ("session.discover", "model.refresh", "tool.cards", "client.tools")


@pytest.mark.parametrize("count", range(len(WITH_DESCRIPTOR) + 1))
def test_extensions_are_described_exactly_when_negotiated(count: int) -> None:
    """EXT-OP-02, CT-22, TC-20, NEG-22: every subset."""
    for required in itertools.combinations(WITH_DESCRIPTOR, count):
        result = initialized(*required, "operation.cancel")
        assert tuple(result.get("extensions", {})) == tuple(sorted(required))
        assert result["capabilities"] == [*BASE, *(name for name in ("tool.cards", "client.tools") if name in required)]
        assert ("client_tools" in result) == ("client.tools" in required)
        assert set(result) - {"extensions", "client_tools"} == {"capabilities", "limits", "status"}
        assert len(result["limits"]) == 30
        assert (result["status"]["state"], result["status"]["readiness"]) == ("idle", "ready")


def test_client_tools_are_named_in_order() -> None:
    d = Driver()
    tools = [{**TOOL, "name": f"client__{name}"} for name in ("b", "a")]
    d.ask("initialize", {"required_capabilities": ["client.tools"], "client_tools": tools})
    [(_, result)] = d.done(STARTED).answers
    assert isinstance(result, dict)
    names = ["client__b", "client__a"]
    assert (result["client_tools"]["tools"], result["extensions"]["client.tools"]["tools"]) == (names, names)


def test_only_what_is_served_is_advertised() -> None:
    served = frozenset({"initialize", "status", "shutdown", "session.discover", "tool.cards"})
    result = initialized("session.discover", "tool.cards", served=served)
    assert result["capabilities"] == ["initialize", "status", "shutdown", "session.discover", "tool.cards"]
    assert set(result["extensions"]) == {"session.discover", "tool.cards"}


def test_the_result_status_is_that_of_status() -> None:
    """BASE-OP-80."""
    d = Driver().ready(*ALL)
    assert d.frames[-1]["result"]["status"] == status(d)


def test_a_broken_worker_has_a_code_for_every_method_it_works_for() -> None:
    at_once = {"initialize", "status", "shutdown", "turn.start", "turn.cancel", "approval.answer", "operation.cancel"}
    assert set(_BROKEN_WORKER) == set(METHODS) - at_once - {"client.tool.result"}
