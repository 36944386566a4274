"""Listing, discovery and cancellation over the pipes of a real child: session.list, session.discover, operation.cancel.

Where a request is to be overtaken, both lines are written at once and the request has 64 MiB to read: the child has
taken the second line long before it is done.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench.sessions import fill
from tests.kit.child import Child, line
from tests.sessions.kit import House
from tests.sessions.scanning import put, sized

MIB = 1 << 20
BOTH = ("session.discover", "operation.cancel")


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
def child(house: House) -> Iterator[Child]:
    with served(house) as one:
        one.initialize(*BOTH)
        yield one


def served(house: House, **more: Any) -> Child:
    return Child(Path(house.root.path), cwd=Path(house.cwd), **more)


def heavy(house: House) -> None:
    """Eight histories of 8 MiB: as much as a listing may read."""
    for number in range(8):
        name = f"s{number}"
        house.put_bytes(name, sized(house, name, 16 * 1024) * 512)


def code(answer: dict[str, Any]) -> str:
    found: str = answer["error"]["code"]
    return found


def after(page: dict[str, Any]) -> dict[str, Any]:
    return {"revision": page["revision"], "cursor": page["next_cursor"]}


def all_entries(child: Child, method: str, limit: int) -> list[dict[str, Any]]:
    page = child.call(method, limit=limit)["result"]
    entries: list[dict[str, Any]] = page["sessions"]
    while not page["complete"]:
        page = child.call(method, limit=limit, **after(page))["result"]
        entries += page["sessions"]
    assert page["next_cursor"] is None
    return entries


# shapes


def test_the_descriptor_of_discovery(house: House) -> None:
    """EXT-DISC-23, EXT-DISC-24: exactly nine keys, and only when negotiated."""
    with served(house) as child:
        assert child.initialize("session.discover")["extensions"] == {
            "session.discover": {
                "consistency": "provisional_until_complete",
                "ordering": "directory",
                "page_bytes": 32768,
                "page_entries": 100,
                "record_bytes": 8388608,
                "step_bytes": 8388608,
                "step_directory_entries": 256,
                "step_lines": 10000,
                "step_ms": 2000,
            }
        }
    with served(house) as child:
        assert "extensions" not in child.initialize("operation.cancel", "session.list")


def test_what_was_not_negotiated_is_unsupported(house: House) -> None:
    """EXT-GEN-03, EXT-GEN-04: one does not bring the other, and advertising is not enabling. Listing needs nothing."""
    with served(house) as child:
        assert code(child.call("operation.cancel", request_id="r1")) == "unsupported_capability"
        capabilities = child.initialize("session.discover")["capabilities"]
        assert {"session.list", *BOTH} <= set(capabilities)
        assert code(child.call("operation.cancel", request_id="r1")) == "unsupported_capability"
        assert "result" in child.call("session.discover")
    with served(house) as child:
        child.initialize("operation.cancel")
        assert code(child.call("session.discover")) == "unsupported_capability"
        assert "result" in child.call("session.list")


def test_a_listing_page_and_a_discovery_page(house: House, child: Child) -> None:
    put(house, "a", "b")
    entry: dict[str, Any] = {
        "eligibility": "available",
        "notices": [],
        "session_id": "a",
        "title": None,
        "updated_at": "2026-03-02T08:00:01Z",
    }
    page = child.call("session.list", limit=1)["result"]
    assert page == {
        "complete": False,
        "next_cursor": page["next_cursor"],
        "notices": [],
        "revision": page["revision"],
        "sessions": [entry],
    }
    assert len(page["next_cursor"]) <= 64
    step = child.call("session.discover")["result"]
    assert step == {
        "complete": True,
        "consistency": "provisional_until_complete",
        "next_cursor": None,
        "notices": [],
        "progress": "complete",
        "recovery": "none",
        "revision": step["revision"],
        "sessions": step["sessions"],
    }
    assert sorted(each["session_id"] for each in step["sessions"]) == ["a", "b"]


@pytest.mark.parametrize("method", ["session.list", "session.discover"])
@pytest.mark.parametrize(
    "params",
    [
        {"limit": 0},
        {"limit": 101},
        {"limit": 1.0},
        {"limit": None},
        {"revision": "a"},
        {"cursor": "a"},
        {"revision": "", "cursor": ""},
        {"revision": "a/b", "cursor": "a"},
        {"more": 1},
    ],
)
def test_params_are_refused_and_cost_nothing(house: House, child: Child, method: str, params: dict[str, Any]) -> None:
    put(house, *"abc")
    page = child.call(method, limit=1)["result"]
    assert code(child.call(method, **params)) == "invalid_params"
    assert len(child.call(method, **after(page))["result"]["sessions"]) == 2


def test_both_show_the_same_sessions(house: House, child: Child) -> None:
    put(house, *(f"s{number:03d}" for number in range(230)))
    listed = all_entries(child, "session.list", 100)
    assert [entry["session_id"] for entry in listed] == [f"s{number:03d}" for number in range(230)]
    assert sorted(all_entries(child, "session.discover", 100), key=lambda entry: str(entry["session_id"])) == listed


# staleness by the child's own doing


@pytest.mark.parametrize("method", ["session.list", "session.discover"])
def test_an_attachment_makes_it_stale_and_a_refused_one_does_not(house: House, child: Child, method: str) -> None:
    put(house, *"abc")
    page = child.call(method, limit=1)["result"]
    assert code(child.call("session.open", session_id="none")) == "session_missing"
    page = child.call(method, limit=1, **after(page))["result"]
    child.call("session.open", session_id="a")
    assert code(child.call(method, **after(page))) == "stale_revision"
    page = child.call(method, limit=1)["result"]
    child.call("session.open", session_id="a")  # the same session, another attachment
    assert code(child.call(method, **after(page))) == "stale_revision"


def test_the_session_let_go_is_not_busy_any_more(house: House, child: Child) -> None:
    """Leases are let go off the loop; a scan that comes right behind waits for that."""
    put(house, "a", "b")
    for method in ("session.list", "session.discover") * 10:
        for session in ("a", "b"):
            child.send(line(f"o{child.read_to}", "session.open", session_id=session))
            child.frame()
            assert {entry["eligibility"] for entry in all_entries(child, method, 100)} == {"available"}


def test_a_turn_keeps_listings_away_and_makes_them_stale(house: House, child: Child) -> None:
    session = child.create()
    put(house, "a", "b")
    page = child.call("session.list", limit=1)["result"]
    child.ask("turn.start", session_id=session, prompt="STALL")
    run = child.frames_until("input.persisted")[0]["result"]["run_id"]
    assert code(child.call("session.list")) == "busy"
    assert code(child.call("session.discover", **after(page))) == "busy"
    child.ask("turn.cancel", session_id=session, run_id=run)
    child.frames_until("run.finished")
    assert code(child.call("session.list", **after(page))) == "stale_revision"
    shown = {entry["session_id"]: entry["eligibility"] for entry in all_entries(child, "session.list", 2)}
    assert shown == {"a": "available", "b": "available", session: "available"}


def test_another_childs_session_is_busy_until_it_ends(house: House, child: Child) -> None:
    with served(house) as other:
        other.initialize()
        session = other.create()
        other.turn(session, "hello")
        for method in ("session.list", "session.discover"):
            assert [entry["eligibility"] for entry in all_entries(child, method, 100)] == ["busy"]
        assert code(child.call("session.open", session_id=session)) == "session_busy"
        other.call("shutdown")
        assert other.wait() == 0
    for method in ("session.list", "session.discover"):
        assert [entry["eligibility"] for entry in all_entries(child, method, 100)] == ["available"]


def test_looking_leaves_no_trace(house: House) -> None:
    put(house, *"abc")
    with served(house) as child:
        child.initialize(*BOTH)

        def state() -> list[tuple[str, int, int, int]]:
            found = [(path, path.lstat()) for path in sorted(Path(house.root.path).rglob("*"))]
            return [(str(path), status.st_ino, status.st_mtime_ns, status.st_ctime_ns) for path, status in found]

        before = state()
        for method in ("session.list", "session.discover"):
            all_entries(child, method, 1)
        assert state() == before


# cancellation


@pytest.mark.parametrize("method", ["session.list", "session.discover"])
def test_cancelling_takes_effect_while_it_reads(house: House, child: Child, method: str) -> None:
    """EXT-CANCEL-08, -15: acknowledged, then the request's own answer; status comes in between."""
    heavy(house)
    child.send(
        line("scan", method)
        + line("state", "status")
        + line("other", "session.list")
        + line("wrong", "operation.cancel", request_id="state")
        + line("stop", "operation.cancel", request_id="scan")
        + line("again", "operation.cancel", request_id="scan")
    )
    frames = [child.frame() for _ in range(6)]
    answers = {frame["id"]: frame for frame in frames}
    assert [frame["id"] for frame in frames[:3]] == ["state", "other", "wrong"]
    assert code(answers["other"]) == "busy"
    assert code(answers["wrong"]) == "operation_missing"
    assert answers["stop"]["result"] == {"request_id": "scan", "state": "cancelling"}
    assert code(answers["scan"]) == "operation_cancelled"
    if frames[-1]["id"] == "scan":
        assert answers["again"]["result"] == answers["stop"]["result"]
    assert code(child.call("operation.cancel", request_id="scan")) == "operation_missing"
    assert "result" in child.call(method)


