"""Shapes of what the backend writes: key sets, key order, and the recorded frames of the published backend."""

import json
from typing import Any

import msgspec
import pytest

from localagent.protocol import events, results
from localagent.protocol.codec import encode, params_of, parse
from localagent.protocol.codes import Code
from localagent.protocol.limits import published
from localagent.protocol.measure import compact
from localagent.protocol.messages import (
    EVENTS,
    METHODS,
    RESULTS,
    ErrorFrame,
    EventFrame,
    Frame,
    ResultFrame,
    error,
    event,
    response,
)
from localagent.protocol.names import CAPABILITIES, CLIENT_TOOL_RESULT

from .captures import CAPTURES, frames, lines

INSTANCE = "0b6e1f6c-52c1-4f0e-9a77-3d1c8f0e2a41"


def outputs(kind: type[results.Output] = results.Output) -> list[type[results.Output]]:
    return [each for child in kind.__subclasses__() for each in (child, *outputs(child))]


@pytest.mark.parametrize("kind", outputs(), ids=lambda kind: kind.__name__)
def test_fields_are_declared_in_the_order_of_the_keys(kind: type[results.Output]) -> None:
    """D70."""
    assert list(kind.__struct_encode_fields__) == sorted(kind.__struct_encode_fields__)


@pytest.mark.parametrize("kind", outputs(), ids=lambda kind: kind.__name__)
def test_what_is_written_cannot_be_changed(kind: type[results.Output]) -> None:
    assert kind.__struct_config__.frozen


def test_registries() -> None:
    """NEG-01, EVT-02."""
    assert tuple(METHODS) == tuple(RESULTS) == (*CAPABILITIES, CLIENT_TOOL_RESULT)
    base = "input.persisted message.delta message.reconcile activity approval.requested diagnostic run.finished"
    assert list(EVENTS) == [*base.split(), "tool.card", "client.tool.call", "client.tool.cancel"]


# Keys of each result, event and object, typed from base 19.1 and 22, EXT 7, CT 11, TC 8.1.
KEYS: dict[type[results.Output], str] = {
    results.Initialized: "capabilities limits status client_tools? extensions?",
    results.Status: "state readiness provider model context_id session_id run_id selection",
    results.Selection: "revision provider model requested_effort effective_effort effort_support permitted_efforts",
    results.Stopping: "state",
    results.Attached: "session_id durable revision notices",
    results.ListingPage: "revision sessions next_cursor complete notices",
    results.ListingEntry: "session_id title updated_at eligibility notices",
    results.DiscoverPage: "revision sessions next_cursor complete notices consistency progress recovery",
    results.CatalogPage: "revision choices next_cursor complete notices source",
    results.Choice: "selection_id provider model provider_name model_name availability effort_support "
    "permitted_efforts",
    results.CatalogStatusPage: "revision choices next_cursor complete notices source configuration_reload providers",
    results.ProviderStatus: "provider catalog_status authentication relevant recovery",
    results.Refreshed: "provider outcome reason catalog_revision catalog_error recovery configuration_reload "
    "selection_unchanged",
    results.Cancelling: "state request_id",
    results.SelectionSaved: "session_id selection catalog_revision scope durable history_revision notices",
    results.HistoryPage: "session_id revision entries next_cursor complete",
    results.HistoryEntry: "message_id kind text partial part last_part tool_card?",
    results.TurnAccepted: "run_id accepted",
    results.CancellationRequested: "cancellation_requested",
    results.ApprovalRecorded: "recorded",
    results.ToolResultAccepted: "accepted",
    results.ClientTools: "tools limits",
    results.Extensions: "client.tools? model.refresh? session.discover? tool.cards?",
    events.InputPersisted: "session_id run_id message_id durable revision",
    events.MessageDelta: "session_id run_id message_id part text",
    events.MessageReconcile: "session_id run_id message_id part text last_part partial",
    events.Activity: "session_id run_id activity_id kind state name summary",
    events.ApprovalRequested: "session_id run_id approval_id summary expires_in_ms",
    events.Diagnostic: "session_id run_id code summary",
    events.RunFinished: "session_id run_id outcome persistence revision error_code",
    events.ToolCard: "session_id run_id activity_id part last_part card",
    events.ClientToolCall: "session_id run_id call_id task_id subagent_id name arguments timeout_ms",
    events.ClientToolCancel: "session_id run_id call_id task_id subagent_id reason",
    ResultFrame: "protocol version type instance_id seq id result",
    ErrorFrame: "protocol version type instance_id seq id error",
    EventFrame: "protocol version type instance_id seq event data",
}


