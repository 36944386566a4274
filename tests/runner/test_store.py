"""The turn on the real store: what a client saw is what history shows, in this child and in the next."""

from pathlib import Path
from typing import Any

import pytest

from localagent.core.worker import ActivityChanged, InputAppended
from localagent.sessions import paths
from localagent.sessions.handle import Handle
from localagent.sessions.store import Store

from .kit import Clock, Trial

KINDS: dict[str, list[dict[str, Any]]] = {
    "text": [{"do": "say", "text": "One.\n"}],
    "tools": [
        {"do": "say", "text": "One. "},
        {"do": "call", "name": "bash", "arguments": {"command": "ls\n-l"}, "approval": "Run?"},
        {"do": "think", "text": "Hm.", "item_id": "rs_1"},
        {"do": "say", "text": "Two. password=hunter22 "},
        {"do": "together", "calls": [{"do": "call", "name": "read"}, {"do": "call", "name": "x", "success": False}]},
        {"do": "say", "text": "Three."},
    ],
    "long": [{"do": "flood", "bytes": 100_000, "piece": 777}, {"do": "call", "name": "web"}],
    "failed": [{"do": "say", "text": "Half a"}, {"do": "fail", "text": "The provider is gone."}],
    "cancelled": [{"do": "say", "text": "Half a tok"}, {"do": "stall"}],
    "cancelled in a tool": [{"do": "call", "name": "bash", "ms": 3_600_000}],
    "degraded": [
        {"do": "fail_append", "after": 1},
        *({"do": "say", "text": "One. "}, {"do": "note", "code": "a", "text": "A."}),
        *({"do": "say", "text": "Two. "}, {"do": "note", "code": "b", "text": "B."}),
    ],
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    home = tmp_path / "home"
    return Store(paths.prepare(str(home)), paths.canonical(str(tmp_path)))


def _history(handle: Handle) -> list[tuple[str, str, bool]]:
    """Kind, text and partial of the entries, their parts joined."""
    entries: dict[str, tuple[str, str, bool]] = {}
    revision, cursor = handle.revision, None
    assert revision is not None
    while True:
        page = handle.page(revision, cursor)
        for part in page.entries:
            before = entries.get(part.message_id, ("", "", False))[1]
            entries[part.message_id] = (part.kind, before + part.text, part.partial)
        if page.next_cursor is None:
            return list(entries.values())
        cursor = page.next_cursor


@pytest.mark.parametrize("kind", KINDS)
def test_history_shows_what_the_events_showed(store: Store, kind: str) -> None:
    handle = store.create()
    trial = Trial(clock=Clock(tick=0.5), real=handle)
    ended = trial.play(*KINDS[kind], prompt="What is there?")
    assert ended.revision == handle.revision
    entries = _history(handle)
    assert entries[0] == ("user", "What is there?", False)
    assert [text for entry, text, _ in entries if entry == "activity"] == [
        f"{event.name}: {event.state}" for event in trial.of(ActivityChanged) if event.state != "started"
    ]
    if kind != "degraded":
        said = [(text, partial) for entry, text, partial in entries if entry == "assistant"]
        assert said == [(text, ended.word != "completed") for text in trial.reconciled().values()]

    handle.release()
    again = store.open(handle.session_id)
    assert _history(again) == entries
    again.release()


def test_the_acknowledgement_names_the_input(store: Store) -> None:
    handle = store.create()
    trial = Trial(real=handle)
    revision = trial.ask("Hello").revision
    assert revision is not None
    (appended,) = trial.of(InputAppended)
    assert handle.page(revision, None).entries[0].message_id == appended.message_id
    assert revision != appended.revision
