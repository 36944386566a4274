"""What a run came to, in every form: the event stream is the source, all others are made from a :class:`Report`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from localagent.conformance.report import junit, markdown, ndjson, page
from localagent.conformance.report.ndjson import Stream, UnreadableError, load
from localagent.conformance.report.tally import Report, Status, status

__all__ = ["DERIVED", "Report", "Status", "Stream", "UnreadableError", "derive", "load", "status"]

DERIVED: Final[Mapping[str, Callable[[Report], str]]] = dict(
    zip(ndjson.DERIVED, (junit.render, markdown.render, page.render), strict=True)
)
"""Files that are made from the stream."""


def derive(directory: Path) -> None:
    """Make the other forms of the report in a directory. Raises UnreadableError, OSError."""
    report = load(directory)
    for name, render in DERIVED.items():
        (directory / name).write_text(render(report), encoding="utf-8")
