"""The tables for people and for other programs: text, JSON, DOT, mermaid.

``diagrams/render.py`` and the documentation draw from here as well, so what is printed, drawn and documented is the
same. Nothing here needs a library.
"""

from collections.abc import Callable, Mapping
from typing import Final

from localagent.machines import data, mermaid, text
from localagent.machines.attaching import ATTACHING, attaching
from localagent.machines.overview import OVERVIEW, overview
from localagent.machines.pictures import picture
from localagent.machines.views import VIEWS, View, views_of
from statemachines.registry import MACHINES

__all__ = ["PICTURES", "UnknownMachineError", "as_dot", "as_json", "as_mermaid", "as_text", "names", "pictures_of"]


class UnknownMachineError(LookupError):
    """No machine, and where pictures are asked for no picture, bears this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no machine is called {name!r}; there are {', '.join(names())}")
        self.name = name


def _draw(view: View) -> Callable[[], str]:
    return lambda: picture(view)


PICTURES: Final[Mapping[str, Callable[[], str]]] = {
    OVERVIEW: overview,
    **{name: _draw(view) for name, view in VIEWS.items()},
    ATTACHING: attaching,
}
"""Name of a picture -> its DOT text, made when called. Each is committed as ``diagrams/<name>.dot``."""


def names() -> tuple[str, ...]:
    """The machines, in reading order."""
    return tuple(MACHINES)


def pictures_of(machine: str) -> tuple[str, ...]:
    """The pictures of a machine; machines with equal tables share theirs."""
    own = tuple(view.name for view in views_of(machine))
    return (*own, ATTACHING) if machine == "attachment" else own


def as_text(name: str | None = None) -> str:
    """One machine for a terminal; without a name the list of all."""
    return text.index() if name is None else text.machine(MACHINES[_known(name)])


def as_json(name: str | None = None) -> str:
    """The whole model, or one machine with its couplings, with a digest."""
    return data.dump(data.model() if name is None else data.part(_known(name)))


def as_dot(name: str | None = None) -> str:
    """A picture by its name, all pictures of a machine one after the other, or without a name the overview."""
    if name is None:
        return overview()
    if name in MACHINES:
        return "".join(PICTURES[each]() for each in pictures_of(name))
    if name in PICTURES:
        return PICTURES[name]()
    raise UnknownMachineError(name)


def as_mermaid(name: str) -> str:
    """One machine as a mermaid state diagram."""
    return mermaid.diagram(MACHINES[_known(name)])


def _known(name: str) -> str:
    if name not in MACHINES:
        raise UnknownMachineError(name)
    return name
