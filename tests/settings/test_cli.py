"""`localagent settings` as users run it (exit status, bytes); ``check`` says what a startup would."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from localagent.cli import main
from localagent.settings import schema

from .test_mcp import KEY, sign, stdio
from .test_startup import CHOICE, CUSTOM, FAILURES, SECRET, put


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "user").mkdir()
    return tmp_path.resolve() / "home"


class Run:
    """The command line in this process, its directory and environment set, its streams caught."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capsys = monkeypatch, capsys
        monkeypatch.chdir(home.parent)
        bare = {
            "MC_HOME": str(home),
            "MC_PROVIDER": "",
            "MC_MODEL": "",
            "ANTHROPIC_API_KEY": "",
            "HOME": str(home.parent),
        }
        for name, value in bare.items():
            monkeypatch.setenv(name, value)

    def __call__(self, *arguments: str, status: int = 0, **environ: str) -> str:
        for name, value in environ.items():
            self._patch.setenv(name, value)
        try:
            found = main(["settings", *arguments])
        except SystemExit as end:
            found = int(end.code or 0)
        out, err = self._capsys.readouterr()
        assert (found, SECRET in out + err, bool(err)) == (status, False, status == 2), (out, err)
        return err if status == 2 else out


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(home, monkeypatch, capsys)


def test_a_process_of_its_own(home: Path) -> None:
    environ = {**os.environ, "MC_HOME": str(home), "MC_PROVIDER": "gone", "MC_MODEL": "m"}
    command = [sys.executable, "-m", "localagent", "settings", "check"]
    done = subprocess.run(command, cwd=home.parent, env=environ, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
    assert done.stdout.startswith(b"provider_unavailable: the selection: agent.model.provider: expected a provider")


def tree(path: Path) -> list[str]:
    return sorted(str(each) for each in path.rglob("*"))


def test_the_schema_is_printed(run: Run, home: Path) -> None:
    assert run("schema").encode() == Path(schema.__file__).with_name(schema.FILE).read_bytes()
    assert not home.exists()


def test_a_first_file_is_written_once(run: Run, home: Path) -> None:
    path = home / "settings.json"
    assert run("init") == f"wrote {path}\n"
    assert path.read_bytes() == b'{\n  "schema_version": 2\n}\n'
    assert run("check") == f"{home}: all is well; scripted/demo is selected\n"
    for other in (b"", b"{}", b"not json"):
        path.write_bytes(other)
        assert run("init", status=1) == f"{path} exists; it was left as it is\n"
        assert path.read_bytes() == other
    path.unlink()
    path.symlink_to("nowhere")
    run("init", status=1)
    assert path.is_symlink()


@pytest.mark.parametrize("case", FAILURES)
def test_check_says_what_startup_says(run: Run, home: Path, case: str) -> None:
    files, environ, code, _ = FAILURES[case]
    put(home, files)
    before = tree(home)
    told: Any = json.loads(run("check", "--json", status=1, **environ))
    assert told["code"] == code
    assert told["faults"]
    assert set(told["faults"][0]) == {"code", "file", "key", "expected", "found"}
    text = run("check", status=1, **environ)
    assert text.endswith(f"a startup here would fail: {code}\n")
    assert tree(home) == before


def test_check_names_file_key_and_what_was_expected(run: Run, home: Path) -> None:
    put(home, {"settings.json": {"agent": {"model": {"provider": 3}}, "sessions": {"retention_days": "30"}}})
    path = home / "settings.json"
    assert run("check", status=1).splitlines() == [
        f"configuration_invalid: {path}: agent.model.provider: expected a string or null, found a whole number",
        f"configuration_invalid: {path}: sessions.retention_days: expected a whole number, 0 or more, found a string",
        "a startup here would fail: configuration_invalid",
    ]


def test_check_of_good_settings(run: Run, home: Path) -> None:
    put(home, {"settings.json": CHOICE | CUSTOM, "skills/a/SKILL.md": "---\n"})
    told = json.loads(run("check", "--json"))
    assert told == {
        "code": None,
        "faults": [],
        "notes": [f"{home}/skills/a/SKILL.md: expected a line --- that ends the front matter"],
        "selection": {"provider": "bench", "model": "tiny-chat", "effort": "medium"},
    }


def test_check_creates_nothing(run: Run, home: Path) -> None:
    assert run("check") == f"{home}: all is well; scripted/demo is selected\n"
    assert not home.exists()


def test_check_of_servers_and_of_the_folder_of_sessions(run: Run, home: Path) -> None:
    source = str(home / ".mcp.json")
    approvals = {source: {"a": {"version": 1, "digest": sign(source, "a", stdio())}}}
    put(
        home,
        {
            ".mcp.json": {"mcpServers": {"a": {"command": "x"}}},
            "settings.json": {"capabilities": {"mcp_approvals": approvals}},
        },
    )
    (home / "mcp-approval.key").write_bytes(KEY)
    (home / "mcp-approval.key").chmod(0o600)
    assert json.loads(run("check", "--json", status=1))["code"] == "mcp_unavailable"
    (home / "sessions").mkdir(mode=0o755)
    (home / "sessions").chmod(0o755)
    text = run("check", status=1)
    assert f"configuration_invalid: {home}/sessions: expected a real directory of this user" in text


@pytest.mark.parametrize("arguments", [(), ("other",), ("check", "x"), ("init", "--json")])
def test_wrong_usage(run: Run, arguments: tuple[str, ...]) -> None:
    run(*arguments, status=2)


@pytest.mark.parametrize("root", ["", "relative", "/dev/null"])
def test_no_store_can_be_there(run: Run, root: str) -> None:
    for action in ("check", "init"):
        assert run(action, status=2, MC_HOME=root).startswith("localagent: configuration_invalid")


def test_controls_in_names_do_not_reach_the_terminal(run: Run, home: Path) -> None:
    put(home, {"settings.json": {"capabilities": {"tools": {"code_mode": {"\x1b[31m\u202e\n": 1}}}}})
    text = run("check", status=1)
    assert text.isprintable() or "\x1b" not in text
    assert "\u202e" not in text
    assert text.count("\n") == 2
