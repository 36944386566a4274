"""Parts within a bound, cut at scalar boundaries."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.text import fit, live_parts, parts
from localagent.text.cut import utf8


def escaped(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")) - 2


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("", [0]),
        ("a", [1]),
        ("a" * 3_999, [3_999]),
        ("a" * 4_000, [4_000]),
        ("a" * 4_001, [4_000, 1]),
        ("a" * 12_000, [4_000] * 3),
        ("\u00e9" * 2_000, [2_000]),
        ("\u00e9" * 2_001, [2_000, 1]),
        ("a" * 3_999 + "\u00e9", [3_999, 1]),
        ("a" * 3_998 + "\u00e9", [3_999]),
        ("\u5bc6" * 1_334, [1_333, 1]),
        ("a" * 3_997 + "\u5bc6", [3_998]),
        ("a" * 3_998 + "\u5bc6", [3_998, 1]),
        ("\U0001f600" * 1_000, [1_000]),
        ("\U0001f600" * 1_001, [1_000, 1]),
        ("a" * 3_997 + "\U0001f600", [3_997, 1]),
        ("e\u0301" * 1_334, [2_667, 1]),  # an accent may be parted from its letter: both are scalars
        ("\ud800" * 1_334, [1_333, 1]),
    ],
)
def test_parts_of_four_thousand_bytes(text: str, lengths: list[int]) -> None:
    assert [len(part) for part in live_parts(text)] == lengths
    assert "".join(live_parts(text)) == text


@given(st.text(), st.integers(4, 40))
def test_parts_are_as_long_as_they_can_be(text: str, most: int) -> None:
    cut = parts(text, most)
    assert "".join(cut) == text
    assert all(len(part.encode()) <= most for part in cut)
    assert all(len((part + after[0]).encode()) > most for part, after in pairwise(cut))


@given(st.text(st.characters(codec="utf-8") | st.sampled_from('"\\\n\x00\x1f'), max_size=80), st.integers(6, 40))
def test_another_cost(text: str, most: int) -> None:
    cut = parts(text, most, escaped)
    assert "".join(cut) == text
    assert all(escaped(part) <= most for part in cut)
    assert all(escaped(part + after[0]) > most for part, after in pairwise(cut))


def test_fit_begins_anywhere() -> None:
    text = "ab\u00e9\U0001f600c"
    assert [fit(text, begin, 4) for begin in range(6)] == [3, 3, 3, 4, 5, 5]


def test_nothing_fits() -> None:
    assert fit("\U0001f600", 0, 3) == 0
    with pytest.raises(ValueError, match="fits"):
        parts("a\U0001f600", 3)


@pytest.mark.parametrize("character", ["a", "\u00e9", "\u5bc6", "\U0001f600"])
def test_the_work_is_linear(character: str) -> None:
    """No more than nine times the text is measured, whatever its length."""
    measured = 0

    def cost(text: str) -> int:
        nonlocal measured
        measured += len(text)
        return utf8(text)

    text = character * 1_000_000
    assert "".join(parts(text, 4_000, cost)) == text
    assert measured <= 9 * len(text)
