"""Moments: RFC 3339 in, RFC 3339 in UTC out (REC-04)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.sessions.instants import parse, spell
from tests.sessions.kit import SECOND

BASE = 1_772_438_405 * SECOND


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-03-02T08:00:05Z", BASE),
        ("2026-03-02T08:00:05.1Z", BASE + 100_000_000),
        ("2026-03-02T08:00:05.120Z", BASE + 120_000_000),
        ("2026-03-02T08:00:05.000000001Z", BASE + 1),
        ("2026-03-02T08:00:05.0000000019999Z", BASE + 1),
        ("2026-03-02t08:00:05z", BASE),
        ("2026-03-02 08:00:05Z", BASE),
        ("2026-03-02T10:30:05+02:30", BASE),
        ("2026-03-01T23:00:05-09:00", BASE),
        ("2026-03-02T08:00:05-00:00", BASE),
        ("1969-12-31T23:59:60Z", 0),
        ("1970-01-01T00:00:00Z", 0),
        ("2024-02-29T00:00:00Z", 1_709_164_800 * SECOND),
        ("0000-02-29T00:00:00Z", -62_162_121_600 * SECOND),
        ("9999-12-31T23:59:59Z", 253_402_300_799 * SECOND),
    ],
)
def test_a_moment(text: str, instant: int) -> None:
    assert parse(text) == instant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-03-02",
        "2026-03-02T08:00:05",
        "2026-03-02T08:00Z",
        "2026-13-02T08:00:05Z",
        "2026-02-29T08:00:05Z",
        "2026-00-02T08:00:05Z",
        "2026-03-32T08:00:05Z",
        "2026-03-02T24:00:05Z",
        "2026-03-02T08:60:05Z",
        "2026-03-02T08:00:61Z",
        "2026-03-02T08:00:05.Z",
        "2026-03-02T08:00:05,1Z",
        "2026-03-02T08:00:05+2:30",
        "2026-03-02T08:00:05+24:00",
        "2026-03-02T08:00:05+0230",
        "2026-03-02T08:00:05Z\n",
        " 2026-03-02T08:00:05Z",
        "\u0662026-03-02T08:00:05Z",
        "20260302T080005Z",
        "1772438405",
    ],
)
def test_no_moment(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (BASE, "2026-03-02T08:00:05Z"),
        (BASE + 120_000_000, "2026-03-02T08:00:05.120Z"),
        (BASE + 1_000, "2026-03-02T08:00:05.000001Z"),
        (BASE + 1, "2026-03-02T08:00:05.000000001Z"),
        (-1, "1969-12-31T23:59:59.999999999Z"),
        (-(10**20), "0001-01-01T00:00:00Z"),
        (10**21, "9999-12-31T23:59:59.999999999Z"),
    ],
)
def test_spelling(instant: int, text: str) -> None:
    assert spell(instant) == text


@given(st.integers(-62_135_596_800 * SECOND, 253_402_300_799 * SECOND))
def test_what_is_spelt_is_parsed(instant: int) -> None:
    assert parse(spell(instant)) == instant


@given(st.datetimes(min_value=datetime(1, 1, 3), max_value=datetime(9999, 12, 29)), st.integers(-1439, 1439))
def test_as_the_standard_library(moment: datetime, minutes: int) -> None:
    """Another judge, to the microsecond and within its years."""
    sign, offset = ("-" if minutes < 0 else "+"), abs(minutes)
    text = f"{moment.isoformat()}{sign}{offset // 60:02d}:{offset % 60:02d}"
    utc = moment.replace(tzinfo=UTC) - timedelta(minutes=minutes)
    assert parse(text) == (utc - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