@pytest.mark.parametrize("kind", KEYS, ids=lambda kind: kind.__name__)
def test_key_sets(kind: type[results.Output]) -> None:
    """D73: exactly these keys; one with a question mark may be absent."""
    fields = msgspec.structs.fields(kind)
    absent = {field.encode_name for field in fields if field.default is msgspec.UNSET}
    assert {name + "?" * (name in absent) for name in kind.__struct_encode_fields__} == set(KEYS[kind].split())


DESCRIPTORS: list[tuple[results.Output, dict[str, object]]] = [
    (
        results.DiscoverDescriptor(),
        {
            "consistency": "provisional_until_complete",
            "ordering": "directory",
            "step_directory_entries": 256,
            "step_lines": 10000,
            "step_bytes": 8388608,
            "record_bytes": 8388608,
            "step_ms": 2000,
            "page_entries": 100,
            "page_bytes": 32768,
        },
    ),
    (
        results.RefreshDescriptor(),
        {"providers_per_request": 1, "cache_bytes": 1048576, "models": 2048, "preferences": "unchanged"},
    ),
    (
        results.CardsDescriptor(),
        {
            "schema_version": 1,
            "event": "tool.card",
            "history_field": "tool_card",
            "snapshot_parts": 1,
            "card_bytes": 16384,
            "core_bytes": 2048,
            "cards_per_run": 4096,
            "snapshots_per_run": 16384,
            "run_snapshot_bytes": 33554432,
            "retained_card_bytes": 8388608,
            "blocks_per_card": 16,
            "rows_per_block": 32,
            "diff_lines_per_block": 128,
            "children_per_block": 32,
            "children_depth": 8,
            "string_bytes": 1024,
            "title_bytes": 256,
            "metadata_bytes": 512,
            "preview_bytes": 4096,
        },
    ),
    (
        results.ClientToolsDescriptor(tools=("client__t",)),
        {
            "schema_version": 1,
            "registration": "startup_only",
            "tools": ["client__t"],
            "limits": json.loads(compact(results.ClientTools(tools=())))["limits"],
        },
    ),
]


@pytest.mark.parametrize(("descriptor", "expected"), DESCRIPTORS, ids=lambda value: type(value).__name__)
def test_descriptors(descriptor: results.Output, expected: dict[str, object]) -> None:
    """EXT 8.1, EXT 8.2, TC-38, CT-24 to CT-26."""
    assert json.loads(compact(descriptor)) == expected


def status() -> results.Status:
    return results.Status(
        context_id=None,
        model=None,
        provider=None,
        readiness="initializing",
        run_id=None,
        session_id=None,
        state="starting",
    )


def test_a_status_always_has_its_selection() -> None:
    """BASE-OP-86: null, not absent."""
    assert json.loads(compact(status()))["selection"] is None


def test_base_only_initialization_has_three_keys() -> None:
    """NEG-32, BASE-OP-81: neither ``extensions`` nor ``client_tools`` is there, not even empty."""
    plain = results.Initialized(capabilities=CAPABILITIES, limits=published(), status=status())
    assert list(json.loads(compact(plain))) == ["capabilities", "limits", "status"]


def test_initialization_with_everything() -> None:
    tools = ("client__t",)
    full = results.Initialized(
        capabilities=CAPABILITIES,
        client_tools=results.ClientTools(tools=tools),
        extensions=results.Extensions(
            client_tools=results.ClientToolsDescriptor(tools=tools),
            model_refresh=results.RefreshDescriptor(),
            session_discover=results.DiscoverDescriptor(),
            tool_cards=results.CardsDescriptor(),
        ),
        limits=published(),
        status=status(),
    )
    written = json.loads(encode(response(INSTANCE, 1, "r1", full)))["result"]
    assert list(written) == ["capabilities", "client_tools", "extensions", "limits", "status"]
    assert list(written["extensions"]) == ["client.tools", "model.refresh", "session.discover", "tool.cards"]


def test_a_history_entry_has_a_card_only_when_given_one() -> None:
    """TC-234, TC-235, TC-239: absent and null are two things."""
    entry = results.HistoryEntry(kind="activity", last_part=True, message_id="m", part=0, partial=False, text="x")
    assert "tool_card" not in json.loads(compact(entry))
    assert json.loads(compact(msgspec.structs.replace(entry, tool_card=None)))["tool_card"] is None


