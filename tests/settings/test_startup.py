"""Startup as a client sees it: real children, one for each code; a failed one does nothing and says nothing else."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.kit.child import Child

from .kit import BENCH
from .test_mcp import KEY, sign, stdio

Tree = dict[str, Any]
SECRET = "sk-very-secret-0123456789"
CHOICE = {"agent": {"model": {"provider": "bench", "model": "tiny-chat", "thinking_level": "medium"}}}
CUSTOM = {"providers": {"custom": {"bench": BENCH}, "catalog": {"enabled": ["bench/tiny-chat"]}}}
BROKEN_PROFILE = f"---\nname: {SECRET}\n---\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "user").mkdir()
    return tmp_path / "home"


def put(home: Path, files: Tree) -> None:
    home.mkdir()
    for name, value in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        path.chmod(0o600)


def child(home: Path, **environ: str) -> Child:
    bare = {"MC_PROVIDER": "", "MC_MODEL": "", "ANTHROPIC_API_KEY": "", "HOME": str(home.parent / "user")}
    return Child(home, environ=bare | environ)


FAILURES: dict[str, tuple[Tree, dict[str, str], str, tuple[str | None, str | None]]] = {
    "no json": ({"settings.json": SECRET}, {}, "configuration_invalid", (None, None)),
    "a wrong type": ({"settings.json": {"agent": {"model": SECRET}}}, {}, "configuration_invalid", (None, None)),
    "credentials": ({"auth.json": {"x": SECRET}}, {}, "configuration_invalid", (None, None)),
    "a definition": ({".mcp.json": {"mcpServers": {"a": SECRET}}}, {}, "configuration_invalid", (None, None)),
    "no script": (
        {"settings.json": {"localagent": {"runner": "scripted", "script": "/nowhere.json"}}},
        *({"MC_MODEL": "no such model"}, "configuration_invalid", (None, None)),
    ),
    "a profile": ({"subagents/a.md": BROKEN_PROFILE}, {}, "profile_invalid", (None, None)),
    "the primary agent": ({"settings.json": {"agent": {"primary_agent": "a"}}}, {}, "profile_invalid", (None, None)),
    "no such provider": ({"settings.json": CHOICE}, {}, "provider_unavailable", ("bench", "tiny-chat")),
    "no key": ({}, {"MC_PROVIDER": "anthropic", "MC_MODEL": "m"}, "provider_unavailable", ("anthropic", "m")),
    "no text": ({}, {"MC_PROVIDER": "scripted", "MC_MODEL": "\udcff"}, "provider_unavailable", (None, None)),
    "an odd choice": ({}, {"MC_PROVIDER": SECRET, "MC_MODEL": "a b"}, "provider_unavailable", (None, None)),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_failed_startup(home: Path, case: str) -> None:
    files, environ, code, names = FAILURES[case]
    put(home, files)
    with child(home, **environ) as backend:
        answer = backend.call("initialize", required_capabilities=[])
        assert answer["error"] == {"code": code}
        status = backend.call("status")["result"]
        assert (status["state"], status["readiness"], status["selection"]) == ("failed", code, None)
        assert (status["provider"], status["model"]) == names
        assert len(status["context_id"]) == 64
        assert backend.call("session.create")["error"] == {"code": code}
        assert backend.call("initialize", required_capabilities=[])["error"] == {"code": "already_initialized"}
        backend.call("shutdown")
        assert backend.wait() == 0
        assert SECRET not in backend.raw.decode() + backend.stderr().decode()
    assert os.listdir(home / "sessions") == []


def test_an_approved_server_is_never_left_out_in_silence(home: Path) -> None:
    put(home, {".mcp.json": {"mcpServers": {"a": {"command": "/bin/false"}}}})
    (home / "mcp-approval.key").write_bytes(KEY)
    (home / "mcp-approval.key").chmod(0o600)
    with child(home) as backend:
        assert backend.initialize("status")["status"]["readiness"] == "ready"  # not approved: it does not run
    source = str(home.resolve() / ".mcp.json")
    approvals = {source: {"a": {"version": 1, "digest": sign(source, "a", stdio("/bin/false"))}}}
    (home / "settings.json").write_text(json.dumps({"capabilities": {"mcp_approvals": approvals}}))
    with child(home) as backend:
        assert backend.call("initialize", required_capabilities=[])["error"] == {"code": "mcp_unavailable"}
        status = backend.call("status")["result"]
        assert (status["readiness"], status["provider"]) == ("mcp_unavailable", "scripted")


def test_a_root_that_cannot_be_made_is_startup_failed(home: Path) -> None:
    with child(home, MC_HOME="/proc/localagent") as backend:
        answer = backend.call("initialize", required_capabilities=[])
        assert answer["error"] == {"code": "startup_failed"}
        assert backend.call("status")["result"]["context_id"] is None


def test_settings_choose_what_is_ready(home: Path) -> None:
    put(home, {"settings.json": CHOICE | CUSTOM})
    with child(home) as backend:
        status = backend.initialize("status")["status"]
        assert (status["readiness"], status["provider"], status["model"]) == ("ready", "bench", "tiny-chat")
    with child(home, MC_PROVIDER="scripted", MC_MODEL="demo") as backend:
        assert backend.initialize("status")["status"]["provider"] == "scripted"


def test_the_project_of_the_working_directory_has_a_say(home: Path, tmp_path: Path) -> None:
    put(home, {"settings.json": CUSTOM})
    project = tmp_path / "work" / ".magi-code" / "settings.json"
    project.parent.mkdir(parents=True)
    project.write_text(json.dumps(CHOICE))
    for cwd, provider in ((tmp_path / "work", "bench"), (tmp_path, "scripted")):
        environ = {"MC_PROVIDER": "", "MC_MODEL": "", "HOME": str(tmp_path / "user")}
        with Child(home, cwd=cwd, environ=environ) as backend:
            assert backend.initialize("status")["status"]["provider"] == provider


def test_an_empty_home_is_ready_and_gets_no_more_than_it_must(home: Path) -> None:
    with child(home) as backend:
        status = backend.initialize("status")["status"]
        assert (status["readiness"], status["provider"], status["model"]) == ("ready", "scripted", "demo")
        backend.call("shutdown")
        assert backend.wait() == 0
    assert sorted(os.listdir(home)) == ["cache", "checkpoints", "sessions", "settings.json", "state"]


def test_what_startup_does_not_need_is_not_loaded(home: Path) -> None:
    """Ready is said before providers, HTTP clients and redaction are loaded."""
    import subprocess
    import sys

    put(home, {})
    program = (
        "import os, sys\n"
        "from localagent.sessions.paths import Root\n"
        "from localagent.settings.admit import admit\n"
        "from localagent.settings.providers import Embedded\n"
        "admit(Root(sys.argv[1]), os.getcwd(), {}, Embedded('scripted', 'demo'))\n"
        "slow = {'asyncio', 'httpx2', 'subprocess', 'localagent.text.redact', 'localagent.settings.explain'}\n"
        "print(sorted(slow & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(home.resolve())], capture_output=True, check=True)
    assert done.stdout == b"[]\n"
