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
    monkeypatch.setattr(steps, "WINDOW", 0)  # nothing is plain at a glance
    assert disagreements(seed=window, count=3_000) == []


def test_what_is_plain_at_a_glance_is_plain() -> None:
    texts = reference.texts(seed=3, count=6_000)
    plain = [text for text in texts if steps.is_plain(text)]
    assert [text for text in plain if reference.redact(text) != text] == []
    assert len(plain) > 500


@pytest.mark.parametrize("spelling", sorted({s for step in steps.STEPS for s in step.spellings} | {"-----BEGIN"}))
@pytest.mark.parametrize("after", ["", ": y", "'  ", '"= x', "\t = x", " next"])
def test_no_opener_is_plain_at_a_glance(spelling: str, after: str) -> None:
    """Unless it has no sign and something else comes after it: step 7 then finds no name."""
    name = spelling in steps.NAMED_VALUE.spellings and "bearer" not in spelling
    assert steps.is_plain(f"The {spelling}{after}") == (name and after == " next" and ":" not in spelling)


def test_the_generator_reaches_every_step() -> None:
    """Agreement on texts without secrets would prove nothing."""
    fired = [reference.fired(text) for text in reference.texts(seed=1, count=6_000)]
    steps = Counter(step for each in fired for step in each)
    assert steps.keys() == set(range(1, 8))
    assert min(steps.values()) >= 5, steps
    assert 0.3 < sum(map(bool, fired)) / len(fired) < 0.8
    assert sum(len(each) > 2 for each in fired) > 100