def test_response() -> None:
    line = encode(response(INSTANCE, 1, "r1", results.Stopping()))
    assert line == (
        b'{"id":"r1","instance_id":"0b6e1f6c-52c1-4f0e-9a77-3d1c8f0e2a41","protocol":"magi-code.local-agent",'
        b'"result":{"state":"stopping"},"seq":1,"type":"response","version":1}\n'
    )


@pytest.mark.parametrize(("id_", "written"), [(None, b"null"), ("r1", b'"r1"')])
def test_error(id_: str | None, written: bytes) -> None:
    """ENV-19, ENV-22."""
    assert encode(error(INSTANCE, 7, id_, Code.BUSY)) == (
        b'{"error":{"code":"busy"},"id":' + written + b',"instance_id":"0b6e1f6c-52c1-4f0e-9a77-3d1c8f0e2a41",'
        b'"protocol":"magi-code.local-agent","seq":7,"type":"response","version":1}\n'
    )


def test_event() -> None:
    data = events.MessageDelta(message_id="m", part=0, run_id="r", session_id="s", text="é\n")
    assert (
        encode(event(INSTANCE, 2, data))
        == (
            '{"data":{"message_id":"m","part":0,"run_id":"r","session_id":"s","text":"é\\n"},"event":"message.delta",'
            '"instance_id":"0b6e1f6c-52c1-4f0e-9a77-3d1c8f0e2a41","protocol":"magi-code.local-agent","seq":2,'
            '"type":"event","version":1}\n'
        ).encode()
    )


def test_the_name_of_an_event_is_that_of_its_data() -> None:
    for name, kind in EVENTS.items():
        built = kind(**dict.fromkeys(kind.__struct_fields__))
        assert event(INSTANCE, 1, built).event == name
    with pytest.raises(KeyError):
        event(INSTANCE, 1, results.Stopping())


# The recorded conversations


def test_there_is_something_to_compare() -> None:
    counts = {name: (len(lines(name, "client")), len(lines(name, "backend"))) for name in CAPTURES}
    assert counts == {"plain": (5, 10), "tools": (9, 69), "discovery": (17, 32)}


@pytest.mark.parametrize("capture", CAPTURES)
def test_captured_frames_are_written_back_byte_by_byte(capture: str) -> None:
    """D70: through plain dicts, whose keys ``encode`` sorts."""
    for line in lines(capture, "backend"):
        scrambled = dict(sorted(json.loads(line).items(), reverse=True))
        assert encode(scrambled) == line


@pytest.mark.parametrize("capture", CAPTURES)
def test_captured_frames_fit_the_structs(capture: str) -> None:
    """Every key has its field and every enum value its literal: what the structs write is what was read."""
    methods = {frame["id"]: frame["method"] for frame in frames(capture, "client")}
    for line, frame in zip(lines(capture, "backend"), frames(capture, "backend"), strict=True):
        assert encode(rebuilt(frame, methods)) == line


def rebuilt(frame: dict[str, Any], methods: dict[str, str]) -> Frame:
    if frame["type"] == "event":
        return event(frame["instance_id"], frame["seq"], msgspec.convert(frame["data"], EVENTS[frame["event"]]))
    if "error" in frame:
        return error(frame["instance_id"], frame["seq"], frame["id"], Code(frame["error"]["code"]))
    result = msgspec.convert(frame["result"], RESULTS[methods[frame["id"]]])
    return response(frame["instance_id"], frame["seq"], frame["id"], result)


@pytest.mark.parametrize("capture", CAPTURES)
def test_captured_requests_parse_and_their_params_fit(capture: str) -> None:
    for line, frame in zip(lines(capture, "client"), frames(capture, "client"), strict=True):
        request = parse(line[:-1])
        assert (request.id, request.method, request.params) == (frame["id"], frame["method"], frame["params"])
        assert type(params_of(request.method, request)) is METHODS[request.method]


def test_a_client_may_read_by_the_structs() -> None:
    """Unknown result fields are ignored, an unknown enum value is not."""
    known = {"state": "stopping", "new": 1}
    assert msgspec.convert(known, results.Stopping) == results.Stopping()
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"state": "lingering"}, results.Stopping)
