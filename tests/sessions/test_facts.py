"""What records say beside the history (section 4, REC-12, SET-12)."""

from typing import Any

import pytest

from localagent.protocol.results import Effort
from localagent.sessions import efforts, facts, scope
from localagent.sessions.errors import BadRecord
from localagent.sessions.facts import Facts, Preferences
from localagent.sessions.records import Record

Event = tuple[str, Any]


def gather(*events: Event) -> Facts:
    result = Facts()
    for number, (kind, payload) in enumerate(events):
        result.add(Record(kind, number, "", payload))
    return result


# directories and time


def test_directories_and_the_greatest_time() -> None:
    """REC-62, REC-63: order is not time, and an aggregate's time does not count."""
    result = Facts()
    assert result.newest is None
    for instant, cwd in ((5, "/a"), (9, ""), (7, "/b"), (6, "/a")):
        result.add(
            Record("compaction", instant, cwd, {"aggregate": {"latest_activity_timestamp": "2999-01-01T00:00:00Z"}})
        )
    assert {result.newest} == {9}
    assert result.cwds == {"/a", "/b"}


# titles


def title(text: Any) -> Event:
    return "session_title", {"title": text}


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("Friday tides", "Friday tides"),
        (" \u201cFriday\u201d\n 'tides' \x1b[1m", "Friday tides [1m"),
        ("x" * 47, "x" * 47),
        ("x" * 39 + "-" * 9, "x" * 39 + "-" * 9),
        ("x" * 40 + "-" * 8, None),
        ("x" * 48, None),
        ("a b sk-x", None),
        ("a sk x", "a sk x"),
        ("a=b", None),
        ("w " * 60, ("w " * 25)),
        ("\u65e5" * 20, "\u65e5" * 20),
        ("ab " * 85, "ab " * 16 + "ab"),
        ("ab " * 85 + "c", "ab " * 16 + "ab"),
        ("ab " * 85 + "cd", None),
        ("", None),
        (" '\" ", None),
        (None, None),
        (7, None),
        ("my token: hunter22", "my token: <redacted>"),
    ],
)
def test_a_title(stored: Any, shown: str | None) -> None:
    """REC-60, REC-61, D76."""
    assert gather(title(stored)).title == shown


def test_the_newest_title_that_may_be_shown_wins() -> None:
    old = ("compaction", {"aggregate": {"latest_title": "Old"}, "summary": "s"})
    assert gather(old).title == "Old"
    assert gather(old, title("New")).title == "New"
    assert gather(title("New"), old).title == "Old"
    assert (
        gather(
            title("New"), title("sk-secret"), ("compaction", {"aggregate": None}), ("user_input", {"text": "no"})
        ).title
        == "New"
    )


# selection (REC-64)

GOOD = {"provider": "bench", "model": "tiny", "requested_thinking": "x_high"}


@pytest.mark.parametrize(
    ("word", "effort"),
    [
        *[(word, word) for word in ("default", "low", "medium", "high", "xhigh", "max")],
        ("x_high", "xhigh"),
        *[(word, None) for word in ("XHIGH", "", None, 3, "none")],
    ],
)
def test_efforts_of_files(word: Any, effort: Effort | None) -> None:
    """SET-12."""
    assert efforts.from_file(word) == effort
    if effort is not None:
        assert efforts.for_file(effort) == ("x_high" if effort == "xhigh" else effort)


def test_the_last_valid_selection_wins() -> None:
    saved = Preferences("bench", "tiny", "xhigh")
    assert gather(("session_preferences", GOOD)).preferences == saved
    for bad in (
        {"provider": " "},
        {"model": ""},
        {"model": None},
        {"requested_thinking": "huge"},
        {"requested_thinking": None},
    ):
        assert gather(("session_preferences", GOOD), ("session_preferences", GOOD | bad)).preferences == saved
    checkpoint = ("compaction", {"session_preferences": GOOD | {"model": "big"}})
    assert gather(("session_preferences", GOOD), checkpoint).preferences == Preferences("bench", "big", "xhigh")
    assert gather(checkpoint, ("session_preferences", GOOD)).preferences == saved
    assert gather(checkpoint, ("compaction", {"session_preferences": None})).preferences is not None
    assert gather(("session_preferences", None)).preferences is None


# scope (REC-12)

