"""Definitions, approvals, references (MCPC-01 to MCPC-08)."""

import hashlib
import hmac
import json
import os
from pathlib import Path
from typing import Any

import pytest

from localagent.protocol.codes import Code
from localagent.sessions.errors import StoreError
from localagent.settings import mcp
from localagent.settings.mcp import Definition, Http, OAuth, Stdio

from .kit import Place

KEY = bytes(range(32))
NOTES = {"command": "notes-mcp", "args": ["--root", "${HOME}/notes"], "env": {"LANG": "C.UTF-8"}}


def sign(source: str, name: str, definition: dict[str, Any], key: bytes = KEY) -> str:
    """The digest of MCPC-06, said a second time; ``definition`` is D as it is to be."""
    array = ["magi-code:mcp-approval:v1", source, name, definition]
    message = json.dumps(array, ensure_ascii=False, separators=(",", ":")).encode()
    return hmac.new(key, message, hashlib.sha256).hexdigest()


class Approved:
    """A definition in the root's file, and its approval."""

    def __init__(self, place: Place, name: str, definition: dict[str, Any], canonical: dict[str, Any]) -> None:
        self.place, self.name, self.canonical = place, name, canonical
        self.path = place.put(place.home / ".mcp.json", {"mcpServers": {name: definition}})
        put_key(place)
        self.approve(self.right)

    @property
    def right(self) -> dict[str, Any]:
        return {"version": 1, "digest": sign(str(self.path), self.name, self.canonical)}

    def approve(self, value: object) -> None:
        approvals = {str(self.path): {self.name: value}}
        self.place.settings({"capabilities": {"mcp_approvals": approvals}})


def put_key(place: Place, data: bytes = KEY, mode: int = 0o600) -> Path:
    path = place.put(place.home / "mcp-approval.key", data)
    path.chmod(mode)
    return path


def stdio(command: str = "x", **more: Any) -> dict[str, Any]:
    return {"type": "stdio", "command": command, **more, "enabled": False, "timeout": 30}


def names(place: Place, **environ: str) -> list[str]:
    return [each.name for each in place.admit(**environ).mcp_servers]


def test_the_digest_of_the_contract() -> None:
    body = Stdio(command="notes-mcp", args=("--root", "${HOME}/notes"), env={"LANG": "C.UTF-8"})
    definition = Definition("notes-index", "/home/ada/store/.mcp.json", body)
    assert mcp.digest(KEY, definition) == "96bcdab9b1c4a537a2ac4d659d4fabeca9f23ee3bd13cca2a03b65e2b42fd9f1"


@pytest.mark.parametrize(
    ("body", "canonical"),
    [
        (Stdio(command='é\x7f\x01\n/"\\\u2028😀'), stdio('é\x7f\x01\n/"\\\u2028😀')),
        (Stdio(command="x", args=("a",), timeout=5), stdio(args=["a"]) | {"timeout": 5}),
        (
            Stdio(command="x", env={"B": "1", "A": "2", "é": "", "Z": ""}),
            stdio(env={"A": "2", "B": "1", "Z": "", "é": ""}),
        ),
        (Http(url="https://h"), {"type": "http", "url": "https://h", "enabled": False, "timeout": 30}),
        (
            Http(url="u", headers={"b": "1", "a": "2"}, oauth=OAuth()),
            {"type": "http", "url": "u", "headers": {"a": "2", "b": "1"}, "oauth": {}, "enabled": False, "timeout": 30},
        ),
        (
            Http(url="u", oauth=OAuth(client_id="i", scopes=("s",), authorization_server="a")),
            {
                "type": "http",
                "url": "u",
                "oauth": {"client_id": "i", "scopes": ["s"], "authorization_server": "a"},
                "enabled": False,
                "timeout": 30,
            },
        ),
    ],
)
def test_other_digests_against_a_second_writer(body: Stdio | Http, canonical: dict[str, Any]) -> None:
    assert mcp.digest(KEY, Definition("n", "/p", body)) == sign("/p", "n", canonical)


def test_an_approved_server_is_admitted_with_its_references_replaced(place: Place) -> None:
    canonical = stdio("notes-mcp", args=NOTES["args"], env=NOTES["env"])
    approved = Approved(place, "notes-index", NOTES | {"enabled": True, "more": 1}, canonical)
    (server,) = place.admit().mcp_servers
    assert (server.command, server.args) == ("notes-mcp", ("--root", f"{place.user}/notes"))
    assert (server.env, server.timeout_s, server.source) == ({"LANG": "C.UTF-8"}, 30, str(approved.path))


NOT_APPROVALS: tuple[Any, ...] = (None, True, False, 1, "x", [], {}, {"version": 1})


