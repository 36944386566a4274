"""The three recorded conversations with the published backend, as lines and as frames."""

import json
from functools import cache
from pathlib import Path
from typing import Any

CAPTURES = ("plain", "tools", "discovery")
_DATA = Path(__file__).parent.parent / "data" / "captures"


@cache
def lines(capture: str, direction: str) -> tuple[bytes, ...]:
    """Return what went in one direction ("client" or "backend"), each line with its LF."""
    records = map(json.loads, (_DATA / f"{capture}.ndjson").read_text().splitlines())
    return tuple(record["line"].encode() for record in records if record.get("dir") == direction)


def frames(capture: str, direction: str) -> list[dict[str, Any]]:
    """Return the same lines decoded."""
    return [json.loads(line) for line in lines(capture, direction)]
