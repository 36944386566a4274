"""The text of an answer on its three ways: deltas, reconciliations, records. They say the same, and never a secret."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.core.worker import Delta, Reconcile
from localagent.runner.provider import Stage, ToolCall, ToolResult
from localagent.text import clean, redact, redact_payload

from .kit import Trial

SECRETS = (
    "sk-made-up-000000",
    "ghp_0123456789abcdefghijABCD",
    "AKIA0123456789ABCDEF",
    "eyJhbGciOi.J9",
    "bearer 0123456789",
    "password: hunter22",
    'api_key = "two words"',
    "data:image/png;base64,AAAA",
)
HARMLESS = (
    "task-force ",
    "risk-free\n",
    "a token of trust ",
    "keyboard ",
    "ünïcödé ",
    "😀",
    "\n\n",
    " ",
    "\x1b[1m",
    ".",
)
TEXTS = st.lists(st.sampled_from([*(f" {secret} " for secret in SECRETS), *HARMLESS]), max_size=12).map("".join)


class Pieces:
    """A runner that says pieces; None stands for a tool call."""

    def __init__(self, *pieces: str | None) -> None:
        self._pieces = pieces

    def run(self, prompt: str, stage: Stage) -> None:
        for piece in self._pieces:
            if piece is None:
                stage.tools([(ToolCall("c", "bash", {}), lambda: ToolResult(True, ""))])
            else:
                stage.text(piece)


def _cut(text: str, places: list[int]) -> list[str]:
    at = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(at)]


@given(TEXTS, st.lists(st.integers(0, 400), max_size=6))
def test_deltas_reconciliation_record_and_history_agree(text: str, places: list[int]) -> None:
    trial = Trial()
    trial.run(Pieces(*_cut(text, places)))
    expected = redact(clean(text))
    assert trial.answer() == expected
    assert "".join(trial.deltas().values()) == expected
    assert trial.handle.records[-1].payload["text"] == expected
    assert trial.stored_text() == (expected if expected.strip() else "")
    said = [entry.text for entry in trial.handle.entries() if entry.kind == "assistant"]
    assert said == ([redact(expected)] if expected else [])


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_cut_anywhere_is_never_visible(secret: str) -> None:
    text = f"Look: {secret} and so on."
    for first in range(len(text)):
        for second in range(first, len(text), 3):
            trial = Trial()
            trial.run(Pieces(text[:first], text[first:second], text[second:]))
            seen = ["".join(event.text for event in trial.of(Delta)[:n]) for n in range(len(trial.of(Delta)) + 1)]
            assert seen[-1] == redact(text)
            assert all(redact(text).startswith(each) for each in seen)


def test_a_delta_does_not_wait_for_the_next_piece() -> None:
    trial = Trial()
    trial.run(Pieces("Good morning. ", "How are you?"))
    assert [event.text for event in trial.of(Delta)] == ["Good morning. ", "How are you?"]


def test_a_muted_segment_is_whole_in_its_reconciliation_and_in_the_store() -> None:
    block = f"-----BEGIN RSA PRIVATE KEY-----\n{'QUJD' * 400}\n-----END RSA PRIVATE KEY-----\n"
    text = f"Before. {block}After it all."
    trial = Trial()
    trial.run(Pieces(*(text[at : at + 7] for at in range(0, len(text), 7)), None, "Next."))
    assert list(trial.reconciled().values()) == ["Before. <redacted>\nAfter it all.", "Next."]
    assert list(trial.deltas().values()) == ["Before. ", "Next."]
    assert trial.stored_text() == "Before. <redacted>\nAfter it all.Next."


def test_large_pieces_leave_as_small_deltas_and_parts() -> None:
    text = "zwölf Boxkämpfer " * 3000
    trial = Trial()
    trial.run(Pieces(text))
    assert trial.answer() == text
    assert all(3990 < len(event.text.encode()) <= 4000 for event in [*trial.of(Delta), *trial.of(Reconcile)][:12])


def test_each_segment_is_settled_where_it_ends_and_once_more() -> None:
    trial = Trial()
    trial.run(Pieces("One.", None, None, "Two.", None, "Three."))
    assert [(event.text, event.partial) for event in trial.of(Reconcile)] == [
        ("One.", True),
        ("Two.", True),
        ("One.", False),
        ("Two.", False),
        ("Three.", False),
    ]
    assert len(trial.reconciled()) == 3


# chunk records


def _chunks(*pieces: str | None) -> list[str]:
    trial = Trial()
    trial.run(Pieces(*pieces))
    return [draft.payload["text"] for draft in trial.handle.records if draft.kind == "assistant_chunk"]


def test_chunk_records_are_cut_at_white_space_within_4096_bytes() -> None:
    text = "".join(f"{number} task-force sk-et ä\n" for number in range(3000))
    chunks = _chunks(*(text[at : at + 333] for at in range(0, len(text), 333)))
    assert "".join(chunks) == redact(text)
    assert all(4000 < len(chunk.encode()) <= 4096 for chunk in chunks[:-1])
    assert all(chunk[-1] in " \n" for chunk in chunks)
    assert all(redact_payload({"text": chunk}) == {"text": chunk} for chunk in chunks)


@pytest.mark.parametrize("size", [4095, 4096, 4097, 8192, 20_000])
def test_text_without_white_space_is_cut_all_the_same(size: int) -> None:
    chunks = _chunks("x" * size)
    assert "".join(chunks) == "x" * size
    assert all(len(chunk) <= 4096 for chunk in chunks)


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 12_000])
@pytest.mark.parametrize("shape", [lambda n: "\n" * n + "x", lambda n: "x" + "\n" * n, lambda n: "x" * n + "\n" * n])
def test_no_chunk_is_blank_and_no_blank_is_lost(size: int, shape: Callable[[int], str]) -> None:
    text = shape(size)
    chunks = _chunks(*(text[at : at + 1000] for at in range(0, len(text), 1000)))
    assert "".join(chunks) == text
    assert all(chunk.strip() for chunk in chunks)


def test_a_blank_segment_is_shown_and_not_stored() -> None:
    trial = Trial()
    trial.run(Pieces("\n\n", None, "Text."))
    assert list(trial.reconciled().values()) == ["\n\n", "Text."]
    assert trial.stored_text() == "Text."