FLAGS = ["read", "view_image", "hashline", "write", "grep", "find", "list_files", "ast_grep", "bash", "subagents"]
CEILING: dict[str, Any] = {
    "cwd": "/w",
    "inspection": True,
    "enabled_builtins": ["read"],
    "disabled_tools": [],
    "bash_shell_expansion": False,
    "remaining_depth": 2,
    **{f"{flag}_absolute_paths": False for flag in FLAGS},
}
TASK = {"intent": "look", "mode": "inspect", "agent": None, "context": None, "cwd": None}
SCOPE: dict[str, Any] = {"version": 1, "original_task": TASK, "ceiling": CEILING, "clarifications": []}


def scoped(**more: Any) -> Event:
    return "task_scope", SCOPE | more


def test_a_scope_is_kept_with_its_clarifications() -> None:
    result = gather(
        scoped(clarifications=["first"]),
        ("user_input", {"text": "no", "task_scope_version": 1}),
        ("user_input", {"text": "steer", "origin": "steering"}),
        ("user_input", {"text": "clear", "task_clarification": True}),
    )
    assert result.scope is not None
    assert result.scope.ceiling.enabled_builtins == ["read"]
    assert result.scope.clarifications == ["first", "steer", "clear"]


@pytest.mark.parametrize(
    "events",
    [
        [scoped(), scoped()],
        [("user_input", {"text": "u", "task_scope_version": 1})],
        [("task_scope", None)],
        [("task_scope", {})],
        [scoped(version=2)],
        [scoped(version=True)],
        [scoped(extra=1)],
        [scoped(original_task=TASK | {"intent": " "})],
        [scoped(original_task=TASK | {"mode": "free"})],
        [scoped(original_task=TASK | {"extra": 1})],
        [scoped(original_task={name: TASK[name] for name in TASK if name != "cwd"})],
        [scoped(original_task=TASK | {"agent": 1})],
        [scoped(ceiling=CEILING | {"remaining_depth": 5})],
        [scoped(ceiling=CEILING | {"remaining_depth": -1})],
        [scoped(ceiling=CEILING | {"extra": False})],
        [scoped(ceiling=CEILING | {"enabled_builtins": [1]})],
        [scoped(ceiling={name: CEILING[name] for name in CEILING if name != "inspection"})],
        [scoped(clarifications=[1])],
        [("compaction", {"summary": "s", "task_scope": SCOPE, "task_scope_version": 2})],
        [("compaction", {"summary": "s", "task_scope_version": 1})],
        [("compaction", {"summary": "s", "task_scope": SCOPE, "task_scope_version": 1}), scoped()],
    ],
)
def test_a_scope_that_makes_a_session_invalid(events: list[Event]) -> None:
    with pytest.raises(BadRecord):
        gather(*events)


def test_a_checkpoint_carries_the_scope_only_as_the_first_line() -> None:
    """REC-46, REC-48."""
    checkpoint = ("compaction", {"summary": "s", "task_scope": SCOPE, "task_scope_version": 1})
    assert gather(checkpoint).scope == scope.read(SCOPE)
    assert gather(("session_usage", {}), checkpoint).scope is None


@pytest.mark.parametrize(
    ("name", "build", "bound"),
    [
        ("intent", lambda size: SCOPE | {"original_task": TASK | {"intent": "x" * size}}, 32 * 1024),
        ("context", lambda size: SCOPE | {"original_task": TASK | {"context": "x" * size}}, 256 * 1024),
        ("clarifications", lambda size: SCOPE | {"clarifications": ["x"] * size}, 64),
        ("clarification bytes", lambda size: SCOPE | {"clarifications": ["x" * size]}, 64 * 1024),
        ("identity", lambda size: SCOPE | {"original_task": TASK | {"identity": "x" * size}}, None),
    ],
)
def test_the_bounds_of_a_scope(name: str, build: Any, bound: int | None) -> None:
    if bound is None:  # 512 KiB in all, as compact JSON
        from localagent.protocol.measure import compact_bytes

        bound = 512 * 1024 - compact_bytes(build(0))
    for size in (bound - 1, bound):
        scope.read(build(size))
    with pytest.raises(BadRecord):
        scope.read(build(bound + 1))


def test_clean_title_keeps_50_characters() -> None:
    assert [len(facts.clean_title("y" * size)) for size in (49, 50, 51)] == [49, 50, 50]
