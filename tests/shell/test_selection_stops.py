"""``selection.set`` when it is not alone, or is told to stop."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.catalog.homes import Home
from tests.kit.child import line

from .selecting import Held, Picker, code, picker, set_to


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def held(home: Home) -> Held:
    return Held(home)


@pytest.fixture
def child(home: Home, held: Held) -> Iterator[Picker]:
    with picker(home, held.program) as child:
        child.begin()
        yield child


# not alone


def test_while_one_is_working_others_are_busy_and_status_shows_the_one_before(
    child: Picker, held: Held, home: Home
) -> None:
    """SEL-51 to SEL-54, STATUS-16, STATUS-17: nothing is queued, nothing is cancelled."""
    before, params = child.status(), child.asking("bench/chat", set_to("high"))
    held.armed.touch()
    child.ask("selection.set", id_="first", **params)
    with held.waiting():
        for method, other in (
            ("selection.set", params),
            ("model.catalog", {}),
            ("session.create", {}),
            ("turn.start", {"session_id": child.session, "prompt": "hello"}),
        ):
            assert code(child.call(method, **other)) == "busy"
        assert child.status() == before
    result = child.answer("first")["result"]
    assert child.selection() == result["selection"]
    assert [each["model"] for each in home.saved(child.session)] == ["chat"]


def test_while_a_turn_runs_it_is_busy(home: Home) -> None:
    """SEL-51, SEL-52, SEL-72."""
    with picker(home) as child:
        child.begin()
        params = child.asking("bench/chat")
        child.ask("turn.start", session_id=child.session, prompt="APPROVAL")
        frames = child.frames_until("approval.requested")
        before = child.status()
        assert before["state"] == "running"
        assert code(child.call("selection.set", **params)) == "busy"
        assert child.status() == before
        wanted = frames[-1]["data"]
        names = ("session_id", "run_id", "approval_id")
        child.ask("approval.answer", **{name: wanted[name] for name in names}, allow=False)
        child.frames_until("run.finished")
        assert home.saved(child.session) == []
        assert "result" in child.call("selection.set", **params)  # the guards have not moved


def test_of_two_in_one_write_one_is_saved(home: Home) -> None:
    """SEL-52, SEL-57."""
    with picker(home) as child:
        child.begin()
        params = child.asking("bench/chat")
        child.send(line("a", "selection.set", **params) + line("b", "selection.set", **params))
        answers = {frame["id"]: frame for frame in (child.frame(), child.frame())}
        assert "result" in answers["a"]
        assert code(answers["b"]) in ("busy", "stale_selection")
        assert len(home.saved(child.session)) == 1
        assert child.selection() == answers["a"]["result"]["selection"]


def test_two_children_select_for_their_own_sessions(home: Home) -> None:
    """SEL-62, SESS-47: one store, two owners."""
    with picker(home) as one, picker(home) as two:
        one.begin()
        two.begin()
        assert "result" in one.select("bench/chat", set_to("low"))
        assert "result" in two.select("bench/chat", set_to("xhigh"))
        assert code(two.select(session_id=one.session)) == "stale_session"
        assert code(two.call("session.open", session_id=one.session)) == "session_busy"
        assert two.selection()["requested_effort"] == "xhigh"
        one.ask("shutdown")
        assert one.wait() == 0
        assert two.open(one.session)["notices"] == []
        assert two.selection()["requested_effort"] == "low"
    assert len(home.saved(one.session)) == 1


# told to stop


@pytest.mark.parametrize(
    "step",
    [
        "LEASE_CREATE",
        "SESSION_CREATE",
        "SESSION_WRITE",
        "SESSION_SYNC",
        "SESSION_SYNC_DIRECTORY",
        "SESSION_STAMP",
        "LEASE_REMOVE",
    ],
)
def test_cancelled_at_any_step_of_the_append_the_answer_is_what_is_on_the_disk(home: Home, step: str) -> None:
    """SEL-95, SEL-98, EXT-CANCEL-04: one answer, and it is true; once it is under way it is saved all the same."""
    held = Held(home, step)
    with picker(home, held.program) as child:
        child.begin()
        before, params = child.status(), child.asking("bench/chat", set_to("high"))
        held.armed.touch()
        child.ask("selection.set", id_="first", **params)
        with held.waiting():
            assert child.call("operation.cancel", request_id="first")["result"]["state"] == "cancelling"
        answer = child.answer("first")
        if not home.session(child.session).exists():
            assert step.startswith("LEASE")
            assert code(answer) == "operation_cancelled"
            assert child.status() == before
            assert isinstance(child.entries(child.history), list)
        else:
            assert (answer["result"]["durable"], child.selection()) == (True, answer["result"]["selection"])
            assert child.entries(answer["result"]["history_revision"]) == []
            assert len(home.saved(child.session)) == 1


def test_cancelled_before_the_append_nothing_has_happened(home: Home) -> None:
    """SEL-95, EXT-CANCEL-04: held between the first look and the second."""
    held = Held(home)
    slow = held.program.replace("disk.watch = watch", f"{LOOK}disk.watch = watch").format(fifo=str(held.fifo))
    with picker(home, slow) as child:
        child.begin()
        with child.unchanged():
            child.ask("selection.set", id_="first", **child.asking("bench/chat"))
            with held.waiting():
                assert child.call("operation.cancel", request_id="first")["result"]["state"] == "cancelling"
            assert code(child.answer("first")) == "operation_cancelled"
        assert home.saved(child.session) == []


LOOK = """
from localagent.catalog import selector
judge, looks = selector.Selector._judge, []
def slow(*given):
    looks.append(judge(*given))
    if len(looks) == 1:
        open({fifo!r}).read()
    return looks[-1]
