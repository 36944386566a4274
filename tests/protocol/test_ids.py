"""The grammars, at their edges."""

import sys
import unicodedata

import pytest

from localagent.protocol import ids
from localagent.protocol.names import CAPABILITIES, CLIENT_TOOL_RESULT, EXTENSIONS, NEGOTIATED, SUPPORTED, advertised

UUID = "0b6e1f6c-52c1-4f0e-9a77-3d1c8f0e2a41"


@pytest.mark.parametrize("text", ["a", "A.b_c-9", ".", "-", "_", "x" * 64, UUID])
def test_is_id(text: str) -> None:
    assert ids.is_id(text)


@pytest.mark.parametrize("text", ["", "x" * 65, "a b", "a\n", "\na", "é", "１", "a/b", "a:b", "a\x00", "a,b"])
def test_is_no_id(text: str) -> None:
    assert not ids.is_id(text)


@pytest.mark.parametrize(("text", "verdict"), [("a_B-9", True), ("x" * 64, True), ("x" * 65, False), ("", False)])
def test_is_session_id(text: str, verdict: bool) -> None:
    assert ids.is_session_id(text) is verdict


def test_a_session_id_has_no_dot() -> None:
    """SESS-45."""
    assert ids.is_id("a.b")
    assert not ids.is_session_id("a.b")


@pytest.mark.parametrize("text", [UUID, UUID.upper()])
def test_is_uuid(text: str) -> None:
    assert ids.is_uuid(text)


@pytest.mark.parametrize("text", ["", UUID[:-1], UUID + "0", UUID.replace("-", ""), "{" + UUID + "}", UUID[:-1] + "g"])
def test_is_no_uuid(text: str) -> None:
    assert not ids.is_uuid(text)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("client__a", True),
        ("client__" + "x" * 56, True),
        ("client__" + "x" * 57, False),
        ("client__", False),
        ("client_a", False),
        ("Client__a", False),
        ("client__a-b", False),
        ("client__a.b", False),
        ("client__é", False),
        ("client__A_9", True),
    ],
)
def test_is_client_tool_name(text: str, verdict: bool) -> None:
    """CT-33."""
    assert ids.is_client_tool_name(text) is verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("m", True),
        ("provider/model:tag 1", True),
        ("x" * 256, True),
        ("x" * 257, False),
        ("é" * 128, True),
        ("é" * 128 + "x", False),
        ("", False),
        ("a\nb", False),
        ("a\x7f", False),
        ("a\x85", False),
    ],
)
def test_is_safe_name(text: str, verdict: bool) -> None:
    """SEL-34."""
    assert ids.is_safe_name(text) is verdict


def test_controls_are_the_category_cc() -> None:
    """CT-OP-08, over all of Unicode."""
    controls = {chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Cc"}
    assert {character for character in map(chr, range(sys.maxunicode + 1)) if ids.has_control(character)} == controls


def test_blank_is_unicode_white_space() -> None:
    """BASE-OP-152, over all of Unicode: the 25 code points of PropList.txt."""
    ranges = [(0x9, 0xD), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)]
    ranges += [(0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000)]
    white_space = {code for first, last in ranges for code in range(first, last + 1)}
    assert len(white_space) == 25
    assert {code for code in range(sys.maxunicode + 1) if ids.is_blank(chr(code))} == white_space


@pytest.mark.parametrize(("text", "verdict"), [("", True), (" \t\r\n\u3000", True), (" x ", False), ("\x1c", False)])
def test_is_blank(text: str, verdict: bool) -> None:
    assert ids.is_blank(text) is verdict


def test_the_sixteen_names() -> None:
    """NEG-01, NEG-04: in order, all of the ID grammar."""
    assert " ".join(CAPABILITIES) == (
        "initialize status shutdown session.create session.open session.list session.discover model.catalog "
        "model.catalog.status model.refresh operation.cancel selection.set history.page turn.start turn.cancel "
        "approval.answer"
    )
    assert len(CAPABILITIES) == 16
    assert NEGOTIATED.issubset(CAPABILITIES)
    assert SUPPORTED.symmetric_difference({*CAPABILITIES, "tool.cards", "client.tools"}) == set()
    assert all(map(ids.is_id, (*SUPPORTED, CLIENT_TOOL_RESULT)))


@pytest.mark.parametrize(
    ("required", "added"),
    [
        ([], ()),
        (["status"], ()),
        (["tool.cards"], ("tool.cards",)),
        (["client.tools", "status"], ("client.tools",)),
        (["client.tools", "tool.cards", "tool.cards"], EXTENSIONS),
    ],
)
def test_advertised(required: list[str], added: tuple[str, ...]) -> None:
    """NEG-02, NEG-03, TC-20, TC-21, CT-21, CT-OP-04."""
    assert advertised(required) == CAPABILITIES + added
