"""``redact`` against seven plain regexes that share no code with it."""

from collections import Counter

import pytest

from localagent.text import redact, scan, steps
from tests.kit import reference_redactor as reference


def disagreements(seed: int, count: int) -> list[str]:
    return [text for text in reference.texts(seed, count) if redact(text) != reference.redact(text)]


def test_six_thousand_texts() -> None:
    assert disagreements(seed=1, count=6_000) == []


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(2, 17))
def test_three_hundred_thousand_texts(seed: int) -> None:
    assert disagreements(seed, count=20_000) == []


@pytest.mark.parametrize("window", [20, 37, 64])
def test_small_windows(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a window cuts is put together again, wherever it cuts."""
    monkeypatch.setattr(scan, "WINDOW", window)
    monkeypatch.setattr(scan, "SHORT", 0)
    monkeypatch.setattr(steps, "SHORT", 0)
    assert disagreements(seed=window, count=3_000) == []


def test_the_generator_reaches_every_step() -> None:
    """Agreement on texts without secrets would prove nothing."""
    fired = [reference.fired(text) for text in reference.texts(seed=1, count=6_000)]
    steps = Counter(step for each in fired for step in each)
    assert steps.keys() == set(range(1, 8))
    assert min(steps.values()) >= 5, steps
    assert 0.3 < sum(map(bool, fired)) / len(fired) < 0.8
    assert sum(len(each) > 2 for each in fired) > 100
