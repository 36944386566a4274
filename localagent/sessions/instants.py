"""Moments as records spell them: RFC 3339, to the nanosecond, without the limits of ``datetime``."""

import re
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Final

_SECOND: Final = 1_000_000_000
_minutes = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt ]([01]\d|2[0-3]):([0-5]\d)", re.ASCII).fullmatch
_seconds = re.compile(r":([0-5]\d|60)(?:\.(\d+))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))", re.ASCII).fullmatch
_MINUTE_LENGTH: Final = len("2026-03-02T08:00")
_EPOCH: Final = date(1970, 1, 1).toordinal()
_CYCLE_DAYS: Final = 146_097  # 400 years
_FIRST: Final = (1 - _EPOCH) * 86_400 * _SECOND
_LAST: Final = (date.max.toordinal() + 1 - _EPOCH) * 86_400 * _SECOND - 1


def parse(text: str) -> int | None:
    """Return nanoseconds since 1970 for a moment with any offset (REC-04), or None if ``text`` is none.

    Case and a space for the ``T`` are as RFC 3339 allows; a leap second counts as the next one; digits beyond
    nanoseconds are cut.
    """
    minute = _minute(text[:_MINUTE_LENGTH])
    rest = _seconds(text, _MINUTE_LENGTH)
    if minute is None or rest is None:
        return None
    second, fraction, sign, hours, minutes = rest.groups()
    instant = (minute * 60 + int(second)) * _SECOND
    if fraction:
        instant += int(fraction[:9].ljust(9, "0"))
    if sign:
        offset = (int(hours) * 60 + int(minutes)) * 60 * _SECOND
        instant += -offset if sign == "+" else offset
    return instant


@lru_cache(maxsize=256)  # records come in clusters
def _minute(text: str) -> int | None:
    match = _minutes(text)
    if match is None:
        return None
    year, month, day, hour, minute = map(int, match.groups())
    try:  # year 0 exists for RFC 3339, and is like the year 400
        days = date(year or 400, month, day).toordinal() - (0 if year else _CYCLE_DAYS)
    except ValueError:
        return None
    return (days - _EPOCH) * 1440 + hour * 60 + minute


def spell(instant: int) -> str:
    """Write nanoseconds since 1970 in UTC with ``Z`` and the least of 0, 3, 6 or 9 digits that keeps all (REC-04).

    What lies outside the years 1 to 9999, as an offset can make it, is written as the nearest moment inside.
    """
    seconds, rest = divmod(min(max(instant, _FIRST), _LAST), _SECOND)
    text = (datetime(1970, 1, 1) + timedelta(seconds=seconds)).isoformat()
    digits = f"{rest:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{text}.{digits}Z" if digits else f"{text}Z"
