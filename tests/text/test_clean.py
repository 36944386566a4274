"""CRED-10, whole and in pieces, and what is no text at all."""

from itertools import combinations, pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.text import Cleaner, clean, scrub
from tests.kit import reference_redactor as reference

TABLE = [
    # CSI sequences
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b[1;38;5;200mx", "x"),
    ("a\x1b[2Kb", "ab"),
    ("\x1b[@at the first final byte", "at the first final byte"),
    ("\x1b[0~at the last one", "at the last one"),
    ("\x1b[?25lx", "x"),
    ("\x1b[3\n1mx", "x"),
    ("\x1b[\u00e9\x1b[mx", "mx"),  # up to a final byte, whatever stands between: here the second bracket
    # string sequences
    ("\x1b]0;title\x07x", "x"),
    ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x1bPq#0;2\x1b\\x", "x"),
    ("\x1b^private\x07x", "x"),
    ("\x1b_app\nlication\x1b\\x", "x"),
    ("\x1bXstart\x1b[31m of\x07x", "x"),
    # any other ESC takes the character after it along
    ("\x1bMx", "x"),
    ("\x1b7x\x1b8", "x"),
    ("\x1b\nx", "x"),
    ("\x1b\u00e9x", "x"),
    ("\x1b\x1b[31mx", "[31mx"),
    ("x\x1b", "x"),
    ("\x1b\x1b", ""),
    # a sequence without its end is none
    ("a\x1b[31", "a31"),
    ("a\x1b]0;title", "a0;title"),
    ("a\x1b]0;\x1b[31mtitle", "a0;title"),
    ("a\x1b]b\x1bPc\x1b", "abc"),
    ("a\x1b]b\x1b\x1bPc", "abPc"),
    # CR
    ("a\r\nb", "a\nb"),
    ("a\rb", "a\nb"),
    ("a\r\r\nb", "a\n\nb"),
    ("a\n\rb", "a\n\nb"),
    ("a\r", "a\n"),
    ("a\r\x1b[K\nb", "a\nb"),  # sequences go first
    ("a\r\x00\nb", "a\n\nb"),  # other controls last
    # other controls
    ("a\tb\nc", "a\tb\nc"),
    ("\x00\x01\x07\x08\x0b\x0c\x0e\x1f\x7fx", "x"),
    ("\x80\x85\x9b31m\x9fx", "31mx"),
    # what is no control stays
    ("\u00a0\u00ad\u200d\u2028\ufeff", "\u00a0\u00ad\u200d\u2028\ufeff"),
    ("e\u0301 \U0001f469\u200d\U0001f4bb", "e\u0301 \U0001f469\u200d\U0001f4bb"),
    ("", ""),
]
ALPHABET = ["\x1b", "\x1b[", "\x1b]", "\x1bP", "[", "]", "\\", "\x07", "\r", "\n", "\r\n", "\x00", "\x9b"]
ALPHABET += ["m", "3", ";", "a", "\t", "\u00e9", "\U0001f600"]


def cleaned(pieces: list[str]) -> str:
    cleaner = Cleaner()
    return "".join([*map(cleaner.feed, pieces), cleaner.finish()])


def pieces(text: str, places: list[int]) -> list[str]:
    return [text[begin:end] for begin, end in pairwise([0, *places, len(text)])]


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_table(text: str, expected: str) -> None:
    assert clean(text) == expected
    assert reference.clean(text) == expected


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_every_cut_and_every_pair_of_cuts(text: str, expected: str) -> None:
    places = range(len(text) + 1)
    for cut in [[place] for place in places] + [list(pair) for pair in combinations(places, 2)]:
        assert cleaned(pieces(text, cut)) == expected, cut


def check(seed: int, count: int) -> None:
    draw = Random(seed)
    for _ in range(count):
        text = "".join(draw.choices(ALPHABET, k=draw.randint(1, 16)))
        expected = reference.clean(text)
        assert clean(text) == expected, text
        places = sorted(draw.choices(range(len(text) + 1), k=draw.randint(0, 5)))
        assert cleaned(pieces(text, places)) == expected, (text, places)


def test_ten_thousand_texts_cut_at_random() -> None:
    check(seed=1, count=10_000)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(2, 12))
def test_a_million_texts_cut_at_random(seed: int) -> None:
    check(seed, count=100_000)


@given(st.lists(st.text(max_size=8) | st.sampled_from(ALPHABET), max_size=12))
def test_any_pieces(texts: list[str]) -> None:
    text = "".join(texts)
    assert cleaned(texts) == clean(text) == reference.clean(text)


@given(st.text())
def test_what_is_clean_holds_no_controls(text: str) -> None:
    assert not {*map(chr, [*range(9), *range(11, 32), *range(127, 160)])} & set(clean(text))


def test_only_what_may_belong_to_a_sequence_is_held() -> None:
    cleaner = Cleaner()
    assert cleaner.feed("plain") == "plain"
    assert cleaner.feed("a\r") == "a"
    assert cleaner.feed("") == ""
    assert cleaner.feed("b\x1b") == "\nb"
    assert cleaner.feed("[3") == ""
    assert cleaner.feed("1mc") == "c"
    assert cleaner.feed("\x1b]x") == ""
    assert cleaner.feed("y\x1b") == ""
    assert cleaner.feed("\\d\r") == "d"
    assert cleaner.finish() == "\n"
    assert cleaner.finish() == ""


@pytest.mark.timeout(10)
@pytest.mark.parametrize("part", ["\x1b]", "\x1b[1\u00e9", "\x1b", "\x1b]\x1b", "\x1bPx\x1b[", "\r", "\x1b[m", "a\x00"])
def test_time_is_linear(part: str) -> None:
    """In one piece and in small ones; what is not linear does not end."""
    text = part * (2**17 // len(part))
    expected = clean(text)
    assert cleaned([text[begin : begin + 40] for begin in range(0, len(text), 40)]) == expected


def test_long_text_is_cleaned_in_windows() -> None:
    text = "x" * 65_535 + "\x1b[31m" + "y" * 65_536 + "\r\n" + "z" * 65_536
    assert clean(text) == "x" * 65_535 + "y" * 65_536 + "\n" + "z" * 65_536


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("\u00e9\U0001f600", "\u00e9\U0001f600"),
        ("a\ud83d", "a\ufffd"),
        ("\ude00b", "\ufffdb"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83dx", "\ufffd\ufffdx"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ufeffa\ud800", "\ufeffa\ufffd"),
        ("x" * 70_000 + "\udfff", "x" * 70_000 + "\ufffd"),
    ],
)
def test_scrub(text: str, expected: str) -> None:
    assert scrub(text) == expected
    scrub(text).encode()
