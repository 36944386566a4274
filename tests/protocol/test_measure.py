"""How sizes and depths are measured."""

from typing import Any

import pytest

from localagent.protocol.measure import compact, compact_bytes, depth, is_finite, utf8_bytes


@pytest.mark.parametrize(
    ("text", "size"), [("", 0), ("ab", 2), ("é", 2), ("日", 3), ("😀", 4), ("\ud800", 3), ('"', 1)]
)
def test_utf8_bytes(text: str, size: int) -> None:
    assert utf8_bytes(text) == size


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": {"d": [], "c": None}}, '{"a":{"c":null,"d":[]},"b":1}'),
        ([1, 1.0, -0.0, 1e22, True], "[1,1.0,-0.0,1e22,true]"),
        ("é日😀\x7f\u2028/", '"é日😀\x7f\u2028/"'),
        ('"\\\b\f\n\r\t\x00\x1b', '"\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001b"'),
        (2**70, "1180591620717411303424"),
    ],
)
def test_compact(value: Any, text: str) -> None:
    """CT-OP-09: only mandatory escapes, a fraction stays a fraction, free objects by key (D70)."""
    assert compact(value) == text.encode()
    assert compact_bytes(value) == len(text.encode())


@pytest.mark.parametrize(
    ("value", "levels"),
    [(1, 0), ("[[", 0), (None, 0), ({}, 1), ([], 1), ((), 1), ({"a": [1, {}]}, 3), ([1, [2], [[3], {}]], 3)],
)
def test_depth(value: Any, levels: int) -> None:
    assert depth(value) == levels


def test_depth_does_not_recurse() -> None:
    value: list[Any] = []
    for _ in range(5_000):
        value = [value]
    assert depth(value) == 5_001
    assert is_finite(value)


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        ({"a": [1.5, "NaN", None, True]}, True),
        (float("nan"), False),
        ({"a": [{"b": float("inf")}]}, False),
        ([(float("-inf"),)], False),
    ],
)
def test_is_finite(value: Any, verdict: bool) -> None:
    assert is_finite(value) is verdict
