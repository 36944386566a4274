"""Params of every method: what is allowed, and one example of each way to be wrong (base 19.1, EXT 7, CT 7)."""

import json
from typing import Any

import pytest
from msgspec import UNSET

from localagent.protocol import params as p
from localagent.protocol.codec import Request, checked, params_of, parse
from localagent.protocol.errors import InvalidParams
from localagent.protocol.messages import METHODS

RUN = "0b6e1f6c-52c1-4f0e-9a77-3d1c8f0e2a41"
SELECTION = {"session_id": "s", "selection_revision": "sr", "catalog_revision": "cr", "provider": "p", "model": "m"}
RESULT = {
    "instance_id": RUN,
    "session_id": "s",
    "run_id": RUN,
    "call_id": RUN,
    "task_id": None,
    "subagent_id": None,
    "status": "success",
    "text": "",
}
VALID: dict[str, dict[str, Any]] = {
    "initialize": {"required_capabilities": ["status"]},
    "status": {},
    "shutdown": {},
    "session.create": {},
    "session.open": {"session_id": "s"},
    "session.list": {"revision": "r", "cursor": "c", "limit": 1},
    "session.discover": {"revision": None, "cursor": None, "limit": 100},
    "model.catalog": {"limit": 7},
    "model.catalog.status": {},
    "model.refresh": {"provider": "mock"},
    "operation.cancel": {"request_id": "r1"},
    "selection.set": SELECTION,
    "history.page": {"session_id": "s", "revision": "r", "cursor": "c"},
    "turn.start": {"session_id": "s", "prompt": "hello"},
    "turn.cancel": {"session_id": "s", "run_id": RUN},
    "approval.answer": {"session_id": "s", "run_id": RUN, "approval_id": RUN, "allow": True},
    "client.tool.result": RESULT,
}
OPTIONAL = {"revision", "cursor", "limit"}
PAGES = ("session.list", "session.discover", "model.catalog", "model.catalog.status")
WRONG_TYPES: list[object] = [1, 1.0, True, None, [], {}, ["s"], {"s": "s"}]


def written(method: str, params: str) -> Request:
    """Put params, as JSON text, through a real line."""
    line = '{"protocol":"magi-code.local-agent","version":1,"id":"r1","method":"%s","params":%s}'
    return parse((line % (method, params)).encode())


def given(method: str, params: object) -> Request:
    return written(method, json.dumps(params))


def accepted(method: str, params: object) -> Any:
    return params_of(method, given(method, params))


def refused(method: str, params: object) -> bool:
    with pytest.raises(InvalidParams):
        params_of(method, given(method, params))
    return True


def keys(method: str) -> list[str]:
    """Return the keys that must be there: base 19.1 marks all others *opt*."""
    optional = OPTIONAL - {"revision"} if method == "history.page" else OPTIONAL
    return [key for key in VALID[method] if key not in optional]


METHOD_KEYS = [(method, key) for method in VALID for key in keys(method)]


def test_every_method_has_its_example() -> None:
    assert VALID.keys() == METHODS.keys()


