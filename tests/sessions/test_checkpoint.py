"""What the removed records come to (REC-46, REC-47): the payload of a checkpoint, from literal records."""

from typing import Any

import pytest

from localagent.sessions.checkpoint import Tally
from localagent.sessions.errors import BadRecord
from localagent.sessions.records import Record, parse
from tests.sessions.kit import DATA, SECOND, line
from tests.sessions.test_room import EFFECTS, IMPURE, ROOM, imported

SCOPE: dict[str, Any] = {
    "version": 1,
    "original_task": {"intent": "Look", "mode": "inspect", "agent": None, "context": None, "cwd": None},
    "ceiling": {
        "cwd": None,
        "inspection": True,
        "enabled_builtins": ["read"],
        "disabled_tools": [],
        **{
            f"{tool}_absolute_paths": False
            for tool in (
                *("read", "view_image", "hashline", "write", "grep", "find", "list_files"),
                *("ast_grep", "bash", "subagents"),
            )
        },
        "bash_shell_expansion": False,
        "remaining_depth": 0,
    },
    "clarifications": [],
}
USAGE = {"input": 100, "output": 20, "cache_read": 5, "cache_write": 1, "total": 126, "reasoning_tokens": None}


def user(text: str = "go", **more: Any) -> tuple[str, Any]:
    return "user_input", {"origin": "user", "text": text, **more}


def output(usage: Any) -> tuple[str, Any]:
    return "assistant_output", {"text": "done", "usage": usage}


def call(name: str, call_id: str = "c1", **more: Any) -> tuple[str, Any]:
    kind = "code_mode_tool_call" if more else "tool_call"
    return kind, {"id": call_id, "name": name, "arguments": {}, **more}


def result(name: str, call_id: str = "c1", nested: bool = False, **more: Any) -> tuple[str, Any]:
    parent = {"parent_call_id": "k", "sequence": 1} if nested else {}
    done = {"tool_name": name, "success": True, "content": "", "metadata": {}}
    kind = "code_mode_tool_result" if nested else "tool_result"
    return kind, {"call_id": call_id, "result": done, **parent, **more}


def effects(*paths: str, count: int | None = None) -> dict[str, Any]:
    return {"execution_effects": {"changed_path_count": len(paths) if count is None else count, "paths": list(paths)}}


def tally(*kinds: tuple[str, Any]) -> Tally:
    made = Tally()
    for kind, payload in kinds:
        made.add(Record(kind, 1_800_000_000 * SECOND + made.count * SECOND, "/w", payload))
    return made


def payload(*kinds: tuple[str, Any], spent: Any = USAGE) -> dict[str, Any]:
    made = tally(*kinds)
    made.spend(spent)
    return made.payload("gist", "p", "m", "/w")


def example() -> dict[str, Any]:
    """The checkpoint of example C of the contract."""
    first = (DATA / "orchard-90b.jsonl").read_bytes().split(b"\n")[0]
    found: dict[str, Any] = parse(first, "orchard-90b").payload
    return found


def at(kind: str, moment: str, content: Any) -> Record:
    return parse(line("s", kind, content, timestamp=moment), "s")


def test_the_checkpoint_of_example_c() -> None:
    """Records that come to exactly what the contract shows, the tokens of one turn unknown."""
    made = Tally()
    saved = {"model": "tiny-chat", "provider": "bench", "requested_thinking": "xhigh"}
    for kind, content in (
        ("session_preferences", saved),
        ("session_preferences", saved | {"requested_thinking": "high"}),
        ("session_preferences", saved | {"model": " "}),
        user("Plan the pruning"),
        call("bash", "c1"),
        result("bash", "c1", **effects()),
        output({"input": 5000, "output": 800, "cache_read": 0}),
        user("Begin"),
        call("shell", "c2"),
        result("bash", "c2", **effects()),
        call("write", "c3"),
        result("write", "c3", changed_paths=["plan.md"]),
        output({"input": 150, "output": 5, "cache_read": 0}),
        user("Go on"),
        output(None),
        user("And then"),
        output({"input": 40, "output": 3, "cache_read": 0}),
    ):
        made.add(at(kind, "2026-03-02T10:00:00+02:00", content))
    made.add(at("session_title", "2026-03-02T11:29:58Z", {"title": "Pruning plan", "provider": "p", "model": "m"}))
    made.spend({"input": 10, "output": 2, "cache_read": 0})
    summary = "  Rows 1 to 4 are pruned; row 5 waits for frost.\n"
    assert made.payload(summary, "bench", "tiny-chat", "/home/ada/notes") == example()


