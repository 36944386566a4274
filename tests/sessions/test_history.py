"""Cutting, paging, budgets (HIST, BOUND-08, BOUND-09, BOUND-16 to BOUND-19, D65)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS
from localagent.protocol.measure import compact, compact_bytes, utf8_bytes
from localagent.protocol.results import HistoryEntry, HistoryPage
from localagent.sessions.history import Cutter, History, cut
from localagent.sessions.projection import Entry, Projected
from tests.sessions.kit import refusal

REVISION = "0123456789abcdef0123456789abcdef"
LONGEST_ID = "s" * 64


def entry(text: str, number: int = 0, partial: bool = False) -> Entry:
    return Entry(f"m{number}", "assistant", text, partial)


def history(*texts: str, session_id: str = LONGEST_ID, complete: bool = True) -> History:
    entries = [entry(text, number) for number, text in enumerate(texts)]
    return Cutter(session_id).history(Projected(entries, len(entries), (), complete), REVISION)


def pages(of: History) -> list[HistoryPage]:
    result = [of.page(None)]
    while (cursor := result[-1].next_cursor) is not None:
        result.append(of.page(cursor))
    return result


def parts(of: History) -> list[HistoryEntry]:
    return [part for page in pages(of) for part in page.entries]


# cutting


@pytest.mark.parametrize(
    ("text", "raw", "escaped", "pieces"),
    [
        ("", 4, 9, [""]),
        ("abcd", 4, 9, ["abcd"]),
        ("abcde", 4, 9, ["abcd", "e"]),
        ("\u65e5\u672c", 4, 9, ["\u65e5", "\u672c"]),
        ("\u65e5\u672c", 6, 9, ["\u65e5\u672c"]),
        ("a\U0001f600b", 4, 9, ["a", "\U0001f600", "b"]),
        ('""""', 4, 8, ['""""']),
        ('""""', 4, 7, ['"""', '"']),
        ("\x01\x01", 4, 6, ["\x01", "\x01"]),
        ("ab\n\n", 9, 3, ["ab", "\n", "\n"]),
    ],
)
def test_cut(text: str, raw: int, escaped: int, pieces: list[str]) -> None:
    assert cut(text, raw, escaped) == pieces


@pytest.mark.parametrize(("raw", "escaped"), [(2, 9), (9, 1)])
def test_a_character_that_fits_no_part(raw: int, escaped: int) -> None:
    """HIST-20, BASE-OP-119: no bound of version 1 is so small."""
    assert refusal(lambda: cut("\u65e5" if raw == 2 else "\n", raw, escaped)) is Code.CONTENT_LIMIT


@given(st.text(alphabet='ab"\\\n\u65e5\U0001f600', max_size=60), st.integers(4, 20), st.integers(4, 20))
def test_pieces_are_as_large_as_both_bounds_allow(text: str, raw: int, escaped: int) -> None:
    pieces = cut(text, raw, escaped)
    assert "".join(pieces) == text
    for piece, following in zip(pieces, [*pieces[1:], ""], strict=True):
        assert utf8_bytes(piece) <= raw
        assert compact_bytes(piece) - 2 <= escaped
        if following:
            more = piece + following[0]
            assert utf8_bytes(more) > raw or compact_bytes(more) - 2 > escaped


