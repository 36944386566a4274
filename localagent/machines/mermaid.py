"""A machine as a mermaid state diagram (``stateDiagram-v2``): the whole table in one, ignored inputs left out.

What a state answers without leaving it stands in a note, because mermaid draws loops over other arrows.
"""

import re
from collections.abc import Iterator
from enum import Enum

from localagent.machines.views import drawn
from statemachines.rows import MachineSpec, Row


def diagram(spec: MachineSpec) -> str:
    """The diagram; parallel rows share an arrow."""
    return "\n".join(["stateDiagram-v2", *(f"    {line}" for line in _lines(spec))]) + "\n"


def _lines(spec: MachineSpec) -> Iterator[str]:
    for state in spec.states:
        yield f'state "{state.value}" as {_id(state)}'
    yield f"[*] --> {_id(spec.initial)}"
    arrows: dict[tuple[Enum, Enum], list[Row]] = {}
    for row in drawn(spec):
        arrows.setdefault((row.source, row.dest), []).append(row)
    for source in spec.states:
        for dest in spec.states:
            if source is not dest and (source, dest) in arrows:
                words = "<br/>".join(map(_words, arrows[source, dest]))
                yield f"{_id(source)} --> {_id(dest)} : {words}"
    for state in spec.states:
        if state in spec.finals:
            yield f"{_id(state)} --> [*]"
    for state in spec.states:
        if (state, state) in arrows:
            yield f"note right of {_id(state)}"
            yield from (f"    {_words(row)}" for row in arrows[state, state])
            yield "end note"


def _id(state: Enum) -> str:
    """A name that mermaid takes; prefixed, because a few words are its own."""
    return "s_" + re.sub(r"\W+", "_", str(state.value)).strip("_")


def _words(row: Row) -> str:
    emits = f" / {', '.join(emit.value for emit in row.emits)}" if row.emits else ""
    return f"{row.input.value}{emits}"