def test_an_earlier_checkpoint_is_carried_on() -> None:
    """REC-47: its numbers and those of the removed records."""
    earlier = example()
    earlier["session_usage"] |= {"incomplete": False, "unknown_cache": 1}
    earlier["session_active_ms"] = 1234
    alone = payload(("compaction", earlier), spent={"input": 0, "output": 0, "cache_read": 0})
    assert alone == earlier | {"summary": "gist", "provider": "p", "model": "m", "aggregate": alone["aggregate"]}
    assert alone["aggregate"] == earlier["aggregate"] | {"session_path": "/w"}
    more = payload(
        ("compaction", earlier),
        user("Another"),
        call("write"),
        result("write", **effects("b.md", "c.md", count=40)),
        output({"input": 1, "output": 2}),
        ("session_title", {"title": "New plan"}),
        spent={"input": 0, "output": 0, "cache_read": 7},
    )
    assert more["session_usage"] == {
        "input": "5201",
        "output": "812",
        "cache_read": "7",
        "incomplete": False,
        "recorded": True,
        "records": {},
        "unknown_cache": 2,
    }
    assert more["aggregate"] == {
        "first_user_input_text": "Plan the pruning",
        "latest_activity_timestamp": "2027-01-15T08:00:05Z",
        "latest_title": "New plan",
        "session_path": "/w",
        "user_input_count": 5,
    }
    assert more["execution_effects"] == {
        "incomplete": False,
        "mutation_calls": 2,
        "samples": [{"call_id": call_id, "path": path} for call_id, path in
                    (("c3", "plan.md"), ("c1", "b.md"), ("c1", "c.md"))],
        "shell_calls": 2,
    }  # fmt: skip
    assert more["session_active_ms"] == 1234
    assert more["session_preferences"] == earlier["session_preferences"]


def test_a_checkpoint_further_down_brings_no_numbers() -> None:
    """REC-48: the records that it sums up stand before it."""
    found = payload(user("First"), output(USAGE), ("compaction", example()))
    assert found["aggregate"]["user_input_count"] == 1
    assert found["aggregate"]["latest_title"] == "Pruning plan"
    assert found["session_usage"]["input"] == "200"
    assert found["session_usage"]["incomplete"] is False
    assert found["session_preferences"] == example()["session_preferences"]


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"session_usage": None, "execution_effects": None},
        {"session_usage": {"input": 5, "output": "-1", "cache_read": "\u0665"}, "execution_effects": {"samples": 3}},
        {"session_usage": {"input": "9" * 20}, "execution_effects": {"samples": [1, {"call_id": 1, "path": "a"}]}},
        {"aggregate": [], "session_active_ms": True},
        {"aggregate": {"user_input_count": -1, "first_user_input_text": 4, "latest_activity_timestamp": "soon"}},
    ],
)
def test_an_earlier_checkpoint_that_does_not_tell(broken: dict[str, Any]) -> None:
    found = payload(("compaction", {"summary": "s", **broken}))
    assert found["session_usage"]["incomplete"] is True
    assert found["execution_effects"] == {"incomplete": True, "mutation_calls": 0, "samples": [], "shell_calls": 0}
    assert found["session_usage"]["input"] == "100"
    assert found["session_active_ms"] == found["aggregate"]["user_input_count"] == 0
    assert found["aggregate"]["first_user_input_text"] is None
    assert found["aggregate"]["latest_activity_timestamp"] is None


@pytest.mark.parametrize(
    "member", [{"records": {"a": 1}}, {"incomplete": True}, {"incomplete": None}, {"unknown_cache": None}]
)
def test_tokens_of_an_earlier_checkpoint_that_are_not_all(member: dict[str, Any]) -> None:
    earlier = example()
    earlier["session_usage"] |= {"incomplete": False} | member
    assert payload(("compaction", earlier))["session_usage"]["incomplete"] is True


@pytest.mark.parametrize(
    ("kinds", "incomplete"),
    [
        ([user(), output(USAGE)], False),
        ([user(), output(USAGE), user(), output(USAGE)], False),
        ([user(), output(USAGE), ("turn_status", {"status": "complete"})], False),
        ([user()], True),
        ([user(), user(), output(USAGE)], True),
        ([user(), ("turn_status", {"status": "cancelled"})], True),
        ([user(), ("turn_status", {"status": "failed"}), user(), output(USAGE)], True),
        ([user(), ("compaction", {"summary": "s"})], True),
        ([user(), output(None)], True),
        ([user(), ("assistant_output", {"text": "t"})], True),
        ([user(), output({})], True),
        ([user(), output({"input": 1, "output": None, "cache_read": 1})], True),
        ([user(), output({"input": True, "output": 1, "cache_read": 1})], True),
        ([user(), output({"input": -1, "output": 1, "cache_read": 1})], True),
        ([("subagent_session", {"session_id": "c"})], True),
        ([("session_usage", {"whatever": 1})], True),
        ([("diagnostic", {"message": "m"}), ("a_newer_kind", None)], False),
    ],
)
def test_tokens_that_nobody_knows(kinds: list[tuple[str, Any]], incomplete: bool) -> None:
    assert payload(*kinds)["session_usage"]["incomplete"] is incomplete
    assert payload(*kinds, spent=None)["session_usage"]["incomplete"] is True


