"""Running a stream over pieces, and the properties that hold at every moment of it."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from random import Random

from localagent.text import DeltaStream
from tests.kit import reference_redactor as reference


def cut(text: str, places: Iterable[int]) -> list[str]:
    return [text[begin:end] for begin, end in pairwise([0, *places, len(text)])]


def moments(stream: DeltaStream, pieces: list[str]) -> Iterator[str]:
    """What is visible after each piece, and at the end."""
    visible = ""
    for piece in pieces:
        visible += "".join(stream.feed(piece))
        yield visible
    yield visible + "".join(stream.finish())


def check(pieces: list[str], hidden: str = "") -> DeltaStream:
    """Stream ``pieces``: what is visible is ever a beginning of their redaction, in the end all of it, unless muted.

    Nor are ever four characters in a row of ``hidden`` visible; that does not rest on any redaction.
    """
    clean = reference.clean("".join(pieces))
    expected = reference.redact(clean)
    parts = {hidden[begin : begin + 4] for begin in range(len(hidden) - 3)}
    stream = DeltaStream()
    visible = ""
    for visible in moments(stream, pieces):
        assert expected.startswith(visible), (pieces, visible, expected)
        assert not any(part in visible for part in parts), (pieces, visible)
    assert stream.muted or visible == expected, (pieces, visible, expected)
    assert stream.text == clean
    assert stream.reconciled() == expected
    return stream


def check_random(seed: int, count: int, length: int) -> int:
    """Check ``count`` texts of ``length`` generated ones each, cut at random; return how many were not muted."""
    draw = Random(seed)
    texts = reference.texts(seed, count * length)
    unmuted = 0
    for _ in range(count):
        text = "".join(next(texts) for _ in range(length))
        if draw.random() < 0.3:
            for control in draw.choices(["\r", "\x00", "\x1b[0m", "\x1b]x", "\x07", "\x1b", "\r\n"], k=3):
                place = draw.randint(0, len(text))
                text = text[:place] + control + text[place:]
        places = sorted(draw.choices(range(len(text) + 1), k=draw.choice([0, 1, 2, 3, 5, 8, len(text)])))
        unmuted += not check(cut(text, places)).muted
    return unmuted