def test_nothing_else_approves(place: Place) -> None:
    approved = Approved(place, "a", {"command": "x", "enabled": True}, stdio())
    assert names(place) == ["a"]
    right = approved.right
    for value in (
        *NOT_APPROVALS,
        *(right | {"version": other} for other in (2, "1", True, 1.0, None)),
        *(right | {"digest": other} for other in (None, right["digest"].upper(), right["digest"][:-1], "é" * 64)),
        {"version": 1, "digest": sign(str(approved.path), "a", stdio(), bytes(32))},
        {"version": 1, "digest": sign(str(approved.path), "a", stdio(args=[]))},
        {"version": 1, "digest": sign("/elsewhere", "a", stdio())},
    ):
        approved.approve(value)
        assert names(place) == [], value
    path = str(approved.path)
    others: tuple[dict[str, Any], ...] = ({}, {path: None}, {path: {}}, {"/elsewhere": {"a": right}})
    for approvals in others:
        place.settings({"capabilities": {"mcp_approvals": approvals}})
        assert names(place) == []


def test_a_project_cannot_approve_and_must_be_approved_itself(place: Place) -> None:
    approved = Approved(place, "a", {"command": "x"}, stdio())
    place.settings({})
    place.project({"capabilities": {"mcp_approvals": {str(approved.path): {"a": approved.right}}}})
    assert names(place) == []
    approved.approve(approved.right)
    path = place.put(place.cwd / ".mcp.json", {"mcpServers": {"a": {"command": "x"}}})  # replaces the global one
    assert names(place) == []
    right = {"version": 1, "digest": sign(str(path), "a", stdio())}
    place.settings({"capabilities": {"mcp_approvals": {str(path): {"a": right}}}})
    assert names(place) == ["a"]


def test_servers_come_by_name(place: Place) -> None:
    put_key(place)
    path = place.put(place.home / ".mcp.json", {"mcpServers": {each: {"command": "x"} for each in "bca"}})
    right = {each: {"version": 1, "digest": sign(str(path), each, stdio())} for each in "cab"}
    place.settings({"capabilities": {"mcp_approvals": {str(path): right}}})
    assert names(place) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("document", "key"),
    [
        ({"mcpServers": None}, "mcpServers"),
        ({"mcpServers": []}, "mcpServers"),
        ({"mcpServers": {"a": None}}, "mcpServers.a"),
        ({"mcpServers": {"a__b": {"command": "x"}}}, "mcpServers.a__b"),
        ({"mcpServers": {"a_": {"command": "x"}}}, "mcpServers.a_"),
        ({"mcpServers": {"": {"command": "x"}}}, "mcpServers[<hidden>]"),
        ({"mcpServers": {"a b": {"command": "x"}}}, 'mcpServers["a b"]'),
        ({"mcpServers": {"a\n": {"command": "x"}}}, "mcpServers[<hidden>]"),
        ({"mcpServers": {"a": {}}}, "mcpServers.a.command"),
        ({"mcpServers": {"a": {"url": "https://h"}}}, "mcpServers.a.command"),
        ({"mcpServers": {"a": {"type": "http"}}}, "mcpServers.a.url"),
        ({"mcpServers": {"a": {"type": "sse", "url": "https://h"}}}, "mcpServers.a.type"),
        ({"mcpServers": {"a": {"type": None, "command": "x"}}}, "mcpServers.a.type"),
        ({"mcpServers": {"a": {"type": ["stdio"], "command": "x"}}}, "mcpServers.a.type"),
        ({"mcpServers": {"a": {"command": 1}}}, "mcpServers.a.command"),
        ({"mcpServers": {"a": {"command": "x", "args": "y"}}}, "mcpServers.a.args"),
        ({"mcpServers": {"a": {"command": "x", "args": [1]}}}, "mcpServers.a.args[0]"),
        ({"mcpServers": {"a": {"command": "x", "env": {"A": 1}}}}, "mcpServers.a.env.A"),
        ({"mcpServers": {"a": {"command": "x", "timeout": "30"}}}, "mcpServers.a.timeout"),
        ({"mcpServers": {"a": {"command": "x", "timeout": 1.5}}}, "mcpServers.a.timeout"),
        ({"mcpServers": {"a": {"type": "http", "url": "u", "headers": []}}}, "mcpServers.a.headers"),
        ({"mcpServers": {"a": {"type": "http", "url": "u", "oauth": True}}}, "mcpServers.a.oauth"),
        ({"mcpServers": {"a": {"type": "http", "url": "u", "oauth": {"scopes": "s"}}}}, "mcpServers.a.oauth.scopes"),
    ],
)
def test_bad_definitions_are_refused_approved_or_not(place: Place, document: object, key: str) -> None:
    path = place.put(place.home / ".mcp.json", document)
    assert [(fault.file, fault.key) for fault in place.refused().faults] == [(str(path), key)]
    path.unlink()
    place.put(place.cwd / ".mcp.json", document)
    assert place.keys() == [key]


def http(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "http", "url": url, **more}


