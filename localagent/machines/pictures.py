"""A view as DOT text."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Final

from localagent.machines import dot
from localagent.machines.dot import Html, Origin, Told, Word
from localagent.machines.views import View, drawn
from statemachines.registry import COUPLINGS
from statemachines.rows import KINDS, SUBJECT, Emit, Kind, Row

Node = tuple[Enum, ...]
"""The states drawn as one box."""
_FRAME: Final = "cluster_frame"


@dataclass(frozen=True, slots=True)
class Arrow:
    """One edge: all rows from one box to another whose inputs have the same origin."""

    source: Node
    dest: Node
    origin: Origin
    rows: tuple[Row, ...]

    @property
    def tip(self) -> str:
        """Each input with the clauses that demand it."""
        return "\n".join(dict.fromkeys(f"{row.input.name}: {' '.join(row.clauses)}" for row in self.rows))


def word(emit: Emit) -> Word:
    """An emit, and whether it is a command."""
    return emit.value, KINDS[emit] is Kind.COMMAND


def words(view: View, row: Row) -> str:
    """How a view calls the input of a row."""
    return view.says.get((row.source, row.input), row.input.value)


def says(view: View, row: Row) -> tuple[Word, ...]:
    """What a row emits; for one that only couples, what it is passed on to."""
    if row.emits or row.source is not row.dest:
        return tuple(map(word, row.emits))
    targets = (
        target
        for joint in COUPLINGS[view.machine]
        if joint.input is row.input and row.source in joint.sources
        for target in joint.then
    )
    return tuple(dict.fromkeys((f"to {'its subject' if each is SUBJECT else each[0]}", False) for each in targets))


def boxes(view: View) -> tuple[Node, ...]:
    """The boxes of a view, in the order of the states.

    A group is taken apart until the states in each box agree about every row that is shown, by wording, destination
    box and effect: a box never says more than the table.
    """
    ends = {end for row in view.rows for end in (row.source, row.dest)} | set(view.context)
    grouped = {state: group for group in view.groups for state in group}
    box: dict[Enum, Node] = {state: grouped.get(state, (state,)) for state in view.spec.states if state in ends}
    while True:
        alike: dict[object, list[Enum]] = {}
        for state in box:
            shown = (row for row in view.rows if row.source is state)
            does = frozenset((words(view, row), box[row.dest], says(view, row)) for row in shown)
            alike.setdefault((box[state], does), []).append(state)
        finer = {state: tuple(states) for states in alike.values() for state in states}
        if finer == box:
            return tuple(dict.fromkeys(box.values()))
        box = finer


def arrows(view: View, nodes: tuple[Node, ...]) -> tuple[Arrow, ...]:
    """The edges of a view, box by box: parallel ones of one origin are one."""
    found: dict[tuple[Node, Node, Origin], list[Row]] = {}
    for source in nodes:
        for dest in nodes:
            for row in view.rows:
                if row.source in source and row.dest in dest:
                    found.setdefault((source, dest, dot.origin(row.input)), []).append(row)
    return tuple(Arrow(*key, tuple(rows)) for key, rows in found.items())


def told(view: View, arrow: Arrow) -> list[Told]:
    """The wordings of an arrow, in the order of the inputs; those that do the same stand together, with what they do.

    What all of them emit last is said once, below.
    """
    order = {given: i for i, given in enumerate(view.spec.inputs)}
    found: dict[tuple[Word, ...], dict[str, None]] = {}
    for row in sorted(arrow.rows, key=lambda row: order[row.input]):
        found.setdefault(says(view, row), {})[words(view, row)] = None
    last = _common_end(list(found))
    each = [Told(arrow.origin, tuple(inputs), does[: len(does) - len(last)]) for does, inputs in found.items()]
    return [*each, Told(arrow.origin, (), last, "each: / ")] if last else each


def _common_end(lists: list[tuple[Word, ...]]) -> tuple[Word, ...]:
    """The longest common end of several lists; nothing where there is one list alone."""
    if len(lists) < 2:
        return ()
    common: list[Word] = []
    for column in zip(*map(reversed, lists), strict=False):
        if len(set(column)) > 1:
            break
        common.insert(0, column[0])
    return tuple(common)


def picture(view: View) -> str:
    """The DOT text of a view."""
    nodes = boxes(view)
    edges = arrows(view, nodes)
    lines = [
        *dot.defaults(across=view.across, title=view.title, foot=_foot(view, edges)),
        *_nodes(view, nodes, edges),
        *_start(view, nodes),
        *(_edge(view, arrow) for arrow in edges if arrow.source != arrow.dest),
        *_hints(view, nodes),
        *_levels(view, nodes),
    ]
    return dot.graph(view.name, lines)


def _id(node: Node) -> str:
    return "+".join(state.value for state in node)


def _nodes(view: View, nodes: tuple[Node, ...], edges: tuple[Arrow, ...]) -> Iterator[str]:
    inside = [node for node in nodes if _framed(view, node)]
    if inside:
        yield from dot.frame(_FRAME, view.frame_name, [_box(view, node, edges) for node in inside])
    yield from (_box(view, node, edges) for node in nodes if node not in inside)


def _box(view: View, node: Node, edges: tuple[Arrow, ...]) -> str:
    within = [arrow for arrow in edges if arrow.source == arrow.dest == node]
    answers = [each for arrow in within for each in told(view, arrow)]
    tip = "\n".join([", ".join(state.value for state in node), *(arrow.tip for arrow in within)])
    values: dict[str, str] = {"label": dot.box([state.value for state in node], answers), "tooltip": tip}
    if view.spec.finals.issuperset(node):
        values["peripheries"] = "2"
    return dot.node(_id(node), values)


def _start(view: View, nodes: tuple[Node, ...]) -> Iterator[str]:
    for node in nodes:
        if view.spec.initial in node:
            yield from dot.start(_id(node))


def _edge(view: View, arrow: Arrow) -> str:
    label = dot.label(told(view, arrow), across=view.across)
    values = {**arrow.origin.edge, "label": label, "tooltip": arrow.tip, "labeltooltip": arrow.tip}
    return dot.edge(_id(arrow.source), _id(arrow.dest), values)


def _framed(view: View, node: Node) -> bool:
    return set(node) <= set(view.frame)


def _hints(view: View, nodes: tuple[Node, ...]) -> Iterator[str]:
    """Grey arrows for the rows of other views between these boxes; one for all in a frame that share theirs."""
    hidden = _hidden(view, nodes) if view.abridges else {}
    framed = [node for node in nodes if _framed(view, node)]
    for (source, dest), inputs in hidden.items():
        tail: dict[str, str] = {}
        if source in framed and dest not in framed and all(hidden.get((node, dest)) == inputs for node in framed):
            if source != framed[-1]:
                continue
            tail = {"ltail": _FRAME}
        count = f"{len(inputs)} way{'s' if len(inputs) > 1 else ''}"
        tip = "\n".join(given.value for given in inputs)
        label = dot.label([Told(dot.ABRIDGED, (count,))], across=view.across)
        values = {**dot.ABRIDGED.edge, "label": label, "tooltip": tip, "labeltooltip": tip, **tail}
        yield dot.edge(_id(source), _id(dest), values)


def _hidden(view: View, nodes: tuple[Node, ...]) -> dict[tuple[Node, Node], tuple[Enum, ...]]:
    box = {state: node for node in nodes for state in node}
    found: dict[tuple[Node, Node], dict[Enum, None]] = {}
    for row in drawn(view.spec):
        if not view.shows(row) and row.source in box and row.dest in box and box[row.source] != box[row.dest]:
            found.setdefault((box[row.source], box[row.dest]), {})[row.input] = None
    order = {given: i for i, given in enumerate(view.spec.inputs)}
    return {ends: tuple(sorted(inputs, key=order.__getitem__)) for ends, inputs in found.items()}


def _levels(view: View, nodes: tuple[Node, ...]) -> Iterator[str]:
    levels = [[_id(node) for node in nodes if set(node) & set(level)] for level in view.levels]
    yield from map(dot.same_level, levels)
    for above, below in pairwise(levels):
        yield from (dot.edge(source, dest, {"style": "invis"}) for source in above for dest in below)


def _foot(view: View, edges: tuple[Arrow, ...]) -> Html:
    """Title, legend and the note on what is not drawn."""
    spec = view.spec
    origins = [each for each in dot.ORIGINS if any(arrow.origin is each for arrow in edges)]
    kinds = {KINDS[emit] is Kind.COMMAND for row in view.rows for emit in row.emits}
    emits = [("command" if command else "frame", command) for command in sorted(kinds)]
    quiet = len(spec.rows) - len(drawn(spec))
    other = len(drawn(spec)) - len(view.rows)
    notes = [f"{len(view.rows)} rows"]
    notes += [f"{other} in other pictures"] if other else []
    notes += [f"and {quiet} ignored inputs, see the table"] if quiet else []
    return dot.legend(view.title, [*origins, *([dot.ABRIDGED] if view.abridges else [])], emits, "; ".join(notes))
