"""A refresh from a server that is not ours: ``llmock`` as a process of its own on 127.0.0.1."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.child import PATIENCE, Child

KEY = "LOCALAGENT_TEST_KEY"


@pytest.fixture
def server() -> Iterator[int]:
    """The port of a server that waits for us: it is told when it listens by the port being taken."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [str(Path(sys.executable).with_name("llmock")), "serve", "--port", str(port), "--log-level", "info"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:  # until it says that it runs; its end ends the lines
            if "Uvicorn running on" in line:
                break
        else:
            pytest.fail("llmock did not start")
        yield port
    finally:
        process.kill()
        process.wait(PATIENCE)
        assert process.stdout is not None
        process.stdout.close()


def _home(base: Path, port: int, models: list[str]) -> Path:
    home = base / "home"
    home.mkdir(mode=0o700)
    mock = {"label": "Mock", "base_url": f"http://127.0.0.1:{port}/v1", "api_key_env_var": KEY}
    enabled = [f"mock/{model}" for model in models]
    settings = {"schema_version": 2, "providers": {"custom": {"mock": mock}, "catalog": {"enabled": enabled}}}
    (home / "settings.json").write_text(json.dumps(settings))
    return home


def test_models_of_a_third_party_server(server: int, tmp_path: Path) -> None:
    home = _home(tmp_path, server, ["gpt-4o", "not-there"])
    with Child(home, environ={KEY: "mock-key"}) as child:
        child.initialize("model.catalog", "model.catalog.status", "model.refresh")
        assert child.call("model.catalog")["result"]["choices"] == []
        before = child.call("model.catalog.status")["result"]["providers"]
        refreshed = child.call("model.refresh", provider="mock")["result"]
        after = child.call("model.catalog.status")["result"]["providers"]
        choices = child.call("model.catalog")["result"]["choices"]
    assert _statuses(before) == [("mock", "missing_cache")]
    assert (refreshed["outcome"], refreshed["reason"]) == ("refreshed", None)
    assert _statuses(after) == [("mock", "available")]
    assert [(each["provider"], each["model"]) for each in choices] == [("mock", "gpt-4o")]


def _statuses(providers: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["provider"], each["catalog_status"]) for each in providers if each["provider"] == "mock"]


def test_without_a_key_nobody_is_asked(server: int, tmp_path: Path) -> None:
    home = _home(tmp_path, server, ["gpt-4o"])
    with Child(home) as child:
        child.initialize("model.refresh")
        refused = child.call("model.refresh", provider="mock")["result"]
    assert (refused["outcome"], refused["reason"]) == ("failed", "authentication_unavailable")
    assert not list(home.glob("cache/**/mock*"))