BAD_VALUES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"command": " "}, "command"),
    ({"command": "${UNSET}"}, "command"),
    ({"command": "x", "args": ["${}"]}, "args[0]"),
    ({"command": "x", "args": ["", "${1A}"]}, "args[1]"),
    ({"command": "x", "env": {"A": "${HOME"}}, "env.A"),
    ({"command": "x", "env": {"A": "${ghp_0123456789abcdefghijABCD}"}}, "env.A"),
    ({"command": "x", "timeout": 0}, "timeout"),
    ({"command": "x", "timeout": 301}, "timeout"),
    ({"command": "x", "timeout": -1}, "timeout"),
    (http("http://h/"), "url"),
    (http("http://127.0.0.1.example.org/"), "url"),
    (http("ftp://h/"), "url"),
    (http("h"), "url"),
    (http("https://"), "url"),
    (http("https://u:p@h/"), "url"),
    (http("https://[::1"), "url"),
    (http("https://h", headers={"a": "${UNSET}"}), "headers.a"),
    (http("https://h", headers={"Authorization": "x"}, oauth={}), "headers"),
)


@pytest.mark.parametrize(("definition", "key"), BAD_VALUES)
def test_bad_values_count_for_approved_servers_alone(place: Place, definition: dict[str, Any], key: str) -> None:
    body = dict(definition)
    timeout = body.pop("timeout", 30)
    order = ("type", "command", "url", "args", "env", "headers", "oauth")
    body = {"type": "stdio"} | body
    canonical = {name: body[name] for name in order if name in body} | {"enabled": False, "timeout": timeout}
    approved = Approved(place, "a", definition, canonical)
    assert place.keys() == [f"mcpServers.a.{key}"]
    assert "ghp_" not in str(place.refused())
    approved.approve(False)
    assert names(place) == []


@pytest.mark.parametrize(
    "url", ["https://h/x?y=1", "http://localhost:1/", "http://127.9.9.9/", "http://[::1]:1/", "${U}"]
)
def test_urls_that_are_fine(place: Place, url: str) -> None:
    definition = http(url, headers={"Authorization": "${T:-}"})
    Approved(place, "a", definition, definition | {"enabled": False, "timeout": 30})
    (server,) = place.admit(U="https://u").mcp_servers
    assert server.url == ("https://u" if url == "${U}" else url)
    assert "https://u" not in repr(server)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$A ${A} $ {A} $$", "$A 1 $ {A} $$"),
        ("${N:-d}${A:-d}${N:-}", "d1"),
        ("${N:-a:-b ${A}", "a:-b ${A"),
        ("${B}", "${A}"),
        ("${E}${E:-d}", ""),
        ("", ""),
        ("}${A}", "}1"),
    ],
)
def test_references_are_replaced_once(text: str, value: str) -> None:
    assert mcp.expanded(text, {"A": "1", "B": "${A}", "E": ""}) == value


@pytest.mark.parametrize("text", ["${N}", "${", "${}", "${A", "${A-d}", "${A:d}", "${ A}", "x${1}", "${A:-d"])
def test_bad_references(text: str) -> None:
    with pytest.raises(LookupError):
        mcp.expanded(text, {"A": "1"})


def test_the_key_is_made_when_some_file_names_a_server(place: Place) -> None:
    key = place.home / "mcp-approval.key"
    place.put(place.home / ".mcp.json", {"mcpServers": {}})
    place.admit()
    assert not key.exists()
    place.put(place.cwd / ".mcp.json", {"mcpServers": {"a": {"command": "x"}}})
    assert place.examine().faults == []
    assert not key.exists()
    place.admit()
    data = key.read_bytes()
    assert (len(data), key.stat().st_mode & 0o777) == (32, 0o600)
    place.admit()
    assert key.read_bytes() == data
    assert not (place.home / ".mcp-approval.key.lock").exists()


@pytest.mark.parametrize(
    ("data", "mode"), [(KEY[:31], 0o600), (KEY + b"\n", 0o600), (b"", 0o600), (KEY, 0o640), (KEY, 0o604)]
)
def test_a_bad_key_is_refused_and_left_alone(place: Place, data: bytes, mode: int) -> None:
    path = put_key(place, data, mode)
    place.put(place.home / ".mcp.json", {"mcpServers": {"a": {"command": "x"}}})
    assert [fault.file for fault in place.refused().faults] == [str(path)]
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (data, mode)


def test_a_key_of_somebody_else_is_refused(place: Place) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(put_key(place), 65534, 65534)
    place.put(place.home / ".mcp.json", {"mcpServers": {"a": {"command": "x"}}})
    assert "another owner" in str(place.refused())


def test_a_key_that_cannot_be_made_is_no_fault_of_the_configuration(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    place.put(place.home / ".mcp.json", {"mcpServers": {"a": {"command": "x"}}})
    monkeypatch.setattr("localagent.sessions.files.replace", full)
    with pytest.raises(StoreError) as caught:
        place.admit()
    assert caught.value.code is Code.STARTUP_FAILED