def test_nothing_recorded() -> None:
    none = {"input": 0, "output": 0, "cache_read": 0}
    assert payload(user(), output(none), spent=none)["session_usage"] == {
        "input": "0",
        "output": "0",
        "cache_read": "0",
        "incomplete": False,
        "recorded": False,
        "records": {},
        "unknown_cache": 0,
    }


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([call("read"), result("read")], (0, 0, False)),
        ([call("fffind"), result("find")], (0, 0, False)),
        ([call("code_mode"), result("code_mode")], (0, 0, False)),
        ([call("write"), result("write")], (0, 0, True)),
        ([call("write"), result("write", **effects())], (0, 0, False)),
        ([call("write"), result("write", **effects("a"))], (1, 0, False)),
        ([call("hash_edit"), result("hash_edit", changed_paths=["a", "b"])], (1, 0, False)),
        ([call("hash_edit"), result("hash_edit", changed_paths=["a"], **effects())], (0, 0, False)),
        ([call("bash"), result("bash", **effects())], (0, 1, False)),
        ([call("bash"), result("bash")], (0, 1, True)),
        ([call("shell")], (0, 1, True)),
        ([call("mcp__x"), result("mcp__x")], (0, 0, True)),
        ([call("bash", parent_call_id="k"), result("bash", nested=True)], (0, 1, False)),
        ([call("write", parent_call_id="k"), result("write", nested=True, **effects("a"))], (1, 0, False)),
        ([call("write", parent_call_id="k"), result("write", changed_paths=[])], (0, 0, True)),
        ([("tool_display_result", result("write", **effects("a"))[1])], (0, 0, False)),
    ],
)
def test_effects(kinds: list[tuple[str, Any]], expected: tuple[int, int, bool]) -> None:
    found = payload(*kinds)["execution_effects"]
    assert (found["mutation_calls"], found["shell_calls"], found["incomplete"]) == expected


def test_the_newest_samples_are_kept() -> None:
    kinds = [
        each
        for number in range(30)
        for each in (call("write", f"c{number}"), result("write", f"c{number}", **effects(f"{number}.md")))
    ]
    found = payload(*kinds)["execution_effects"]
    assert (found["mutation_calls"], found["incomplete"]) == (30, False)
    assert found["samples"] == [{"call_id": f"c{n}", "path": f"{n}.md"} for n in range(6, 30)]


def test_prompts_of_nobody_do_not_count() -> None:
    found = payload(
        ("user_input", {"origin": "automatic_compaction", "text": "Go on."}),
        ("user_input", {"origin": "provider_only"}),
        user("My key is sk-" + "a1" * 30 + " " + "x" * 5000),
        ("user_input", {"origin": "steering", "text": "No"}),
    )["aggregate"]
    assert found["user_input_count"] == 2
    assert found["first_user_input_text"] == ("My key is <redacted> " + "x" * 5000)[:4000]


def test_a_first_prompt_of_another_writer_is_cut_too() -> None:
    earlier = {"summary": "s", "aggregate": {"first_user_input_text": "y" * 5000}}
    assert payload(("compaction", earlier))["aggregate"]["first_user_input_text"] == "y" * 4000


def test_a_session_path_that_json_cannot_spell() -> None:
    assert tally().payload("gist", "p", "m", "/w\udc80")["aggregate"]["session_path"] is None


@pytest.mark.parametrize("words", [(" \n", "p", "m"), ("gist", "", "m"), ("gist", "p", "\u3000")])
def test_a_checkpoint_that_no_replay_takes(words: tuple[str, str, str]) -> None:
    with pytest.raises(BadRecord):
        tally().payload(*words, "/w")


def test_a_summary_is_redacted_and_trimmed() -> None:
    found = tally().payload("\u2003token: abc\udc80def\n", "p", "m", "/w")
    assert found["summary"] == "token: <redacted>"


# scopes (REC-12)


def test_a_scope_is_carried_with_its_clarifications() -> None:
    kinds = [
        ("task_scope", SCOPE),
        user("a", task_scope_version=1),
        ("user_input", {"origin": "steering", "text": "b"}),
    ]
    found = payload(*kinds)
    assert (found["task_scope"], found["task_scope_version"]) == (SCOPE | {"clarifications": ["b"]}, 1)
    again = payload(("compaction", found), ("user_input", {"text": "c", "task_clarification": True}))
    assert again["task_scope"]["clarifications"] == ["b", "c"]
    assert "task_scope" not in payload(user("a"), ("compaction", found))  # REC-48


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        ([str(number) for number in range(70)], [str(number) for number in range(6, 70)]),
        (["a" * 40_000, "b" * 40_000, "c"], ["b" * 40_000, "c"]),
        (["a", "b" * 70_000], []),
    ],
)
def test_clarifications_beyond_their_bounds(texts: list[str], kept: list[str]) -> None:
    kinds = [("user_input", {"origin": "steering", "text": text}) for text in texts]
    assert payload(("task_scope", SCOPE), *kinds)["task_scope"]["clarifications"] == kept


def test_it_is_pure() -> None:
    assert not imported(ROOM / "checkpoint.py") & (EFFECTS | IMPURE)