@pytest.mark.parametrize("size", [16_383, 16_384, 16_385])
@pytest.mark.parametrize("character", ["x", "\u00e9", "\u65e5", "\U0001f600"])
def test_content_chunks(size: int, character: str) -> None:
    """BOUND-08: 16,384 raw bytes at most, and never a character in two."""
    width = len(character.encode())
    text = character * (size // width) + "y" * (size % width)
    shown = parts(history(text))
    assert "".join(part.text for part in shown) == text
    assert [part.part for part in shown] == list(range(len(shown)))
    assert [part.last_part for part in shown] == [False] * (len(shown) - 1) + [True]
    assert all(utf8_bytes(part.text) <= 16_384 for part in shown)
    assert len(shown) == (2 if size > 16_384 else 1)


@pytest.mark.parametrize("text", ['"' * 40_000, "\\\n" * 20_000, "x" * 40_000, "\u65e5" * 40_000])
def test_escaping_makes_parts_smaller(text: str) -> None:
    """BOUND-09, HIST-29: each part fits a page by itself; in the largest page not one more character would."""
    shown = pages(history(text))
    assert "".join(part.text for page in shown for part in page.entries) == text
    assert all(compact_bytes(page) <= LIMITS.history_page_bytes for page in shown)
    if '"' in text:
        assert max(compact_bytes(page) for page in shown) > LIMITS.history_page_bytes - 8


# pages


def test_an_empty_history_is_one_complete_page() -> None:
    """BASE-OP-111, D66."""
    assert history().page(None) == HistoryPage(
        complete=True, entries=(), next_cursor=None, revision=REVISION, session_id=LONGEST_ID
    )
    assert not history(complete=False).page(None).complete


@pytest.mark.parametrize(("count", "sizes"), [(99, [99]), (100, [100]), (101, [100, 1]), (250, [100, 100, 50])])
def test_at_most_100_entries(count: int, sizes: list[int]) -> None:
    shown = pages(history(*["x"] * count))
    assert [len(page.entries) for page in shown] == sizes
    assert [page.complete for page in shown] == [False] * (len(sizes) - 1) + [True]


@pytest.mark.parametrize("spare", [1, 0, -1])
def test_at_most_32768_bytes_of_result(spare: int) -> None:
    """BOUND-16, metadata included: at the bound, one byte below, and one above, where the page is cut."""
    filled = compact_bytes(history("x" * 10_000, "y" * 10_000, "").page(None))
    rest = "z" * (LIMITS.history_page_bytes - filled - spare)
    shown = pages(history("x" * 10_000, "y" * 10_000, rest))
    if spare < 0:
        assert [len(page.entries) for page in shown] == [2, 1]
    else:
        assert [compact_bytes(page) for page in shown] == [LIMITS.history_page_bytes - spare]


@given(st.lists(st.integers(0, 17_000), max_size=30), st.sampled_from(["x", '"', "\u65e5"]))
def test_pages_are_full_and_within_their_bounds(sizes: list[int], character: str) -> None:
    texts = [character * size for size in sizes]
    shown = pages(history(*texts))
    assert "".join(part.text for page in shown for part in page.entries) == "".join(texts)
    assert all(compact_bytes(page) <= LIMITS.history_page_bytes for page in shown)
    assert all(page.entries for page in shown) or not texts  # BASE-OP-120
    for page, following in pairwise(shown):
        more = (*page.entries, following.entries[0])
        wider = HistoryPage(
            complete=False, entries=more, next_cursor=page.next_cursor, revision=REVISION, session_id=LONGEST_ID
        )
        assert len(more) > 100 or compact_bytes(wider) > LIMITS.history_page_bytes


# cursors


def test_cursors_are_ids_and_give_the_same_page_again() -> None:
    of = history(*["x" * 3_000] * 60)
    cursors = [page.next_cursor for page in pages(of)[:-1]]
    assert all(cursor is not None and len(cursor) <= 64 and cursor.replace(".", "").isalnum() for cursor in cursors)
    assert len(set(cursors)) == len(cursors) > 2
    for cursor in reversed(cursors):
        assert of.page(cursor) == of.page(cursor)


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "00010",
        f"{REVISION}.00000",
        f"{REVISION}.00001",
        f"{REVISION}.00011",
        f"{REVISION}.0001\u0660",
        f"{REVISION}.+0010",
        f"{REVISION}.99999",
        f"{REVISION[::-1]}.00010",
        f"{REVISION}..00010",
        f"{REVISION}.",
    ],
)
def test_a_cursor_that_was_never_given_out_is_stale_and_spoils_nothing(cursor: str) -> None:
    """BASE-OP-109."""
    of = history(*["x" * 3_000] * 60)
    given_out = of.page(None).next_cursor
    assert given_out == f"{REVISION}.00010"
    assert refusal(lambda: of.page(cursor)) is Code.STALE_REVISION
    assert of.page(given_out).entries[0].message_id == "m10"


# budgets


@pytest.mark.parametrize(("count", "within"), [(9_999, True), (10_000, True), (10_001, False)])
def test_at_most_10000_parts(count: int, within: bool) -> None:
    texts = ["x"] * (count - 2) + ["y" * 16_385]
    if within:
        assert len(parts(history(*texts))) == count
    else:
        assert refusal(lambda: history(*texts)) is Code.HISTORY_LIMIT


@pytest.mark.parametrize("spare", [1, 0, -1])
@pytest.mark.parametrize("in_tail", [False, True])
def test_at_most_8_mib_serialized(spare: int, in_tail: bool) -> None:
    """BOUND-18: the entries of all pages, as one JSON array."""
    texts = ["x" * 16_384] * 509
    size = len(compact(tuple(parts(history(*texts, "")))))
    assert LIMITS.history_snapshot_bytes - size < 16_384
    entries = [entry(text, number) for number, text in enumerate(texts)]
    last = (entry("x" * (LIMITS.history_snapshot_bytes - size - spare), 509),)
    settled, tail = (entries, last) if in_tail else ([*entries, *last], ())
    projected = Projected(settled, len(settled), tail, True)
    if spare < 0:
        cutter = Cutter("s")
        for _ in range(2):
            assert refusal(lambda: cutter.history(projected, REVISION)) is Code.HISTORY_LIMIT
    else:
        shown = parts(Cutter("s").history(projected, REVISION))
        assert len(compact(tuple(shown))) == LIMITS.history_snapshot_bytes - spare


# snapshots are immutable


def test_a_history_does_not_change_when_its_session_grows() -> None:
    cutter = Cutter("s")
    settled = [entry("one", 1)]
    early = cutter.history(Projected(settled, 1, (entry("two", 2, partial=True),), False), REVISION)
    settled.extend([entry("two", 2), entry("three", 3)])
    late = cutter.history(Projected(settled, 3, (), True), REVISION[::-1])
    assert [(part.text, part.partial) for part in parts(early)] == [("one", False), ("two", True)]
    assert [(part.text, part.partial) for part in parts(late)] == [("one", False), ("two", False), ("three", False)]
    assert (early.page(None).complete, late.page(None).complete) == (False, True)


def test_settled_entries_are_cut_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session of 1,000 turns, a history after each: not quadratic."""
    from localagent.sessions import history as module

    cuts = 0

    def counting(text: str, raw: int, escaped: int) -> list[str]:
        nonlocal cuts
        cuts += 1
        return cut(text, raw, escaped)

    monkeypatch.setattr(module, "cut", counting)
    cutter = Cutter("s")
    settled: list[Entry] = []
    for number in range(1_000):
        tail = (entry("prompt", 2 * number), entry("answer", 2 * number + 1))
        cutter.history(Projected(settled, len(settled), tail, True), REVISION)
        settled.extend(tail)
    assert cuts <= 4_000