@pytest.mark.parametrize("method", VALID)
def test_valid(method: str) -> None:
    params = accepted(method, VALID[method])
    assert type(params) is METHODS[method]
    for key, value in VALID[method].items():
        assert getattr(params, key) == (tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize("method", VALID)
@pytest.mark.parametrize("params", [None, [], [[]], 1, "x", True, [{}]], ids=repr)
def test_params_must_be_an_object(method: str, params: object) -> None:
    """D15, D17, BASE-OP-26."""
    assert refused(method, params)


@pytest.mark.parametrize("method", VALID)
def test_values_in_an_array_are_no_object(method: str) -> None:
    """D17."""
    assert refused(method, list(VALID[method].values()))


@pytest.mark.parametrize("method", VALID)
@pytest.mark.parametrize("key", ["extra", "", "Session_id", "instance"])
def test_unknown_key(method: str, key: str) -> None:
    """D13."""
    assert refused(method, {**VALID[method], key: None})


@pytest.mark.parametrize(("method", "key"), METHOD_KEYS)
def test_missing_key(method: str, key: str) -> None:
    assert refused(method, {name: value for name, value in VALID[method].items() if name != key})


@pytest.mark.parametrize("method", [method for method in VALID if VALID[method]])
def test_duplicate_key(method: str) -> None:
    """D13."""
    once = json.dumps(VALID[method])
    member = json.dumps(dict([next(iter(VALID[method].items()))]))
    with pytest.raises(InvalidParams, match="twice"):
        params_of(method, written(method, member[:-1] + "," + once[1:]))


@pytest.mark.parametrize(("method", "key"), [pair for pair in METHOD_KEYS if isinstance(VALID[pair[0]][pair[1]], str)])
@pytest.mark.parametrize("value", WRONG_TYPES, ids=repr)
def test_wrong_type_for_a_string(method: str, key: str, value: object) -> None:
    assert refused(method, {**VALID[method], key: value})


@pytest.mark.parametrize(
    ("method", "key"),
    [(m, k) for m, k in METHOD_KEYS if k in {"run_id", "approval_id", "request_id", "instance_id", "call_id"}]
    + [("history.page", "revision"), ("selection.set", "selection_revision"), ("selection.set", "catalog_revision")],
)
@pytest.mark.parametrize(
    ("value", "fits"),
    [("a.b-c_D", True), ("x" * 64, True), ("x" * 65, False), ("", False), ("a b", False), ("é", False), ("a\n", False)],
)
def test_ids_follow_the_grammar(method: str, key: str, value: str, fits: bool) -> None:
    """LIST-06, SEL-33, EXT-CANCEL-02, BASE-OP-162: a run need not look like one of ours."""
    params = {**VALID[method], key: value}
    assert getattr(accepted(method, params), key) == value if fits else refused(method, params)


@pytest.mark.parametrize("method", [method for method in VALID if "session_id" in VALID[method]])
@pytest.mark.parametrize(
    ("value", "fits"),
    [("a_B-9", True), ("x" * 64, True), ("x" * 65, False), ("", False), ("a.b", False), ("a/b", False)],
)
def test_session_ids_have_no_dot(method: str, value: str, fits: bool) -> None:
    """SESS-45, BASE-OP-95."""
    params = {**VALID[method], "session_id": value}
    assert accepted(method, params).session_id == value if fits else refused(method, params)


@pytest.mark.parametrize("method", PAGES)
@pytest.mark.parametrize(
    ("limit", "fits"), [(0, False), (1, True), (100, True), (101, False), (-1, False), (2**70, False)]
)
def test_limit(method: str, limit: int, fits: bool) -> None:
    """LIST-03."""
    assert accepted(method, {"limit": limit}).limit == limit if fits else refused(method, {"limit": limit})


@pytest.mark.parametrize("method", PAGES)
@pytest.mark.parametrize("limit", ["null", "1.0", "1e1", "100.0", "true", '"5"', "[]", "[5]", "{}"])
def test_limit_is_a_plain_integer(method: str, limit: str) -> None:
    """D16."""
    with pytest.raises(InvalidParams):
        params_of(method, written(method, f'{{"limit":{limit}}}'))


@pytest.mark.parametrize("method", PAGES)
def test_page_defaults(method: str) -> None:
    """LIST-02."""
    assert accepted(method, {}) == p.PageParams(revision=None, cursor=None, limit=100)


@pytest.mark.parametrize("method", PAGES)
@pytest.mark.parametrize(
    ("params", "fits"),
    [
        ({"revision": None, "cursor": None}, True),
        ({"cursor": None}, True),
        ({"revision": "r", "cursor": "c"}, True),
        ({"revision": "r"}, False),
        ({"cursor": "c"}, False),
        ({"revision": "r", "cursor": None}, False),
        ({"revision": None, "cursor": "c"}, False),
        ({"revision": "", "cursor": "c"}, False),
        ({"revision": "r", "cursor": "x" * 65}, False),
        ({"revision": "r", "cursor": "a/b"}, False),
        ({"revision": 1, "cursor": 1}, False),
    ],
)
def test_revision_and_cursor_come_together(method: str, params: dict[str, object], fits: bool) -> None:
    """LIST-04 to LIST-09."""
    assert accepted(method, params) if fits else refused(method, params)


@pytest.mark.parametrize(
    ("params", "fits"),
    [
        ({"session_id": "s", "revision": "r"}, True),
        ({"session_id": "s", "revision": "r", "cursor": None}, True),
        ({"session_id": "s", "revision": None}, False),
        ({"session_id": "s", "revision": ""}, False),
        ({"session_id": "s", "revision": "r", "cursor": ""}, False),
        ({"session_id": "s", "revision": "r", "cursor": 1}, False),
        ({"session_id": "s", "revision": "r", "limit": 1}, False),
    ],
)
def test_history_page(params: dict[str, object], fits: bool) -> None:
    """HIST-01, HIST-02, BASE-OP-107, BASE-OP-108."""
    assert accepted("history.page", params) if fits else refused("history.page", params)


@pytest.mark.parametrize(
    ("prompt", "fits"),
    [
        ("x" * 16_383, True),
        ("x" * 16_384, True),
        ("x" * 16_385, False),
        ("é" * 8_192, True),
        ("é" * 8_192 + "x", False),
        ("日" * 5_461 + "x", True),
        ("日" * 5_461 + "xx", False),
        ("😀" * 4_096, True),
        ("😀" * 4_097, False),
        ("\n" * 16_383 + "x", True),
        ("", False),
        (" \t\r\n", False),
        ("\u3000\u2028\x85", False),
        ("\x1c", True),
        ("\x00", True),
        ("#tree", True),
    ],
    ids=lambda value: value if isinstance(value, bool) else f"{value[:3]!r}x{len(value)}",
)
def test_prompt(prompt: str, fits: bool) -> None:
    """BOUND-06, BOUND-07, BASE-OP-151 to BASE-OP-153: bytes of the text, not of its escapes."""
    params = {"session_id": "s", "prompt": prompt}
    assert accepted("turn.start", params).prompt == prompt if fits else refused("turn.start", params)


@pytest.mark.parametrize("allow", [1, 0, "true", None])
def test_allow_is_a_boolean(allow: object) -> None:
    assert refused("approval.answer", {**VALID["approval.answer"], "allow": allow})


@pytest.mark.parametrize(
    ("method", "key"), [("selection.set", "provider"), ("selection.set", "model"), ("model.refresh", "provider")]
)
@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("a/b c:é", True),
        ("x" * 256, True),
        ("x" * 257, False),
        ("é" * 129, False),
        ("", False),
        ("a\n", False),
        ("\x9f", False),
    ],
)
def test_provider_and_model_names(method: str, key: str, name: str, fits: bool) -> None:
    """SEL-34, SEL-47, EXT-REFRESH-03."""
    params = {**VALID[method], key: name}
    assert getattr(accepted(method, params), key) == name if fits else refused(method, params)


