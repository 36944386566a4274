"""What takes more than one frame to know: whole texts of runs and histories, notices of all pages."""

from typing import Any, get_args

from localagent.conformance.gather import KINDS, pages, texts
from localagent.protocol.results import HistoryEntry


def entry(kind: str, id_: str, text: str, part: int = 0) -> dict[str, Any]:
    return {"message_id": id_, "kind": kind, "part": part, "text": text}


def test_parts_of_entries_are_put_together_and_blank_entries_left_out() -> None:
    results = [
        {"entries": [entry("user", "a", "Hi"), entry("assistant", "b", "one "), entry("assistant", "c", "\n\n")]},
        {"entries": [entry("assistant", "b", " ", 1), entry("assistant", "b", "two", 2), entry("tool", "d", " "), 5]},
    ]
    assert pages("history.page", results)["said"] == {
        **dict.fromkeys(KINDS, ""),
        "user": "Hi",
        "assistant": "one  two",
        "tool": "",
    }


def test_the_kinds_of_entries_are_those_of_the_protocol() -> None:
    assert get_args(HistoryEntry.__annotations__["kind"]) == KINDS


def test_notices_of_all_pages_are_told_once() -> None:
    results = [{"notices": ["a"]}, {"notices": ["b", "a"]}, {"notices": None}, "no page", {"sessions": []}]
    assert pages("session.list", results)["notices"] == ["a", "b"]


def test_blank_messages_are_no_part_of_what_a_run_said() -> None:
    def told(message: str, text: str) -> dict[str, Any]:
        data = {"run_id": "r", "message_id": message, "part": 0, "last_part": True, "text": text}
        return {"event": "message.reconcile", "data": data}

    assert texts([told("m1", "\n\n"), told("m2", "Done."), told("m3", "")], "r") == {
        "joined": "Done.",
        "count": 1,
        "deltas": 0,
    }
