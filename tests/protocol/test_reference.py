"""``parse`` against a second opinion that shares no code with it."""

from collections import Counter

import pytest

from localagent.protocol.codec import parse
from localagent.protocol.errors import Refused
from tests.kit.reference_parser import Verdict, judge, lines


def verdict(line: bytes) -> Verdict:
    try:
        request = parse(line)
    except Refused as refused:
        return Verdict(refused.code.value, refused.id)
    return Verdict(None, request.id, request.method, repr(request.params), request.duplicate_inside)


def disagreements(seed: int, count: int) -> list[bytes]:
    return [line for line in lines(seed, count) if verdict(line) != judge(line)]


def test_five_thousand_lines() -> None:
    assert disagreements(seed=1, count=5_000) == []


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(2, 22))
def test_two_hundred_thousand_lines(seed: int) -> None:
    assert disagreements(seed, count=10_000) == []


def test_the_generator_reaches_every_verdict() -> None:
    """Agreement on lines that are all refused for one cause would prove nothing."""
    seen = Counter((judge(line).code, judge(line).duplicate_inside) for line in lines(seed=1, count=5_000))
    assert seen.keys() == {
        (None, False),
        (None, True),
        ("invalid_frame", None),
        ("invalid_request", None),
        ("protocol_mismatch", None),
    }
    assert min(seen.values()) >= 50, seen
