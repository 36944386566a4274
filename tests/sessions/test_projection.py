"""Records to entries, row by row (HISTP). Each expectation is checked against the reference too."""

import copy
from typing import Any

import pytest

from tests.sessions import reference_projection
from tests.sessions.events import (
    Event,
    call,
    chunk,
    invalid,
    output,
    project,
    result,
    status,
    summary,
    user,
)

ASKED = ("user", "u", False)
INTERRUPTED = ("diagnostic", "Turn interrupted", True)


def test_nothing() -> None:
    assert project() == ([], True)


# turns and their ends (HISTP-06)


def test_an_answered_turn() -> None:
    assert project(user(), chunk("Hel"), chunk("lo"), output("Hello!")) == (
        [ASKED, ("assistant", "Hello!", False)],
        True,
    )


@pytest.mark.parametrize("ending", [[], [user("v"), output("w")], [("compaction", {"summary": "s"})]])
def test_an_interrupted_turn(ending: list[Event]) -> None:
    """HIST-15, HIST-16, BASE-OP-118: the diagnostic is the last entry of its turn."""
    entries, complete = project(user(), chunk("Hel"), *ending)
    assert entries[:3] == [ASKED, ("assistant", "Hel", True), INTERRUPTED]
    assert not complete


def test_a_prompt_alone_is_interrupted_and_bookkeeping_alone_is_not() -> None:
    assert project(user()) == ([ASKED, INTERRUPTED], False)
    assert project(("diagnostic", {"message": "m"}), summary("s")) == (
        [("diagnostic", "m", False), ("reasoning_summary", "s", False)],
        True,
    )


def test_an_answered_turn_with_a_call_left_is_interrupted() -> None:
    assert project(user(), call(), output("a")) == (
        [ASKED, ("activity", "bash: started", True), ("assistant", "a", True), INTERRUPTED],
        False,
    )


def test_a_hidden_prompt_closes_the_turn_and_shows_nothing() -> None:
    """HIST-37; its text is not required."""
    for origin in ("automatic_compaction", "automatic_continuation", "provider_only"):
        assert project(("user_input", {"origin": origin})) == ([], True)
        assert project(user(), chunk("a"), ("user_input", {"origin": origin, "text": 1}), output("b"))[0] == [
            ASKED,
            ("assistant", "a", True),
            INTERRUPTED,
            ("assistant", "b", False),
        ]
    for shown in ("user", "steering", "new", None, 7):
        assert project(user(origin=shown), output("b")) == ([ASKED, ("assistant", "b", False)], True)


def test_a_compaction() -> None:
    assert project(
        ("compaction", {"summary": "so far"}), ("user_input", {"origin": "automatic_compaction"}), output("x")
    ) == (
        [("compaction", "so far", False), ("assistant", "x", False)],
        True,
    )


# one copy of the assistant's text (HIST-30)


def test_output_without_text_keeps_the_chunks() -> None:
    """SESS-54."""
    assert project(user(), chunk("Hel"), chunk("lo"), ("assistant_output", {})) == (
        [ASKED, ("assistant", "Hello", False)],
        True,
    )
    assert project(user(), ("assistant_output", None)) == ([ASKED], True)


def test_output_that_repeats_earlier_segments_is_reduced_to_the_last() -> None:
    first = [user(), chunk("one "), ("diagnostic", {"message": "m"})]
    middle = [("assistant", "one ", False), ("diagnostic", "m", False)]
    for events, last in (
        ([chunk("tw"), output("one two")], "two"),
        ([output("one two")], "two"),
        ([chunk("tw"), output("two")], "two"),
        ([chunk("zz"), output("one two")], "one two"),
        ([chunk("tw"), output("one ")], "one "),  # the rest is empty and does not start with the open text
    ):
        assert project(*first, *events) == ([ASKED, *middle, ("assistant", last, False)], True)
    assert project(*first, output("one ")) == ([ASKED, *middle], True)


def test_prior_text_is_spent_by_an_output() -> None:
    entries, _ = project(
        user(), chunk("a"), call(), result(), output("ab"), call(call_id="d"), result(call_id="d"), output("ac")
    )
    assert [text for kind, text, _ in entries if kind == "assistant"] == ["a", "b", "ac"]


def test_empty_text_is_no_entry() -> None:
    """BASE-OP-116."""
    assert project(user(), chunk(""), chunk("\x1b[1m"), output("")) == ([ASKED], True)
    assert project(user(), chunk("a"), output("")) == ([ASKED, ("assistant", "a", False)], True)