@pytest.mark.parametrize(
    ("effort", "request_"),
    [
        ({"mode": "keep"}, p.KeepEffort()),
        ({"mode": "default"}, p.DefaultEffort()),
        ({"mode": "set", "value": "low"}, p.SetEffort(value="low")),
        ({"value": "medium", "mode": "set"}, p.SetEffort(value="medium")),
        ({"mode": "set", "value": "high"}, p.SetEffort(value="high")),
        ({"mode": "set", "value": "xhigh"}, p.SetEffort(value="xhigh")),
        ({"mode": "set", "value": "max"}, p.SetEffort(value="max")),
    ],
)
def test_effort_requests(effort: object, request_: p.EffortRequest) -> None:
    """SEL-36, SEL-38, SEL-39."""
    assert accepted("selection.set", {**SELECTION, "effort": effort}).effort == request_


def test_an_absent_effort_is_keep() -> None:
    """SEL-35."""
    assert accepted("selection.set", SELECTION).effort == p.KeepEffort()


@pytest.mark.parametrize(
    "effort",
    [
        None,
        "keep",
        [],
        ["keep"],
        {},
        {"mode": None},
        {"mode": "Keep"},
        {"mode": "none"},
        {"mode": 1},
        {"mode": "keep", "value": "low"},
        {"mode": "keep", "value": None},
        {"mode": "default", "value": "low"},
        {"mode": "set"},
        {"mode": "set", "value": None},
        {"mode": "set", "value": "default"},
        {"mode": "set", "value": "x_high"},
        {"mode": "set", "value": "HIGH"},
        {"mode": "set", "value": 1},
        {"mode": "set", "value": "low", "x": 1},
        {"value": "low"},
    ],
    ids=json.dumps,
)
def test_refused_effort_requests(effort: object) -> None:
    """SEL-40 to SEL-46, SEL-07."""
    assert refused("selection.set", {**SELECTION, "effort": effort})


