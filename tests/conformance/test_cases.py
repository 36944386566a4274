"""Cases as files: what is accepted, what is refused and how plainly, and what a case comes to."""

from pathlib import Path
from typing import Any

import pytest

from localagent.conformance import cases, steps, values
from localagent.conformance.lines import barrier_id, ids, sent_by
from localagent.conformance.model import Case

HEAD = '[[case]]\nid = "frame.some"\ntitle = "Some"\ntier = 0\nclauses = ["FRAME-05"]\n'


def case(steps: str, head: str = HEAD) -> Case:
    return cases.parse(f"{head}steps = [\n{steps}\n]\n", "some.toml")[0]


def refused(steps: str, head: str = HEAD) -> str:
    with pytest.raises(cases.CaseError) as caught:
        case(steps, head)
    return str(caught.value)


def test_a_case_with_its_checks() -> None:
    found = case("""
        { start = true },
        { send = "status", as = "s" },
        { answer = "s", result = { state = "idle", session_id = "*null?" }, check = "idle", level = "should" },
        { event = "run.finished", as = "fin", timed = true, clauses = ["EVT-43"] },
        { absent = "message.delta", since = "fin" },
        { answer = "s", any = true, clauses = [] },
    """)
    assert (found.family, found.tier, [step.kind for step in found.steps][:2]) == ("frame", 0, ["start", "send"])
    assert [(each.check, each.clauses, each.level, each.timed) for each in found.checks] == [
        ("frame.some/idle", ("FRAME-05",), "should", False),
        ("frame.some/e2", ("EVT-43",), "must", True),
        ("frame.some/e3", ("FRAME-05",), "must", False),
    ]
    assert found.steps[0].expects is None
    assert found.steps[5].expects is None
    assert barrier_id(found.steps[4]) == "barrier.5"


def test_a_repeat_is_written_out() -> None:
    found = case("""
        { repeat = 2, steps = [{ send = "status", as = "r{n}" }, { answer = "r{n}", any = true, check = "again" }] },
        { repeat = 2, steps = [{ repeat = 2, steps = [{ send = "status", as = "s{n}" }] }, { close = true }] },
    """)
    assert [step.args.get("as", step.kind) for step in found.steps] == [
        *("r1", "answer", "r2", "answer"),
        *("s1", "s2", "close", "s1", "s2", "close"),
    ]
    assert [step.number for step in found.steps] == list(range(1, 11))
    assert [each.check for each in found.checks] == ["frame.some/again.1", "frame.some/again.2"]


def test_the_same_id_twice_means_one_answer_after_the_other() -> None:
    found = case("""
        { send = "status", as = "s" }, { send = "status", as = "s" },
        { answer = "s", any = true }, { answer = "s", error = "duplicate_id" }, { answer = "s", any = true },
        { send = "status", as = "t", times = 3 }, { answers = "t", times = 3 },
        { send = "status", as = "u", envelope = { id = "other.id" } }, { answer = "u", any = true },
        { restart = true }, { send = "status", as = "s" }, { answer = "s", any = true },
    """)
    asked = [(step.args["id"], step.args["nth"]) for step in found.steps if step.kind == "answer"]
    assert asked == [("s", 0), ("s", 1), ("s", 1), ("other.id", 0), ("s", 0)]
    assert found.steps[6].args["ids"] == ["t1", "t2", "t3"]


