"""Markdown with an optional front matter: a first line ``---``, flat ``key: value`` lines, a closing ``---`` (PROF-04).

Not YAML: values are taken as they stand, without escapes and comments; one key may have a list of ``- item`` lines.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

FENCE: Final = "---"
_member = re.compile(r"([A-Za-z0-9_-]+):(?:[ \t]+(.*))?").fullmatch


class Malformed(Exception):  # noqa: N818 - says what was found
    """A front matter that is none; the text says what was expected."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file in its two parts. ``front`` is None where there is no front matter."""

    front: Mapping[str, str | tuple[str, ...]] | None
    body: str


def parsed(text: str) -> Document:
    """Part a file. Lines end in LF. Raises Malformed."""
    first, _, rest = text.partition("\n")
    if first != FENCE:
        return Document(None, text)
    front: dict[str, str | tuple[str, ...]] = {}
    last = ""
    while True:
        if not rest:
            raise Malformed(f"a line {FENCE} that ends the front matter")
        line, _, rest = rest.partition("\n")
        if line == FENCE:
            return Document(front, rest)
        if not line.strip():
            continue
        item = line.strip()
        if item.startswith("- "):
            items = front.get(last, "no list")
            if isinstance(items, str) and items:
                raise Malformed("list items below a key that has no value of its own")
            front[last] = (*items, item[2:].strip())
            continue
        found = _member(line)
        if found is None:
            raise Malformed("lines of the form key: value")
        last = found[1]
        if last in front:
            raise Malformed(f"{last} once")
        front[last] = (found[2] or "").strip()
