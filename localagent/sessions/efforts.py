"""The two spellings of one effort: ``xhigh`` on the wire, ``x_high`` in files. Converted here and nowhere else."""

from typing import Final, get_args

from localagent.protocol.results import Effort

_WIRE: Final[dict[str, Effort]] = {word: word for word in get_args(Effort)}
_FILE: Final[dict[str, Effort]] = {**_WIRE, "x_high": "xhigh"}


def from_file(word: object) -> Effort | None:
    """Return the effort that a file names, in either spelling; None if it names none (SET-12)."""
    return _FILE.get(word) if isinstance(word, str) else None


def for_file(effort: Effort) -> str:
    """Return the word that files use, because the published backend refuses the other (SET-12)."""
    return "x_high" if effort == "xhigh" else effort
