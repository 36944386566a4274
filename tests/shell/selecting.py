"""Tools of the selection tests at the wire: a child with a session and a catalog, and what must not change."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.catalog.homes import Home
from tests.kit.child import Child

EFFORTS = ("low", "medium", "high", "xhigh", "max")
ALL = ("default", "low", "high", "xhigh")
"""What ``bench/chat`` permits."""
GATE = """
import os
from localagent.sessions import disk

def watch(step, done):
    if (step.name, done) == ({step!r}, {done!r}) and os.path.exists({armed!r}):
        os.unlink({armed!r})
        {act}

disk.watch = watch
from localagent.cli import main
main(["serve", "--stdio"])
"""
KILL = "os.kill(os.getpid(), 9)"
FULL = "raise OSError(28, 'no space left')"


class Picker(Child):
    """A child, and the state of its one session as a client would keep it."""

    home: Home
    session = ""
    catalog = ""
    history = ""

    def status(self) -> dict[str, Any]:
        """Result of ``status``."""
        result: dict[str, Any] = self.call("status")["result"]
        return result

    def selection(self) -> dict[str, Any]:
        """``status.selection``."""
        found: dict[str, Any] = self.status()["selection"]
        return found

    def read_catalog(self) -> list[dict[str, Any]]:
        """Ask for a fresh catalog; its choices."""
        page = self.call("model.catalog")["result"]
        self.catalog = page["revision"]
        choices: list[dict[str, Any]] = page["choices"]
        return choices

    def begin(self) -> None:
        """Initialize, create a session, read the catalog."""
        self.initialize("model.catalog", "selection.set", "operation.cancel")
        created = self.call("session.create")["result"]
        self.session, self.history = created["session_id"], created["revision"]
        self.read_catalog()

    def open(self, session: str) -> dict[str, Any]:
        """Open a session; the result."""
        opened: dict[str, Any] = self.call("session.open", session_id=session)["result"]
        self.session, self.history = session, opened["revision"]
        return opened

    def asking(self, model: str = "bench/chat", effort: Any = ..., **other: Any) -> dict[str, Any]:
        """Params of ``selection.set`` with the current guards; ``other`` replaces members, None removes one."""
        provider, _, name = model.partition("/")
        params = {
            "session_id": self.session,
            "selection_revision": self.selection()["revision"] if "selection_revision" not in other else "",
            "catalog_revision": self.catalog,
            "provider": provider,
            "model": name,
        }
        if effort is not ...:
            params["effort"] = effort
        params |= other
        return {name: value for name, value in params.items() if value is not None}

    def select(self, model: str = "bench/chat", effort: Any = ..., **other: Any) -> dict[str, Any]:
        """``selection.set``; the answer."""
        return self.call("selection.set", **self.asking(model, effort, **other))

    def entries(self, revision: str) -> list[dict[str, Any]] | str:
        """The first page of the history, or the code of its refusal."""
        answer = self.call("history.page", session_id=self.session, revision=revision)
        found: list[dict[str, Any]] | str = (
            answer["error"]["code"] if "error" in answer else answer["result"]["entries"]
        )
        return found

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """SEL-94, SEL-95: nothing is written, and status, attachment and history revision are as they were."""
        before, files = self.status(), self._files()
        yield
        assert self.status() == before
        assert self._files() == files
        assert isinstance(self.entries(self.history), list)

    def _files(self) -> dict[str, bytes]:
        sessions = self.home.path / "sessions"
        return {each.name: each.read_bytes() for each in sessions.glob("*.jsonl")} | {
            "settings.json": (self.home.path / "settings.json").read_bytes()
        }


def picker(home: Home, code: str | None = None) -> Picker:
    """A child in ``home``; ``code`` is a program that runs it."""
    child = Picker(home.path, program=(sys.executable, "-c", code), arguments=()) if code else Picker(home.path)
    child.home = home
    return child


def gated(base: Path, step: str, act: str, done: bool = False) -> tuple[str, Path]:
    """A program whose child acts at a step of the store, once, when the file that is returned too exists."""
    armed = base / "armed"
    return GATE.format(step=step, done=done, armed=str(armed), act=act), armed


def set_to(effort: str) -> dict[str, str]:
    """The effort request that sets one."""
    return {"mode": "set", "value": effort}


def code(answer: dict[str, Any]) -> str:
    """The code of a refusal."""
    found: str = answer["error"]["code"]
    return found


class Held:
    """A child whose worker waits at a step of the append until it is let go."""

    def __init__(self, home: Home, step: str = "SESSION_WRITE") -> None:
        self.fifo = home.path.parent / "fifo"
        os.mkfifo(self.fifo)
        self.program, self.armed = gated(home.path.parent, step, f"open({str(self.fifo)!r}).read()")

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Begins when the worker has reached the step, and lets it go on at the end."""
        with self.fifo.open("w"):
            yield