@pytest.mark.parametrize(
    ("steps", "what"),
    [
        ("{ sand = 1 }", "step 1: no kind of step: sand"),
        ("{ send = 'status', as = 's', foo = 1 }", "step 1 (send): send takes no 'foo'"),
        ("{ send = 'status' }", "step 1 (send): send needs as"),
        ("{ send = 'status', as = 'a.b' }", "as must be a name"),
        ("{ send = 'status', as = 'close' }", "'close' is no name"),
        ("{ send = 'status', as = 's', pad = 20 }", "more than pad = 20"),
        ("{ answer = 's', any = true }", "no request is named 's'"),
        ("{ answers = ['s'] }", "no request is named 's'"),
        ("{ absent_answer = 's' }", "no request is named 's'"),
        ("{ answer = '', any = true }", "an answer without an id is an error"),
        ("{ start = true }, { answer = 'init' }", "answer needs result or error"),
        ("{ start = true }, { answer = 'init', error = 'bsuy' }", "error must be an error code"),
        ("{ start = true }, { answer = 'init', result = { a = '*strnig' } }", "'*strnig' is no pattern"),
        ("{ send = 'status', as = 's' }, { match = '$s.result', pattern = 1 }", "nothing was awaited before"),
        ("{ send = 'status', as = 's', params = { a = ['$x.y'] } }", "that is named 'x'"),
        ("{ raw = '${x.y}' }", "that is named 'x'"),
        ("{ event = 'run.finshed' }", "no event is named 'run.finshed'"),
        ("{ absent = 'message.delta', since = 'fin' }", "that is named 'fin'"),
        ("{ exit = [0], check = 'a' }, { exit = [0], check = 'a' }", "another check named 'frame.some/a'"),
        ("{ exit = [0], clauses = ['FRAME-99999'] }", "no clause is named 'FRAME-99999'"),
        ("{ exit = [0], not_before_ms = 3 }", "not_before_ms needs since"),
        ("{ turn = 'plain', session = '$init.x', as = 't' }", "nothing was awaited before that is named 'init'"),
        ("{ start = true }, { turn = 'plain', session = '$init.x', as = 't' }", "not among the case's prompts"),
        ("{ write = 'a', text = '' }", "only a case with a fixture"),
        ("{ write = '../a', text = '' }", "must be a path inside the home"),
        ("{ signal = 'NONE' }", "signal must be one of"),
        ("{ repeat = 0, steps = [{ close = true }] }", "repeat must be a whole number"),
    ],
)
def test_what_is_wrong_is_named(steps: str, what: str) -> None:
    told = refused(steps)
    assert told.startswith("some.toml: frame.some: step ")
    assert what in told


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("frame.some", "Frame", "an id is a family and a name"),
        ("tier = 0", "tier = 3", "tier must be 0, 1 or 2"),
        ("tier = 0", "tier = 0\nfoo = 1", "unknown key 'foo'"),
        ("tier = 0", "tier = 0\nneeds = ['x']", "needs: 'x' is unknown"),
        ("tier = 0", "tier = 0\nprompts = ['plain']", "is of tier 1 or 2"),
        ("tier = 0\n", "", "no tier"),
        ("FRAME-05", "NONE-01", "no clause is named 'NONE-01'"),
        ('clauses = ["FRAME-05"]\n', "", "a check without a clause"),
    ],
)
def test_the_head_of_a_case_is_checked(old: str, new: str, what: str) -> None:
    assert what in refused("{ exit = [0] }", HEAD.replace(old, new))


def test_a_case_names_one_fixture_or_some() -> None:
    step = '{ write = "a", text = "b" }, { nothing = true }'
    assert case(step, HEAD + 'fixture = "store"\n').fixtures == ("store",)
    assert case(step, HEAD + 'fixture = ["settings", "store"]\n').fixtures == ("settings", "store")
    assert "'catalog' is unknown" in refused(step, HEAD + 'fixture = "catalog"\n')
    assert "must be a str or a list, not 1" in refused(step, HEAD + "fixture = 1\n")
    assert "changes the home" in refused(step)


def test_files_are_read_in_order_and_everything_wrong_is_listed(tmp_path: Path) -> None:
    text = f"{HEAD}steps = [{{ exit = [0] }}]\n"
    (tmp_path / "b.toml").write_text(text.replace("frame.some", "b.one"))
    (tmp_path / "a.toml").write_text(text.replace("frame.some", "a.one"))
    assert [each.id for each in cases.load(tmp_path)] == ["a.one", "b.one"]
    assert cases.lint(tmp_path) == [f"{name}: another case has the same title" for name in ("a.one", "b.one")]
    (tmp_path / "c.toml").write_text(text.replace("frame.some", "a.one") + text.replace("exit", "exits"))
    (tmp_path / "d.toml").write_text("[[case]]\nid =")
    with pytest.raises(cases.CaseError, match=r"c\.toml: frame\.some: step 1: no kind of step: exits"):
        cases.load(tmp_path)
    found = cases.lint(tmp_path)
    assert any("the id is taken already" in each for each in found)
    assert any(each.startswith("d.toml: ") for each in found)
    assert cases.load(tmp_path / "none") == ()