selector.Selector._judge = slow
"""


def test_a_cache_that_changes_between_the_two_looks_refuses(home: Home) -> None:
    """SEL-65, SEL-66."""
    held = Held(home)
    slow = held.program.replace("disk.watch = watch", f"{LOOK}disk.watch = watch").format(fifo=str(held.fifo))
    with picker(home, slow) as child:
        child.begin()
        with child.unchanged():
            child.ask("selection.set", id_="first", **child.asking("bench/chat"))
            with held.waiting():  # the first look is over
                home.cache("gated", {})
            assert code(child.answer("first")) == "stale_catalog"
            assert code(child.select("bench/chat")) == "stale_catalog"


def test_shutdown_meanwhile_is_answered_and_what_was_under_way_survives(child: Picker, held: Held, home: Home) -> None:
    """SEL-97, SEL-98, SHUT-07."""
    params = child.asking("bench/chat", set_to("high"))
    held.armed.touch()
    child.ask("selection.set", id_="first", **params)
    with held.waiting():
        assert child.call("shutdown")["result"] == {"state": "stopping"}
    assert child.answer("first")["result"]["durable"] is True
    assert child.wait() == 0
    assert len(home.saved(child.session)) == 1


SLOW = """
from localagent.catalog import caches
one = caches.LocalCaches._one
def slow(*given):
    if os.path.exists({armed!r}):
        os.unlink({armed!r})
        open({fifo!r}).read()
    return one(*given)
caches.LocalCaches._one = slow
"""


@pytest.fixture
def looking(home: Home, held: Held) -> Iterator[Picker]:
    """A child whose worker waits before it looks into the cache of one provider, once ``held`` is armed."""
    slow = SLOW.format(armed=str(held.armed), fifo=str(held.fifo))
    with picker(home, held.program.replace("disk.watch = watch\n", slow)) as child:
        child.begin()
        yield child


def test_a_turn_cancelled_before_it_has_begun_stores_nothing(looking: Picker, held: Held, home: Home) -> None:
    """SEL-25, TURN-24, BASE-OP-157: cancelled while it looks for changed efforts."""
    looking.select("bench/chat")
    held.armed.touch()
    run = looking.call("turn.start", session_id=looking.session, prompt="hello")["result"]["run_id"]
    with held.waiting():
        looking.call("turn.cancel", session_id=looking.session, run_id=run)
    done = looking.frames_until("run.finished")[-1]["data"]
    assert (done["outcome"], done["error_code"], done["persistence"]) == ("cancelled", None, "not_started")
    assert looking.entries(done["revision"]) == []
    assert [each["event_type"] for each in home.records(looking.session)] == ["session_preferences"]


def test_an_open_cancelled_while_it_restores_changes_nothing(looking: Picker, held: Held, home: Home) -> None:
    """SESS-44, EXT-CANCEL-04: the attachment and its selection stay, and the leases of the other are let go."""
    other = looking.session
    looking.select("bench/chat", set_to("high"))
    looking.session = looking.create()
    looking.history = looking.select("bench/embed", {"mode": "default"})["result"]["history_revision"]
    with looking.unchanged():
        held.armed.touch()
        looking.ask("session.open", id_="open", session_id=other)
        with held.waiting():
            assert looking.call("operation.cancel", request_id="open")["result"]["state"] == "cancelling"
        assert code(looking.answer("open")) == "operation_cancelled"
    with picker(home) as later:
        later.initialize()
        assert later.open(other)["notices"] == []
        assert later.selection()["requested_effort"] == "high"
