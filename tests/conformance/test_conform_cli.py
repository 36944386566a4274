"""The command line: usage, exit status, what is printed, with made-up backends and once with our own."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from localagent.cli import main, parser
from localagent.conformance import cases, choose, commands, judge, play, report, stimuli, suite
from localagent.conformance.model import EVENT_MS, Blame, Verdict
from localagent.conformance.progress import Progress
from localagent.conformance.report import people
from localagent.conformance.report.tally import Status
from localagent.conformance.steps import FIXTURES, STIMULI

from .fakes import Bench, case, result

CASES = (
    case("frame.one", "FRAME-03", "FRAME-04", tags=("quick",)),
    case("env.two", "ENV-01"),
    case("turn.three", "TURN-01", tier=1, prompts=("plain",)),
    case("ext.four", "EXT-DISC-01", needs=("session.discover",)),
)
COMMAND = ("--", "my-backend", "serve")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench()
    monkeypatch.setattr(play, "play", made.play)
    monkeypatch.setattr(judge, "judge", made.judge)
    monkeypatch.setattr(cases, "load", lambda: CASES)
    monkeypatch.setattr(suite, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(suite, "GRACE_SECONDS", 0.2)
    return made


def fails(bench: Bench, **script: Any) -> None:
    bench._script |= {name.replace("_", "."): list(each) for name, each in script.items()}


Output = pytest.CaptureFixture[str]


# usage


@pytest.mark.parametrize(
    "arguments",
    [
        ["conform"],
        ["conform", "--"],
        ["conform", "my-backend"],
        ["conform", "--nonsense", *COMMAND],
        ["conform", "--jobs", "0", *COMMAND],
        ["conform", "--jobs", "many", *COMMAND],
        ["conform", "--profile", "half", *COMMAND],
        ["conform", "--select", "nonsense", *COMMAND],
        ["conform", "--home", "/nowhere", *COMMAND],
        ["conform", "--cwd", "/nowhere", *COMMAND],
        ["conform", "--env", "NAME", *COMMAND],
        ["conform", "--env", "MC_HOME=/somewhere", *COMMAND],
        ["conform", "--patience", "nan", *COMMAND],
        ["conform", "--patience", "inf", *COMMAND],
        ["conform", "--patience", "0", *COMMAND],
        ["conform", "--patience=-1", *COMMAND],
        ["conform", "--prompts", "/nowhere", *COMMAND],
        ["conform", "--report", "/dev/null/x", *COMMAND],
        ["conform", "smoke"],
        ["conform", "--select", "frame.one", "smoke", *COMMAND],
        ["conform", "--profile", "base", "smoke", *COMMAND],
        ["conform", "list", *COMMAND],
        ["conform", "list", "--select", "nonsense"],
        ["conform", "explain"],
        ["conform", "explain", "NONSENSE-99"],
        ["judge"],
        ["judge", "/nowhere"],
        ["judge", "/dev/null"],
        ["replay", "/dev/null", *COMMAND],
        ["replay", "/dev/null"],
    ],
)
def test_wrong_usage_is_three_and_runs_nothing(bench: Bench, arguments: list[str], capsys: Output) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 3
    assert bench.played == []
    assert "localagent" in capsys.readouterr().err


def test_a_home_that_cannot_be_copied_is_no_fault_of_the_target(bench: Bench, tmp_path: Path, capsys: Output) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SystemExit) as ended:
        main(["conform", "--home", str(tmp_path), *COMMAND])
    assert ended.value.code == 3
    assert bench.played == []
    assert "cannot be copied: `" in capsys.readouterr().err


def test_a_fault_that_nobody_foresaw_is_none_of_the_target_s(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    def derive(_: Path) -> None:
        raise report.UnreadableError("not there")

    monkeypatch.setattr(commands, "derive", derive)
    with pytest.raises(SystemExit) as ended:
        main(["conform", "--report", str(tmp_path), *COMMAND])
    assert ended.value.code == 3
    assert "localagent: a fault of the suite: UnreadableError: not there" in capsys.readouterr().err


def test_a_reader_that_leaves_hears_of_no_violation() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "localagent", "conform", "list"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (3, b"")


def test_a_terminal_that_cannot_show_a_character_gets_its_code(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "load", lambda: (case("frame.one", "FRAME-03", title="\N{EN DASH}"),))
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, "ascii"))
    assert main(["conform", "list"]) == 0
    assert b"\\u2013" in out.getvalue()


def test_help_is_no_wrong_usage(capsys: Output) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["conform", "--help"])
    assert ended.value.code == 0
    assert "exit status" in capsys.readouterr().out


# runs


def test_a_conformant_run(bench: Bench, capsys: Output) -> None:
    assert main(["conform", *COMMAND]) == 0
    told = capsys.readouterr()
    assert told.out.rstrip().endswith("conformant")
    assert "not exercised" in told.out  # every clause of the profile is in the table
    assert "[4/4]" in told.err
    assert "\033" not in told.out + told.err
    assert {"frame.one", "turn.three"} <= set(bench.played)  # the provider's prompts are known


def test_a_violation(bench: Bench, capsys: Output) -> None:
    fails(bench, env_two=[Verdict.VIOLATED])
    assert main(["conform", "--env", "A=secret", *COMMAND]) == 1
    told = capsys.readouterr()
    assert "ENV-01  [wrong]" in told.out
    assert "again: localagent conform --select env.two --env A=... -- my-backend serve" in told.out
    assert "secret" not in told.out
    assert "violated      env.two" in told.err


def test_strict(bench: Bench, capsys: Output) -> None:
    fails(bench, env_two=[Verdict.DEVIATION])
    assert main(["conform", *COMMAND]) == 0
    assert main(["conform", "--strict", *COMMAND]) == 1
    told = capsys.readouterr().out
    assert "Deviations: 1" in told
    assert "again: localagent conform --select env.two --strict -- my-backend serve" in told


def test_nothing_exercised(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "prompts.toml"
    file.write_text('fail = "Break."\n')
    assert main(["conform", "--select", "turn", "--prompts", str(file), *COMMAND]) == 2
    assert "turn.three" not in bench.played


def test_a_fault_of_the_suite(bench: Bench) -> None:
    fails(bench, env_two=[RuntimeError("ours")])
    assert main(["conform", *COMMAND]) == 3


def test_what_the_options_make_of_the_target(bench: Bench, tmp_path: Path) -> None:
    seen = bench.targets
    home = str(tmp_path)
    options = ["--home", home, "--cwd", home, "--env", "A=b=c", "--env", "B=", "--fixture", "store"]
    assert main(["conform", "--select", "frame.one", *options, *COMMAND]) == 0
    target = seen[-1]
    assert target.argv == ("my-backend", "serve")
    assert (target.home, target.cwd, target.environ) == (home, home, {"A": "b=c", "B": ""})
    assert target.fixtures == {"store"}
    assert target.prompts == stimuli.SCRIPTED


def test_the_parser_knows_what_the_suite_knows() -> None:
    given = [word for name in sorted(FIXTURES) for word in ("--fixture", name)]
    options = parser().parse_args(["conform", *given])
    assert options.fixture == sorted(FIXTURES)
    assert 1000 * options.patience == EVENT_MS
    with pytest.raises(SystemExit):
        parser().parse_args(["conform", "--fixture", "catalog"])


def test_files_of_the_command_are_found_from_the_child_s_directory(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("server.py", "serve"):
        (tmp_path / name).touch()
    command = ["python", "server.py", "./server.py", "serve", "--stdio", "--x=./server.py", "none.py"]
    main(["conform", "--select", "frame.one", "--", *command])
    there = str(tmp_path / "server.py")
    argvs = [each.argv for each in bench.targets]
    assert argvs[-1] == ("python", there, there, "serve", "--stdio", "--x=./server.py", "none.py")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "backend.py").touch()
    main(["conform", "--select", "frame.one", "--cwd", "sub", "--", "./server.py", "backend.py", "server.py", "serve"])
    argvs = [each.argv for each in bench.targets]
    assert argvs[-1] == (there, str(tmp_path / "sub" / "backend.py"), "server.py", "serve")
    main(["conform", "--select", "frame.one", "--cwd", "sub", "--", "./backend.py", "serve"])
    argvs = [each.argv for each in bench.targets]
    assert argvs[-1] == (str(tmp_path / "sub" / "backend.py"), "serve")


def test_everything_behind_the_first_dashes_is_the_command(bench: Bench) -> None:
    seen = bench.targets
    main(["conform", "--select", "frame.one", "--", "env", "--", "list", "--help"])
    assert seen[0].argv == ("env", "--", "list", "--help")


def test_what_may_be_given_again_adds_up_behind_an_action(bench: Bench, capsys: Output) -> None:
    options = ["--env", "A=1", "--fixture", "store", "smoke", "--env", "B=2", "--env", "C=3", "--fixture", "settings"]
    assert main(["conform", *options, *COMMAND]) == 0
    assert bench.targets[-1].environ == {"A": "1", "B": "2", "C": "3"}
    assert bench.targets[-1].fixtures == {"store", "settings"}
    capsys.readouterr()
    assert main(["conform", "--select", "frame.one", "list", "--select", "ENV-01"]) == 0
    assert [each.split()[0] for each in capsys.readouterr().out.splitlines()] == ["frame.one", "env.two", "2"]


def test_selection_and_profile(bench: Bench) -> None:
    assert main(["conform", "--select", "quick", "--select", "ENV-*", *COMMAND]) == 0
    assert {each for each in bench.played if not each.startswith("sanity")} == {"frame.one", "env.two"}
    bench.played.clear()
    assert main(["conform", "--profile", "extensions", *COMMAND]) == 0
    assert {each for each in bench.played if not each.startswith("sanity")} == {"ext.four"}


def test_a_report_is_written(bench: Bench, tmp_path: Path, capsys: Output) -> None:
    fails(bench, env_two=[Verdict.VIOLATED])
    out = tmp_path / "a" / "report"
    assert main(["conform", "--report", str(out), *COMMAND]) == 1
    assert {each.name for each in out.iterdir()} == {
        "report.ndjson",
        "transcripts",
        "junit.xml",
        "report.md",
        "index.html",
    }
    found = report.load(out)
    assert report.status(found) is Status.VIOLATION
    assert found.header["argv"] == ["my-backend", "serve"]
    assert found.header["capabilities"]
    assert found.universe == choose.universe("all")
    assert "index.html" in capsys.readouterr().out


def test_an_interrupt_leaves_a_report(bench: Bench, tmp_path: Path) -> None:
    bench.before = lambda one: os.kill(os.getpid(), signal.SIGINT) if one.id == "env.two" else None
    handler = signal.getsignal(signal.SIGINT)
    assert main(["conform", "--jobs", "1", "--report", str(tmp_path), *COMMAND]) == 2
    assert signal.getsignal(signal.SIGINT) is handler
    lines = (tmp_path / "report.ndjson").read_text().splitlines()
    assert json.loads(lines[-1])["end"] == "cut"
    found = report.load(tmp_path)
    assert "frame.one" in {each.case.id for each in found.cases}
    assert (tmp_path / "index.html").exists()


def test_smoke(bench: Bench) -> None:
    assert main(["conform", "smoke", *COMMAND]) == 0
    assert "turn.three" not in bench.played  # it needs a model
    assert "frame.one" in bench.played


# what starts nothing


def test_list(bench: Bench, capsys: Output) -> None:
    assert main(["conform", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert re.match(r"turn.three +tier 1 +prompt plain +About turn.three", lines[2])
    assert main(["conform", "list", "--select", "ENV-01"]) == 0
    assert capsys.readouterr().out.startswith("env.two")
    assert bench.played == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("FRAME-03", ["MUST", "frame.one/e1", "one JSON object"]),
        ("FRAME-25", ["no check cites it (not-observable"]),
        ("D40", ["a decision", "accepted:"]),
        ("BASE-OP-61", ["an open point"]),
        ("frame.one", ["About frame.one", "FRAME-04:", "answer"]),
        ("frame.one/e2", [">>   2", "FRAME-04:"]),
        ("trace/FRAME-03", ["on every transcript", "one JSON object"]),
        ("process/exit", ["end of the process"]),
    ],
)
def test_explain(bench: Bench, name: str, words: list[str], capsys: Output) -> None:
    assert main(["conform", "explain", name]) == 0
    text = capsys.readouterr().out
    assert [each for each in words if each not in text] == []


PROMPTS = [("plain = 3", "text"), ("nonsense = 'x'", "nonsense"), ("= what", "prompts"), ('plain = ""', "empty")]


@pytest.mark.parametrize(("content", "words"), PROMPTS)
def test_prompts_are_checked(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "prompts.toml"
    file.write_text(content)
    with pytest.raises(stimuli.PromptsError, match=words):
        stimuli.read(file)


def test_the_embedded_prompts_are_known_stimuli() -> None:
    assert set(stimuli.SCRIPTED) == STIMULI
    assert len(stimuli.SCRIPTED["long"].encode()) > 4000


# progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_is_one_line_that_changes() -> None:
    now = [0.0]
    out = Terminal()
    progress = Progress(out, people.coloured, lambda: now[0])
    progress(suite.Begun(5, 4))
    now[0] = 10.0
    progress(suite.Done(result(CASES[0])))
    assert out.getvalue().endswith("\r\033[K1 of 4 cases  0:30 to go")
    progress(suite.Done(result(CASES[1], Verdict.VIOLATED, what="wrong \x1b[2J", blame=Blame.WRONG)))
    assert "env.two" in out.getvalue()
    assert "\x1b[2J" not in out.getvalue()
    progress(suite.Suspected(result(CASES[2], Verdict.VIOLATED, blame=Blame.LATE)))
    assert out.getvalue().endswith("2 of 4 cases, 1 failed, 1 to be run again  0:10 to go")
    progress.close()
    assert out.getvalue().endswith("\r\033[K")


def test_progress_elsewhere_is_plain_lines() -> None:
    out = io.StringIO()
    progress = Progress(out, people.plain)
    progress(suite.Begun(2, 2))
    progress(suite.Done(result(CASES[0])))
    progress.close()
    assert out.getvalue() == "2 cases\n[1/2] held          frame.one  (0.25 s)\n"


def test_no_thread_is_left(bench: Bench) -> None:
    main(["conform", *COMMAND])
    left = [each for each in threading.enumerate() if each.name.startswith("conformance")]
    for each in left:  # one that is about to end may still be there
        each.join(10)
    assert [each.name for each in left if each.is_alive()] == []
