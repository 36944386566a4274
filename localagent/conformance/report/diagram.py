"""A machine's picture with the offending edge: the frame that came, leaving the state in which no row explains it.

The pictures are those of ``diagrams/``; here a red edge is drawn from the state to the margin, and the edges of the
table that do emit such a frame are marked, so that one sees where it would have been right.
"""

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as Xml

from localagent.conformance.calibrate import frame_of
from localagent.conformance.model import Record
from localagent.machines import UnknownMachineError, pictures_of
from statemachines.registry import MACHINES
from statemachines.rows import Emit

_SVG: Final = "http://www.w3.org/2000/svg"
_NS: Final = f"{{{_SVG}}}"
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
WRONG: Final = "#c4161c"
RIGHT: Final = "#e69f00"
_ROOM: Final = 8.0
_LETTER: Final = 6.4  # points of a bold letter at size 11, about

Xml.register_namespace("", _SVG)
Xml.register_namespace("xlink", "http://www.w3.org/1999/xlink")


def parts(told: str) -> tuple[str, str]:
    """Machine and state of what a check tells: ``("run", "finishing(failed)")`` of ``run:4f0c finishing(failed)``."""
    instance, _, state = told.strip().partition(" ")
    return instance.partition(":")[0], state.strip()


def label(record: Record | None) -> str:
    """What a frame is called in a picture: its event, ``result``, or ``error.CODE``; what else was recorded by kind."""
    if record is None:
        return "nothing"
    frame = frame_of(record) if record.kind == "backend" else None
    if not isinstance(frame, dict):
        return record.kind if record.kind != "backend" else "no frame"
    if isinstance(frame.get("event"), str):
        return str(frame["event"])
    error = frame.get("error")
    return f"error.{error.get('code')}" if isinstance(error, dict) else "result"


def _emits(emit: Emit, frame: str) -> bool:
    word = emit.value
    return word == frame or word.partition("/")[0] == frame or (frame == "result" and word.endswith(".result"))


@cache
def _source(name: str) -> str | None:
    """The SVG of a picture: from the repository or, in an installed package, beside the machines. None without it."""
    package = files("localagent")
    places: tuple[Traversable, ...] = (package / "diagrams", Path(str(package)).parent / "diagrams")
    for place in places:
        file = place / f"{name}.svg"
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return None


def marked(told: str, frame: str) -> str:
    """The picture of a machine with the frame at the state that ``told`` names; empty when no picture shows it."""
    machine, state = parts(told)
    try:
        names = pictures_of(machine)
    except UnknownMachineError:
        return ""
    found = [tree for name in names if (tree := _draw(name, machine, state, frame)) is not None]
    # of several pictures that have the state, the one that also shows where the frame belongs says most
    best = max(found, key=lambda each: each[0], default=None)
    return "" if best is None else Xml.tostring(best[1], encoding="unicode", short_empty_elements=True)


def _draw(name: str, machine: str, state: str, frame: str) -> tuple[int, Xml.Element] | None:
    source = _source(name)
    if source is None:
        return None
    root = Xml.fromstring(source)
    groups = {_title(each): each for each in root.iter(f"{_NS}g") if each.get("class") in ("node", "edge")}
    node = next((each for title, each in groups.items() if "->" not in title and state in title.split("+")), None)
    graph = root.find(f"{_NS}g")
    if node is None or graph is None:
        return None
    spec = MACHINES[machine]
    right = [row for row in spec.rows if any(_emits(emit, frame) for emit in row.emits)]
    ends = {(row.source.value, row.dest.value) for row in right}
    count = 0
    for title, group in groups.items():
        source_box, arrow, dest_box = title.partition("->")
        if arrow and any(a in source_box.split("+") and b in dest_box.split("+") for a, b in ends):
            _paint(group, RIGHT, 2.6)
            count += 1
    _paint(node, WRONG, 2.4)
    _arrow(root, graph, node, frame)
    for each in root.iter():
        each.attrib.pop("id", None)  # a page may hold the same picture twice
    root.set("role", "img")
    root.set("aria-label", f"{machine}: {frame} in {state}")
    return count, root


def _title(group: Xml.Element) -> str:
    title = group.find(f"{_NS}title")
    return title.text or "" if title is not None else ""


def _paint(group: Xml.Element, colour: str, width: float) -> None:
    for each in group.iter():
        if each.tag in (f"{_NS}path", f"{_NS}polygon", f"{_NS}polyline") and each.get("stroke") not in (None, "none"):
            each.set("stroke", colour)
            if each.tag == f"{_NS}polygon":
                each.set("fill", colour)
            else:
                each.set("stroke-width", f"{width:g}")


def _box(elements: Iterable[Xml.Element]) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of what some elements draw."""
    numbers = [
        float(each) for element in elements for each in _NUMBER.findall(element.get("d") or element.get("points") or "")
    ]
    xs, ys = numbers[::2], numbers[1::2]
    return min(xs), min(ys), max(xs), max(ys)


def _arrow(root: Xml.Element, graph: Xml.Element, node: Xml.Element, frame: str) -> None:
    """An edge from the node to the right margin, which is made wide enough for the name of the frame."""
    _, top, right, bottom = _box(each for each in node.iter(f"{_NS}path"))
    page = _box(graph.iter(f"{_NS}polygon"))
    wide = len(frame) * _LETTER + 4 * _ROOM
    y, end = (top + bottom) / 2, page[2] + 2 * _ROOM
    line = {"stroke": WRONG, "stroke-width": "2.4", "stroke-dasharray": "7,3", "fill": "none"}
    marks = Xml.SubElement(graph, f"{_NS}g", {"class": "offending"})
    Xml.SubElement(marks, f"{_NS}path", {"d": f"M{right},{y}L{end - 7},{y}", **line})
    points = f"{end},{y} {end - 9},{y - 4.5} {end - 9},{y + 4.5}"
    Xml.SubElement(marks, f"{_NS}polygon", {"points": points, "fill": WRONG})
    style = {"font-family": "Arial", "font-size": "11", "font-weight": "bold", "fill": WRONG}
    text = Xml.SubElement(marks, f"{_NS}text", {"x": f"{end + _ROOM}", "y": f"{y + 4}", **style})
    text.text = f"\u2717 {frame}"
    left, up, width, height = map(float, _NUMBER.findall(root.get("viewBox") or "0 0 0 0"))
    width += 2 * _ROOM + wide
    root.set("viewBox", f"{left:g} {up:g} {width:g} {height:g}")
    root.set("width", f"{width:g}")
    root.set("height", f"{height:g}")
