"""What is wrong with a file of the user's: which file, which key, what was expected there, what was found instead.

No fault ever holds a value of a file (CRED-14): what is found is told by its kind. Only names of keys and paths are
repeated, and a name that looks like a secret is not.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from localagent.protocol.codes import Code
from localagent.sessions.errors import StoreError

if TYPE_CHECKING:
    from .snapshot import Choice

Path = tuple[str | int, ...]
"""Where in a JSON document: keys and indexes."""

HIDDEN: Final = "<hidden>"
_is_plain = re.compile("[A-Za-z0-9_-]+").fullmatch


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong."""

    file: str
    key: str
    """As people write it: ``agent.model.provider``; empty for the file as a whole."""
    expected: str
    found: str = ""

    def __str__(self) -> str:
        where = f"{self.file}: {self.key}" if self.key else self.file
        return f"{where}: expected {self.expected}{f', found {self.found}' if self.found else ''}"


class Inadmissible(StoreError):  # noqa: N818 - says what was found
    """Startup fails with ``code``; ``faults`` say why, at least one. ``choice`` is the selection, once it is known."""

    def __init__(self, code: Code, faults: Iterable[Fault], choice: "Choice | None" = None) -> None:
        self.faults: Final = tuple(faults)
        self.choice: Final = choice
        super().__init__(code, "; ".join(map(str, self.faults)))


def misconfigured(file: str, key: str, expected: str, found: str = "") -> Inadmissible:
    """A single ``configuration_invalid``."""
    return Inadmissible(Code.CONFIGURATION_INVALID, (Fault(file, key, expected, found),))


def spelt(path: Path) -> str:
    """Write a path as people do. Keys that may not be shown are hidden (CRED-13); odd ones are quoted."""
    from localagent.text.redact import shown_name  # only who is at fault waits for it

    text = ""
    for each in path:
        shown = str(each) if isinstance(each, int) else shown_name(each)
        if shown is None:
            text += f"[{HIDDEN}]"
        elif isinstance(each, int):
            text += f"[{each}]"
        elif _is_plain(shown):
            text += f".{shown}" if text else shown
        else:
            text += f'["{shown}"]'
    return text


def kind(value: object) -> str:
    """Say what kind of JSON value it is, and nothing more."""
    if value is None:
        return "null"
    for types, word in _KINDS:
        if isinstance(value, types):
            return word
    return "something else"


def listed(words: Sequence[str]) -> str:
    """``a``, ``a or b``, ``a, b or c``."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


_KINDS: Final = (
    (bool, "true or false"),  # before the numbers: it is one in Python
    (int, "a whole number"),
    (float, "a number with a fraction"),
    (str, "a string"),
    ((list, tuple), "a list"),
    (dict, "an object"),
)
