"""A root and a working directory of one's own, and what to put there."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from localagent.protocol.codes import Code
from localagent.sessions.paths import Root, prepare
from localagent.settings import admit
from localagent.settings.admit import Examination
from localagent.settings.faults import Inadmissible
from localagent.settings.providers import Embedded
from localagent.settings.snapshot import Snapshot

EMBEDDED = Embedded("scripted", "demo")
BENCH = {"label": "Bench (local)", "base_url": "http://127.0.0.1:11434/v1"}


class Place:
    """A prepared root, a working directory, an environment with neither keys nor choices."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.root: Root = prepare(str(self.home))
        self.cwd = folder / "work"
        self.cwd.mkdir()
        self.user = folder / "user"
        self.user.mkdir()
        self.environ: dict[str, str] = {"HOME": str(self.user), "PATH": os.defpath}

    def settings(self, value: object) -> Path:
        """Write the global settings."""
        return self.put(self.home / "settings.json", value)

    def project(self, value: object) -> Path:
        """Write the project's settings."""
        return self.put(self.cwd / ".magi-code" / "settings.json", value)

    def auth(self, value: object, mode: int = 0o600) -> Path:
        path = self.put(self.home / "auth.json", value)
        path.chmod(mode)
        return path

    def put(self, path: Path, value: object) -> Path:
        """Write bytes or a text as they are, anything else as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(value, bytes):
            path.write_bytes(value)
        else:
            path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path

    def admit(self, **environ: str) -> Snapshot:
        return admit.admit(self.root, str(self.cwd), self.environ | environ, EMBEDDED)

    def examine(self, **environ: str) -> Examination:
        return admit.examine(self.root, str(self.cwd), self.environ | environ, EMBEDDED)

    def refused(self, code: Code = Code.CONFIGURATION_INVALID, **environ: str) -> Inadmissible:
        """What a startup is refused with."""
        with pytest.raises(Inadmissible) as caught:
            self.admit(**environ)
        assert caught.value.code is code, caught.value
        assert caught.value.faults
        return caught.value

    def keys(self, code: Code = Code.CONFIGURATION_INVALID, **environ: str) -> list[str]:
        """The keys that a startup is refused for."""
        return [fault.key for fault in self.refused(code, **environ).faults]


def nested(path: str, value: object) -> dict[str, Any]:
    """``a.b`` and a value as ``{"a": {"b": value}}``."""
    for name in reversed(path.split(".")):
        value = {name: value}
    assert isinstance(value, dict)
    return value


def at(value: Any, path: str) -> Any:
    """The attribute or member that a dotted path names."""
    for name in path.split("."):
        value = value[name] if isinstance(value, Mapping) else getattr(value, name)
    return value