def test_one_history_is_left_between_two_reads(house: House, child: Child) -> None:
    house.put_bytes("s", sized(house, "s", 256) * 8000 + sized(house, "s", 6 * MIB - 1))
    for method in ("session.list", "session.discover"):
        child.send(line(f"x{method}", method) + line(f"stop{method}", "operation.cancel", request_id=f"x{method}"))
        answers = {frame["id"]: frame for frame in (child.frame(), child.frame())}
        assert code(answers[f"x{method}"]) == "operation_cancelled"


def test_a_cancelled_continuation_keeps_the_listing_and_costs_the_scan(house: House, child: Child) -> None:
    """EXT-OP-25, BASE-OP-127, EXT-DISC-48; a cancelled fresh listing drops it."""
    heavy(house)
    page = child.call("session.list", limit=1)["result"]
    step = child.call("session.discover", limit=1)["result"]

    def cancelled(id_: str, method: str, **params: Any) -> None:
        child.send(line(id_, method, **params) + line(f"stop-{id_}", "operation.cancel", request_id=id_))
        answers = {frame["id"]: frame for frame in (child.frame(), child.frame())}
        assert code(answers[id_]) == "operation_cancelled"

    cancelled("c1", "session.list", **after(page))
    assert len(child.call("session.list", **after(page))["result"]["sessions"]) == 7
    cancelled("c2", "session.discover", **after(step))
    assert code(child.call("session.discover", **after(step))) == "stale_revision"
    cancelled("c3", "session.list")
    assert code(child.call("session.list", **after(page))) == "stale_revision"


