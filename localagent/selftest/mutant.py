"""What a mutant is: a named fault, which is put into the backend before it serves.

A fault is a function without arguments, marked by :func:`fault`; its name is the mutant's, its docstring says what is
wrong. It is called before the backend is imported any further than the function itself does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Final

PLACES: Final = (
    "lines",
    "frames",
    "refusals",
    "negotiation",
    "process",
    "sessions",
    "histories",
    "turns",
    "events",
    "catalogs",
    "display",
    "quiet",
    "policy",
    "refreshes",
    "scans",
    "stored",
)
"""The modules that hold faults, by what they spoil."""

PROGRAM: Final = ("-m", "localagent.selftest")
"""How a mutant is started, behind the interpreter and before its name."""

_FAULTS: Final[dict[str, "Mutant"]] = {}


class UnknownMutantError(ValueError):
    """No mutant has that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no mutant is named {name!r}; there are {', '.join(zoo())}")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A named fault. ``about`` says in one line what is wrong with this backend."""

    name: str
    about: str
    place: str
    install: Callable[[], None]


@cache
def zoo() -> Mapping[str, Mutant]:
    """Every mutant by name, in the order of the modules."""
    for place in PLACES:
        import_module(f"{__package__}.{place}")
    return dict(_FAULTS)


def fault(install: Callable[[], None]) -> Callable[[], None]:
    """Mark a function as a mutant."""
    name = install.__name__.replace("_", "-")
    if name in _FAULTS:
        raise ValueError(f"two mutants named {name}")
    place = install.__module__.rpartition(".")[2]
    _FAULTS[name] = Mutant(name, " ".join((install.__doc__ or "").split()).rstrip("."), place, install)
    return install
