"""Scripts: what is refused and how that is said, which rule is played, and what the documentation shows."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from localagent.core.worker import ActivityChanged, AppendFailed, ApprovalWanted, Delta, Note
from localagent.protocol.codes import Code
from localagent.protocol.ids import is_blank
from localagent.runner import script
from localagent.runner.scripted import Scripted

from .kit import Clock, Trial

DOCS = Path(__file__).parents[2] / "docs" / "script.md"


def _step(**members: Any) -> bytes:
    return json.dumps({"version": 1, "rules": [{"steps": [members]}]}).encode()


WRONG = [
    (b"", "script: "),
    (b"[]", "Expected `object`, got `array`"),
    (b"[" * 100_000, "recursion"),
    (b'{"version": 1, "rules": [', "line 1 column 26"),
    (b'{"version": 2, "rules": []}', "`$.version`"),
    (b'{"version": 1, "rules": []}', "length >= 1 - at `$.rules`"),
    (b'{"version": 1, "version": 1, "rules": []}', "key `version` occurs twice"),
    (b'{"version": 1, "rules": [{"steps": [], "step": []}]}', "unknown field `step` - at `$.rules[0]`"),
    (b'{"version": 1, "rules": [{"steps": []}, {"steps": []}]}', "rules[0] matches every prompt"),
    (b'{"version": 1, "rules": [{"exact": "a", "prefix": "b", "steps": []}]}', "a rule has one of"),
    (b'{"version": 1, "rules": [{"exact": "", "steps": []}]}', "`$.rules[0].exact`"),
    (_step(do="shout", text="x"), "`$.rules[0].steps[0].do`; a step is one of say, flood,"),
    (_step(text="x"), "missing required field `do`"),
    (_step(do="say", text=""), "`$.rules[0].steps[0].text`"),
    (_step(do="say", text=[]), "`$.rules[0].steps[0].text`"),
    (_step(do="say", text="x", piece=0), "`$.rules[0].steps[0].piece`"),
    (_step(do="say", text="x", pause_ms=-1), "`$.rules[0].steps[0].pause_ms`"),
    (_step(do="say", text="x", pause_ms=True), "`$.rules[0].steps[0].pause_ms`"),
    (_step(do="flood", bytes=1.5), "`$.rules[0].steps[0].bytes`"),
    (_step(do="fail", code="no_such_code"), "`$.rules[0].steps[0].code`"),
    (_step(do="fail", code="invalid_frame"), "a run never ends with `invalid_frame`"),
    (_step(do="call", name="two words"), "`$.rules[0].steps[0].name`"),
    (_step(do="call", name="x", denied=[{"do": "stall"}]), "need `approval`"),
    (_step(do="together", calls=[]), "`$.rules[0].steps[0].calls`"),
    (_step(do="repeat", times=2, steps=[{"do": "say"}]), "`$.rules[0].steps[0].steps[0]`"),
]


@pytest.mark.parametrize(("data", "said"), WRONG)
def test_a_faulty_script_says_where(data: bytes, said: str) -> None:
    with pytest.raises(script.ScriptError) as caught:
        script.parse(data)
    assert said in str(caught.value)
    assert str(caught.value).startswith("script: ")


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with pytest.raises(script.ScriptError, match="No such file"):
        script.load(path)
    path.write_bytes(_step(do="stall") + b" " * script.FILE_BYTES)
    with pytest.raises(script.ScriptError, match="larger than 1048576 bytes"):
        script.load(path)
    path.write_bytes(b"{}")
    with pytest.raises(script.ScriptError, match=re.escape(str(path))):
        script.load(path)
    path.write_bytes(_step(do="stall"))
    assert script.load(path).rules[0].steps == [script.Stall()]


def test_the_first_rule_that_matches_is_played() -> None:
    rules = [
        {"exact": "one", "steps": [{"do": "say", "text": "exact"}]},
        {"prefix": "on", "steps": [{"do": "say", "text": "prefix"}]},
        {"contains": "n", "steps": [{"do": "say", "text": "contains"}]},
        {"steps": [{"do": "say", "text": "any"}]},
    ]
    played = script.parse(json.dumps({"version": 1, "rules": rules}).encode())
    said = {}
    for prompt in ("one", "one two", "tone", "ONE"):
        trial = Trial()
        trial.run(trial.scripted(played), prompt)
        said[prompt] = trial.answer()
    assert said == {"one": "exact", "one two": "prefix", "tone": "contains", "ONE": "any"}


def _ask(prompt: str, **trial: Any) -> Trial:
    tried = Trial(clock=Clock(tick=0.1), judged=prompt not in ("FLOOD", "OVERFLOW"), **trial)
    tried.ended = tried.ask(prompt)  # type: ignore[attr-defined]
    return tried


WORDS = [rule.contains for rule in script.built_in().rules if rule.contains]


@pytest.mark.parametrize("word", WORDS)
def test_every_word_of_the_built_in_script_reaches_its_rule(word: str) -> None:
    built_in = script.built_in()
    rule = next(rule for rule in built_in.rules if rule.contains == word)
    assert built_in.steps_for(f"please {word} now") is rule.steps
    assert rule.about


def test_the_built_in_script_does_what_it_says() -> None:
    assert _ask("Hello").answer() == "You said: Hello"
    assert _ask("SLOW").answer() == "You said, slowly: SLOW"
    assert len(_ask("SLOW").sink.waits) == 4
    assert _ask("APPROVAL").answer().endswith("Sorted: apples, then bread.")
    assert _ask("APPROVAL", answers=[False]).answer().endswith("Then they stay as they are.")
    assert len(_ask("PARALLEL").of(ApprovalWanted)) == 2
    assert [event.state for event in _ask("BROKEN TOOL").of(ActivityChanged)] == ["started", "failed"]
    assert [event.name for event in _ask("TOOL").of(ActivityChanged)] == ["list_files ."] * 2
    assert _ask("THINK").handle.kinds().count("reasoning_summary") == 1
    assert _ask("SECRET").answer() == "The key is <redacted>, keep it."
    assert len(_ask("FLOOD").answer()) == 8 * 1024 * 1024
    assert _ask("STALL").answer() == "I was about to"
    assert [event.code for event in _ask("WARN").of(Note)] == ["slow_network"]
    assert _ask("DISK").of(AppendFailed)
    assert _ask("COMPUTE").clock.now > 1000


def test_without_the_seam_no_append_can_be_made_to_fail() -> None:
    trial = Trial()
    assert trial.run(Scripted(script.built_in(), trial.clock), "DISK").code is Code.EXECUTION_FAILED


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("OVERFLOW", Code.CONTENT_LIMIT),
        ("REFUSE", Code.PROVIDER_UNAVAILABLE),
        ("FAIL", Code.EXECUTION_FAILED),
        ("CRASH", Code.EXECUTION_FAILED),
    ],
)
def test_the_words_that_fail(word: str, code: Code) -> None:
    trial = _ask(word)
    assert trial.ended.code is code  # type: ignore[attr-defined]
    assert trial.of(Delta)


def test_the_documentation_shows_the_built_in_script() -> None:
    text = DOCS.read_text()
    assert script.BUILT_IN.read_text() in text
    for rule in script.built_in().rules:
        assert f"| {f'`{rule.contains}`' if rule.contains else 'anything else'} | {rule.about} |" in text


def test_the_documentation_names_every_step_and_member() -> None:
    text = DOCS.read_text()
    for kind in script.Step.__args__:
        section = text.split(f"### `{kind.__struct_config__.tag}`")[1].split("\n#")[0]
        for member in kind.__struct_fields__:
            assert f"`{member}`" in section, (kind, member)
    assert not is_blank(text)


def test_every_example_of_the_documentation_is_a_script() -> None:
    blocks = re.findall(r"```json\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert len(blocks) > 3
    for block in blocks:
        value = json.loads(block)
        whole = value if "version" in value else {"version": 1, "rules": [{"steps": [value]}]}
        if "localagent" not in value:
            script.parse(json.dumps(whole).encode())