# summaries (HIST-31 to HIST-34)


@pytest.mark.parametrize("provenance", [False, None, 1, "true", ...])
def test_a_summary_without_provenance_is_left_out(provenance: Any) -> None:
    payload: dict[str, Any] = {"text": "secret thoughts", "provider_summary": provenance}
    if provenance is ...:
        del payload["provider_summary"]
    assert project(user(), ("reasoning_summary", payload), ("reasoning_summary", {}), output("a")) == (
        [ASKED, ("assistant", "a", False)],
        True,
    )


def test_an_identified_summary_replaces_the_earlier_one() -> None:
    events = [summary("1", item_id="i"), chunk("a"), summary("2", item_id="i"), summary("3", item_id="i", turn_id="t")]
    assert project(user(), *events, output("b"))[0] == [
        ASKED,
        ("reasoning_summary", "2", False),
        ("assistant", "a", False),
        ("reasoning_summary", "3", False),
        ("assistant", "b", False),
    ]
    assert [text for _, text, _ in project(summary("1"), summary("2"), summary("3", item_id=7))[0]] == ["1", "2", "3"]


def test_an_identity_lasts_for_its_turn() -> None:
    entries, _ = project(user(), summary("1", item_id="i"), output("a"), user(), summary("2", item_id="i"), output("b"))
    assert [text for kind, text, _ in entries if kind == "reasoning_summary"] == ["1", "2"]


# activities (HIST-35, HIST-36, HISTP-08)


def test_a_result_completes_the_started_entry_in_place() -> None:
    assert project(user(), call("bash", {"command": "ls"}), chunk("a"), result(success=False), output("b"))[0] == [
        ASKED,
        ("activity", "bash ls: failed", False),
        ("assistant", "a", False),
        ("assistant", "b", False),
    ]


@pytest.mark.parametrize("kind", ["tool_result", "tool_display_result"])
def test_a_result_without_a_call(kind: str) -> None:
    assert project(user(), result("read", kind=kind), output("a"))[0][1] == ("activity", "read: completed", False)
    no_id = result()[1] | {"call_id": 5}
    assert project(call(call_id=""), (kind, no_id))[0] == [("activity", "bash: completed", False)]


def test_a_second_result_and_a_repeated_call_add_entries() -> None:
    done, started = ("activity", "bash: completed", False), ("activity", "bash: started", True)
    assert project(call(), result(), result())[0] == [done, done]
    assert project(call(), call(), result(), result())[0] == [started, started, done, done]
    assert project(call(), result(), call(), result())[0] == [done, started, done]


def test_nested_calls_have_identities_of_their_own() -> None:
    events = [
        call(),
        call(nested="p"),
        call(nested="q"),
        result(nested="q", success=False),
        result(nested="p"),
        result(),
    ]
    assert [text for _, text, _ in project(*events)[0]] == ["bash: completed", "bash: completed", "bash: failed"]


@pytest.mark.parametrize(
    ("called", "answered"), [("shell", "bash"), ("bash", "shell"), ("ffgrep", "grep"), ("find", "fffind")]
)
def test_names_of_one_built_in_match(called: str, answered: str) -> None:
    assert project(call(called), result(answered))[0] == [("activity", f"{called}: completed", False)]


@pytest.mark.parametrize(("called", "answered"), [("bash", "grep"), ("read", "Read"), ("mcp__a", "mcp__b")])
def test_a_result_of_another_tool_is_invalid(called: str, answered: str) -> None:
    assert invalid(call(called), result(answered))


# statuses


@pytest.mark.parametrize(("word", "text"), sorted(reference_projection.WORDS.items()))
def test_a_recorded_end(word: str, text: str) -> None:
    """HIST-17, HIST-18, BASE-OP-117."""
    events = [user(), chunk("Hel"), call(), status(word, assistant_text="x", error_summary="because")]
    why = [("diagnostic", "because", True)] if word == "failed" else []
    assert project(*events) == (
        [ASKED, ("assistant", "Hel", True), ("activity", "bash: started", True), ("diagnostic", text, True), *why],
        True,
    )


def test_a_status_brings_the_text_that_no_chunk_has() -> None:
    assert project(user(), status("cancelled", assistant_text="Hel"))[0][1] == ("assistant", "Hel", True)
    assert project(user(), status("complete", assistant_text="Hello")) == ([ASKED, ("assistant", "Hello", False)], True)
    assert project(user(), status("failed", assistant_text=None, error_summary=" \n")) == (
        [ASKED, ("diagnostic", "Turn failed", True)],
        True,
    )