def test_our_own_cases_load() -> None:
    cases.load()


def test_what_steps_send() -> None:
    names = {"new": {"result": {"id": 'a"b', "n": 3}}}.__getitem__
    found = case(r"""
        { send = "status", as = "s", pad = 200, end = "\r\n" },
        { send = "status", as = "t", times = 2, drop = ["version"], envelope = { more = "$null" } },
        { send = "new", as = "new", params = { prompt = { fill = "xy", count = 3 }, dollar = "$$5" } },
        { answer = "new", any = true },
        { raw = '{"id":"raw","a":"${new.result.id}","b":${new.result.n}}', then = "\n" },
        { fill = "[", count = 3, then = "\n" }, { hex = "ff", then = "\n" },
    """)
    sent = [sent_by(step, names, {}) for step in found.steps if step.kind != "answer"]
    assert len(sent[0]) == 202
    assert sent[0].endswith(b" }\r\n")
    assert sent[1].count(b"\n") == 2
    assert b'"id":"t2","method":"status","params":{},"more":null}' in sent[1]
    assert b"version" not in sent[1]
    assert b'"params":{"prompt":"xyxyxy","dollar":"$5"}' in sent[2]
    assert sent[3:] == [b'{"id":"raw","a":"a\\"b","b":3}\n', b"[[[\n", b"\xff\n"]
    assert ids(found.steps[4]) == (("raw", "raw"),)


VALUE = {"a": [1, {"b": None}], "t": True, "s": "é", "u": "0b0e7f62-5dd8-4c2f-9d4c-0d2b8c4f2b11"}


@pytest.mark.parametrize(
    "pattern",
    [
        {},
        {"a": [1, {"b": "*null"}], "t": "*boolean", "s": "*string", "u": "*uuid"},
        {"a": "*array", "s": "!null", "t": "*"},
        {"a": {"contains": ["*integer", {"b": "$null"}], "excludes": [2]}},
        {"a": {"length": 2}, "s": {"bytes": {"max": 2}, "length": 1, "regex": "[^a]"}},
        {"a": {"every": {"not": "*string"}, "none": "*string"}, "t": {"one_of": [False, True]}},
        {"keys": ["a", "t", "s", "u"]},
        {"a": ["$v.a.0", "*object"]},
    ],
)
def test_patterns_that_match(pattern: Any) -> None:
    assert values.mismatch(VALUE, pattern, {"v": VALUE}.__getitem__) == ""


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ({"x": "*null?"}, "x is missing"),
        ({"t": 1}, "t is true, not 1"),
        ({"a": [1]}, "a has 2 items, not 1"),
        ({"a": [1, {"b": "!null"}]}, "a.1.b is null, not !null"),
        ({"a": {"contains": ["*string"]}}, "a lacks"),
        ({"a": {"excludes": [1]}}, "a has 1"),
        ({"a": {"length": {"max": 1}}}, "the length of a is 2, not at most 1"),
        ({"s": {"bytes": {"max": 1}}}, "the bytes of s is 2, not at most 1"),
        ({"t": {"min": 0}}, "t is true, not at least 0"),
        ({"s": {"one_of": ["a", "b"]}}, "none of"),
        ({"s": {"regex": "a"}}, "not as a"),
        ({"a": {"every": "*integer"}}, "a.1 is"),
        ({"a": {"none": "*integer"}}, "a.0 is 1, which it must not be"),
        ({"keys": ["a"]}, "not an object of exactly a"),
        ([], "not an array"),
        ("*string", "not *string"),
    ],
)
def test_patterns_that_do_not_match(pattern: Any, what: str) -> None:
    assert what in values.mismatch(VALUE, pattern, {"v": VALUE}.__getitem__)


def test_a_reference_that_leads_nowhere() -> None:
    for reference in ("$w", "$v.a.5", "$v.s.x", "$v.t.0"):
        with pytest.raises(values.DanglingError):
            values.lookup(reference, {"v": VALUE}.__getitem__)


def test_every_kind_of_step_is_told_of() -> None:
    assert set(steps.ABOUT) == set(steps.KINDS)