def test_what_is_not_active_cannot_be_cancelled(house: House, child: Child) -> None:
    """EXT-CANCEL-10 to -12, EXT-OP-24: neither what is over, nor a turn, nor an unknown id."""
    session = child.create()
    turn = child.ask("turn.start", session_id=session, prompt="STALL")
    run = child.answer(turn)["result"]["run_id"]
    for id_ in (turn, "unknown", "r1"):
        assert code(child.call("operation.cancel", request_id=id_)) == "operation_missing"
    assert child.call("status")["result"]["run_id"] == run
    for params in ({}, {"request_id": None}, {"request_id": "a b"}, {"request_id": "a", "more": 1}):
        assert code(child.call("operation.cancel", **params)) == "invalid_params"


@pytest.mark.parametrize("method", ["session.list", "session.discover"])
def test_shutdown_ends_a_scan(house: House, child: Child, method: str) -> None:
    """LIST-97, EXT-GEN-28: both are answered, and the child ends soundly."""
    heavy(house)
    child.send(line("scan", method) + line("end", "shutdown"))
    answers = {frame["id"]: frame for frame in (child.frame(), child.frame())}
    assert answers["end"]["result"] == {"state": "stopping"}
    assert code(answers["scan"]) == "operation_cancelled"
    assert (child.rest(), child.wait(), child.stderr()) == (b"", 0, b"")


def test_a_child_ends_with_a_scan_half_done(house: House, child: Child) -> None:
    put(house, *"abc")
    child.call("session.discover", limit=1)
    child.close_input()
    assert (child.rest(), child.wait(), child.stderr()) == (b"", 0, b"")


# resources


@pytest.mark.parametrize("method", ["session.list", "session.discover"])
def test_the_first_request_may_come_while_the_child_still_warms_up(house: House, method: str) -> None:
    """Two threads load the store then; neither may see a module of the other half made."""
    put(house, "a")
    for _ in range(6):
        with served(house) as child:
            child.initialize(*BOTH)
            assert len(child.call(method)["result"]["sessions"]) == 1


def test_few_descriptors_are_enough_for_ever(house: House) -> None:
    put(house, *"abc")
    program = ("sh", "-c", 'ulimit -n 64 && exec "$@"', "sh", sys.executable, "-m", "localagent")
    with served(house, program=program) as child:
        child.initialize(*BOTH)
        for number in range(300):
            assert "result" in child.call("session.open", session_id="abc"[number % 3])
            assert "result" in child.call("session.list", limit=1)
            assert "result" in child.call("session.discover", limit=1)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="reads memory from /proc")
def test_a_large_listing_needs_little_memory(house: House, child: Child) -> None:
    fill(Path(house.root.path), Path(house.cwd), 256, 200 * 1024, (1000, 4000))
    assert len(child.call("session.list")["result"]["sessions"]) == 100
    status = Path(f"/proc/{child.process.pid}/status").read_text()
    assert int(status.split("VmHWM:")[1].split()[0]) < 60 * 1024