def test_complete_after_an_end_that_was_not() -> None:
    assert project(user(), chunk("a"), status("incomplete"), status("complete"))[0][1] == ("assistant", "a", False)


# notes, and everything else


def test_notes() -> None:
    notes: list[Event] = [
        ("diagnostic", {"message": "d"}),
        ("hook_diagnostic", {"message": "h"}),
        ("code_mode_warning", {"warning": "w"}),
        ("diagnostic", {"level": "info"}),
        ("diagnostic", "text"),
        ("hook_diagnostic", None),
        ("code_mode_warning", {}),
    ]
    assert [text for _, text, _ in project(*notes)[0]] == ["d", "h", "w"]


@pytest.mark.parametrize(
    "kind",
    [
        *("provider_response_item", "provider_context_item", "tool_result_assessment", "code_mode_context"),
        *("code_mode_assessment", "hook_lifecycle", "hook_context_injection", "abort_recovery"),
        *("provider_stream_trace", "context_cache", "rewind", "subdir_instruction_load", "ttsr_injection"),
        *("skill_suggestion", "session_usage", "session_active_time", "session_title", "session_preferences"),
        *("tool_applied_preview", "subagent_session", "task_scope", "from_the_future"),
    ],
)
def test_kinds_that_show_nothing(kind: str) -> None:
    """REC-10, REC-11, HIST-38, HIST-39: not even a segment ends."""
    for payload in ({"text": "private", "message": "private"}, None, [1]):
        assert project(user(), chunk("a"), (kind, payload), chunk("b"), output("ab")) == (
            [ASKED, ("assistant", "ab", False)],
            True,
        )


# required members (HISTP-10)

RESULT = result()[1]


def without(payload: dict[str, Any], *path: str) -> dict[str, Any]:
    changed = copy.deepcopy(payload)
    inner = changed
    for name in path[:-1]:
        inner = inner[name]
    del inner[path[-1]]
    return changed


@pytest.mark.parametrize(
    "event",
    [
        *[("user_input", payload) for payload in ({}, {"text": None}, {"text": 1}, None, "text")],
        *[("assistant_chunk", payload) for payload in ({}, {"text": None})],
        *[("assistant_output", payload) for payload in ({"text": None}, {"text": 1})],
        *[("reasoning_summary", {"provider_summary": True, **more}) for more in ({}, {"text": 1})],
        *[
            ("tool_call", payload)
            for payload in ({"id": "c"}, {"name": "x"}, {"id": 1, "name": "x"}, {"id": "c", "name": None})
        ],
        ("code_mode_tool_call", {"id": "c"}),
        *[
            (kind, payload)
            for kind in ("tool_result", "tool_display_result", "code_mode_tool_result")
            for payload in (
                {},
                {"result": None},
                *[without(RESULT, "result", name) for name in ("tool_name", "success", "content", "metadata")],
                RESULT | {"result": RESULT["result"] | {"success": 1}},
                RESULT | {"result": RESULT["result"] | {"content": []}},
            )
        ],
        *[("turn_status", payload) for payload in ({}, {"status": 1}, {"status": "done"}, {"status": "Failed"})],
        *[("compaction", payload) for payload in ({}, {"summary": None})],
        *[(kind, {"message": value}) for kind in ("diagnostic", "hook_diagnostic") for value in (None, 1)],
        ("code_mode_warning", {"warning": None}),
    ],
)
def test_a_required_member_that_is_missing_or_mistyped(event: Event) -> None:
    assert invalid(event)


# cleaning and redaction (HISTP-03, HIST-40, HIST-41)


def test_text_is_cleaned_piece_by_piece_and_redacted_whole() -> None:
    """A secret that chunks cut in two is still one secret."""
    assert project(user("\x1b[31mred\x07"), chunk("key sk-ab"), chunk("cdef\r\n"), output("key sk-abcdef")) == (
        [("user", "red", False), ("assistant", "key <redacted>", False)],
        True,
    )
    assert project(user(), chunk("key sk-ab"), chunk("cdef"))[0][1] == ("assistant", "key <redacted>", True)


def test_a_label_is_redacted_once_and_keeps_its_word() -> None:
    entries, _ = project(
        call("bash", {"command": "export TOKEN=hunter22"}), result(), call("grep", {"pattern": "token"})
    )
    assert [text for _, text, _ in entries[:2]] == ["bash export TOKEN=<redacted>: completed", "grep token: started"]
