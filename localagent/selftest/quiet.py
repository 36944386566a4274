"""Faults of what a backend must leave alone: who is asked, what runs, what is read and written beside a request."""

import os
from contextlib import suppress
from typing import Any

from .display import turn_behind
from .frames import rewriting
from .mutant import fault
from .tools import around, bounds, put, put_item


def _call(snapshot: Any) -> None:
    """Ask the first provider that has an address for its models. What it says is not waited for."""
    import socket
    from urllib.parse import urlsplit

    for each in snapshot.providers.values():
        if each.base_url:
            parts = urlsplit(each.base_url)
            with suppress(OSError), socket.create_connection((parts.hostname, parts.port), 2) as provider:
                provider.sendall(f"GET {parts.path}/models HTTP/1.1\r\n\r\n".encode())


def _asking(method: str) -> None:
    """Let a request ask the provider."""
    from localagent.shell.backend import LocalBackend

    @around(LocalBackend, "session")
    def session(original: Any, self: Any, command: Any, token: Any) -> Any:
        if command.method == method:
            _call(self._snapshot)
        return original(self, command, token)


@fault
def startup_asks_the_provider() -> None:
    """Startup asks the selected provider for its models."""
    from localagent.shell.backend import LocalBackend

    @around(LocalBackend, "startup")
    def startup(original: Any, self: Any, command: Any, token: Any) -> Any:
        word = original(self, command, token)
        if self._snapshot is not None:
            _call(self._snapshot)
        return word


@fault
def status_asks_the_provider() -> None:
    """status asks the selected provider for its models."""
    from localagent.core import fill
    from localagent.shell.backend import LocalBackend
    from statemachines.rows import Emit

    known: list[Any] = []

    @around(LocalBackend, "startup")
    def startup(original: Any, self: Any, command: Any, token: Any) -> Any:
        word = original(self, command, token)
        known.append(self._snapshot)
        return word

    told = fill.FILL[Emit.STATUS_RESULT]

    def tell(moment: Any, move: Any) -> Any:
        for each in filter(None, known):
            _call(each)
        return told(moment, move)

    put_item(fill.FILL, Emit.STATUS_RESULT, tell)


@fault
def create_asks_the_provider() -> None:
    """session.create asks the selected provider for its models."""
    _asking("session.create")


@fault
def open_asks_the_provider() -> None:
    """session.open asks the selected provider for its models."""
    _asking("session.open")


@fault
def list_asks_the_provider() -> None:
    """session.list asks the selected provider for its models."""
    _asking("session.list")


@fault
def catalog_asks_the_provider() -> None:
    """model.catalog asks the selected provider for its models."""
    _asking("model.catalog")


@fault
def catalog_status_asks_the_provider() -> None:
    """model.catalog.status asks the selected provider for its models."""
    _asking("model.catalog.status")


@fault
def selection_asks_the_provider() -> None:
    """selection.set asks the provider for its models."""
    _asking("selection.set")


# what runs, or runs again


@fault
def open_runs_what_was_called() -> None:
    """session.open runs a command whose call has no result."""
    from localagent.shell.backend import LocalBackend

    @around(LocalBackend, "_attach")
    def attach(original: Any, self: Any, handle: Any, token: Any) -> Any:
        import json
        import subprocess

        word = original(self, handle, token)
        with suppress(FileNotFoundError), self._place[0].sessions() as directory:
            file = os.open(f"{handle.session_id}.jsonl", os.O_RDONLY, dir_fd=directory)
            with open(file, encoding="utf-8") as lines:
                last = json.loads([*lines][-1])
            if last["event_type"] == "tool_call":
                subprocess.run(["/bin/sh", "-c", last["payload"]["arguments"]["command"]], check=False)
        return word


@fault
def open_takes_a_run_up_again() -> None:
    """session.open starts the last prompt once more."""
    turn_behind("Attached")


@fault
def open_goes_on_with_a_run() -> None:
    """session.open goes on with the run that was cut off."""
    opened: list[bool] = []

    def seen(frame: dict[str, Any]) -> None:
        result = frame.get("result", {})
        if result.get("durable") and "notices" in result:
            opened.append(True)
        elif opened and "readiness" in result:
            result.update(state="running", run_id="again")

    rewriting(seen)


@fault
def stale_turn_replayed() -> None:
    """A turn that failed with stale_selection is started again."""
    from msgspec.structs import replace

    from localagent.core import connection
    from localagent.protocol.events import RunFinished

    @around(connection.Connection, "_send")
    def send(original: Any, self: Any, filled: Any, now: float) -> None:
        original(self, filled, now)
        if isinstance(filled, RunFinished) and filled.error_code == "stale_selection":
            original(self, replace(filled, run_id="again"), now)


@fault
def cleanup_without_a_bound() -> None:
    """The end waits for a request to a provider for as long as that takes."""
    from localagent.catalog import remote
    from localagent.core import connection

    bounds(connection, closing_ms=60_000, cleanup_ms=60_000)
    put(remote.Watch, "look", lambda self: None)


@fault
def critical_events_impatient() -> None:
    """An event of a run that finds no place within 500 ms ends the run."""
    from localagent.core import channel
    from localagent.shell import turn

    for module in (channel, turn):
        bounds(module, critical_wait_ms=500)


@fault
def undeliverable_without_a_code() -> None:
    """A run that was given up for its events says that it was cancelled, and not why."""

    def silent(frame: dict[str, Any]) -> None:
        data = frame.get("data", {})
        if data.get("error_code") == "output_unavailable":
            data["error_code"] = None

    rewriting(silent)