def test_a_key_twice_inside_the_effort() -> None:
    """SEL-41: at any level."""
    params = json.dumps(SELECTION)[:-1] + ',"effort":{"mode":"keep","mode":"keep"}}'
    with pytest.raises(InvalidParams, match="twice"):
        params_of("selection.set", written("selection.set", params))


def test_an_absent_structured_is_not_null() -> None:
    """CT-94 to CT-96."""
    assert accepted("client.tool.result", RESULT).structured is UNSET
    assert accepted("client.tool.result", {**RESULT, "structured": None}).structured is None
    free = {"a": [1, 1.5, {"b": None}], "": "x"}
    assert accepted("client.tool.result", {**RESULT, "status": "error", "structured": free}).structured == free


@pytest.mark.parametrize(
    ("text", "structured", "fits"),
    [
        ("x" * 32_768, UNSET, True),
        ("x" * 32_769, UNSET, False),
        ("é" * 16_384, UNSET, True),
        ("é" * 16_384 + "x", UNSET, False),
        ("x" * 32_764, None, True),
        ("x" * 32_765, None, False),
        ("x" * 16_384, "y" * 16_382, True),
        ("x" * 16_384, "y" * 16_383, False),
        ("", {"a": ["é" * 16_379]}, True),
        ("x", {"a": ["é" * 16_379]}, False),
    ],
)
def test_text_and_structured_share_a_bound(text: str, structured: object, fits: bool) -> None:
    """CT-66, CT-OP-26: UTF-8 bytes of the text plus compact bytes of the value."""
    params = {**RESULT, "text": text} if structured is UNSET else {**RESULT, "text": text, "structured": structured}
    assert accepted("client.tool.result", params).text == text if fits else refused("client.tool.result", params)


@pytest.mark.parametrize("key", ["task_id", "subagent_id"])
@pytest.mark.parametrize(
    ("value", "fits"),
    [
        (None, True),
        ("task 3/b:~", True),
        ("x" * 1024, True),
        ("x" * 1025, False),
        ("", False),
        ("é", False),
        ("\n", False),
        (1, False),
    ],
)
def test_task_and_subagent_ids_are_only_echoed(key: str, value: object, fits: bool) -> None:
    """CT-OP-22: opaque printable ASCII, not bound by the ID grammar."""
    params = {**RESULT, key: value}
    assert (
        getattr(accepted("client.tool.result", params), key) == value if fits else refused("client.tool.result", params)
    )


@pytest.mark.parametrize("status", ["Success", "", "cancelled"])
def test_status_of_a_result(status: str) -> None:
    """CT-92."""
    assert refused("client.tool.result", {**RESULT, "status": status})


def test_checked_returns_the_struct_that_was_asked_for() -> None:
    request = given("turn.start", VALID["turn.start"])
    assert checked(p.TurnStartParams, request) == p.TurnStartParams(session_id="s", prompt="hello")


def test_params_of_an_unknown_method_are_the_callers_mistake() -> None:
    with pytest.raises(KeyError):
        params_of("no.such", given("no.such", {}))


@pytest.mark.parametrize("kind", p.Params.__subclasses__(), ids=lambda kind: kind.__name__)
def test_params_are_closed_and_immutable(kind: type[p.Params]) -> None:
    assert kind.__struct_config__.forbid_unknown_fields
    assert kind.__struct_config__.frozen


def test_params_cannot_be_changed_and_check_themselves_when_built() -> None:
    params = p.PageParams(limit=5)
    with pytest.raises(AttributeError):
        params.limit = 6  # type: ignore[misc]
    with pytest.raises(ValueError, match="come together"):
        p.PageParams(revision="r")
