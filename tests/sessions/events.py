"""Records as (kind, payload), spelt short; projecting them, with the reference as second judge."""

from typing import Any

import pytest

from localagent.sessions.errors import BadRecord
from localagent.sessions.projection import Projected, Projection
from localagent.sessions.records import Record
from tests.sessions import reference_projection

Event = tuple[str, Any]


def feed(events: list[Event]) -> Projection:
    result = Projection()
    for kind, payload in events:
        result.add(Record(kind, 0, "", payload))
    return result


def seen(projected: Projected) -> tuple[list[tuple[str, str, bool]], bool]:
    return [(entry.kind, entry.text, entry.partial) for entry in projected.entries], projected.complete


def project(*events: Event) -> tuple[list[tuple[str, str, bool]], bool]:
    result = seen(feed(list(events)).snapshot())
    assert result == reference_projection.project(list(events))
    return result


def invalid(*events: Event) -> bool:
    assert reference_projection.project(list(events)) is None
    with pytest.raises(BadRecord):
        feed(list(events))
    return True


def user(text: str = "u", **more: Any) -> Event:
    return "user_input", {"text": text, **more}


def chunk(text: str) -> Event:
    return "assistant_chunk", {"text": text}


def output(text: str) -> Event:
    return "assistant_output", {"text": text}


def summary(text: str, **more: Any) -> Event:
    return "reasoning_summary", {"text": text, "provider_summary": True, **more}


def call(name: str = "bash", arguments: Any = None, call_id: str = "c", nested: str | None = None) -> Event:
    payload = {"id": call_id, "name": name, "arguments": arguments}
    return ("tool_call", payload) if nested is None else ("code_mode_tool_call", payload | {"parent_call_id": nested})


def result(
    name: str = "bash", call_id: Any = "c", success: bool = True, nested: str | None = None, kind: str = ""
) -> Event:
    body = {"tool_name": name, "success": success, "content": "raw body", "metadata": None}
    payload = {"call_id": call_id, "result": body}
    if nested is not None:
        return "code_mode_tool_result", payload | {"parent_call_id": nested}
    return kind or "tool_result", payload


def status(word: str, **more: Any) -> Event:
    return "turn_status", {"status": word, **more}
