"""Where things are in a laid-out picture, and what lies on what.

Everything is read from the layout program's own report (``-Tjson``), in points; nothing of the drawing code is used.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DOT = Path(sys.executable).with_name("graphviz-pure")
TOUCH = 0.6
"""Points by which boxes may touch: what rounding makes of neighbours in one line."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A rectangle: some words, or a node."""

    left: float
    low: float
    right: float
    high: float
    words: str
    owner: str

    def meets(self, other: "Box") -> bool:
        across = self.left + TOUCH < other.right and other.left + TOUCH < self.right
        return across and self.low + TOUCH < other.high and other.low + TOUCH < self.high

    def holds(self, point: Point) -> bool:
        return self.left < point[0] < self.right and self.low < point[1] < self.high


@dataclass
class Layout:
    """A picture after layout."""

    frame: Box = field(default_factory=lambda: Box(0, 0, 0, 0, "", ""))
    texts: list[Box] = field(default_factory=list)
    nodes: list[Box] = field(default_factory=list)
    curves: list[tuple[str, str, list[Point]]] = field(default_factory=list)


def load(source: Path) -> dict[str, Any]:
    """The layout program's report on a DOT file."""
    done = subprocess.run([DOT, "-Tjson", source], capture_output=True, check=True)
    assert done.stderr == b"", done.stderr.decode()
    loaded: dict[str, Any] = json.loads(done.stdout)
    return loaded


def layout(report: dict[str, Any]) -> Layout:
    """Read a report."""
    left, low, right, high = map(float, report["bb"].split(","))
    found = Layout(frame=Box(left, low, right, high, "", "picture"))
    found.texts += _texts(report.get("_ldraw_", []), "legend")
    for each in report["objects"]:
        found.texts += _texts(each.get("_ldraw_", []), each["name"])
        if "pos" in each:
            x, y = map(float, each["pos"].split(","))
            w, h = float(each["width"]) * 36, float(each["height"]) * 36
            found.nodes.append(Box(x - w, y - h, x + w, y + h, "", each["name"]))
    names = {each["_gvid"]: each["name"] for each in report["objects"]}
    for each in report.get("edges", []):
        tail, head = names[each["tail"]], names[each["head"]]
        found.texts += _texts(each.get("_ldraw_", []), f"{tail} -> {head}")
        points = [p for op in each.get("_draw_", []) if op["op"] in "bB" for p in _curve(op["points"])]
        found.curves.append((tail, head, points))
    return found


def _texts(drawn: list[dict[str, Any]], owner: str) -> Iterator[Box]:
    size = 0.0
    for op in drawn:
        if op["op"] == "F":
            size = float(op["size"])
        elif op["op"] == "T" and op["text"].strip():
            x, y = op["pt"]
            left = {"l": x, "c": x - op["width"] / 2, "r": x - op["width"]}[op["align"]]
            yield Box(left, y - 0.2 * size, left + op["width"], y + 0.72 * size, op["text"], owner)


def _curve(points: list[Point], steps: int = 24) -> Iterator[Point]:
    for i in range(0, len(points) - 1, 3):
        a, b, c, d = points[i : i + 4]
        for step in range(steps + 1):
            t = step / steps
            u = 1 - t
            x, y = (u**3 * a[k] + 3 * u * u * t * b[k] + 3 * u * t * t * c[k] + t**3 * d[k] for k in (0, 1))
            yield x, y


def faults(found: Layout) -> Iterator[str]:
    """What would hurt the eye: words on words, lines through words or boxes, anything cut off."""
    for i, text in enumerate(found.texts):
        at = f"{text.words!r} of {text.owner}"
        frame = found.frame
        if text.left < frame.left or text.right > frame.right or text.low < frame.low or text.high > frame.high:
            yield f"cut off: {at}"
        for other in found.texts[i + 1 :]:
            if text.meets(other):
                yield f"words on words: {at}, {other.words!r} of {other.owner}"
        for node in found.nodes:
            if "->" in text.owner and text.meets(node):
                yield f"words on a box: {at}, {node.owner}"
        for tail, head, points in found.curves:
            if any(text.holds(point) for point in points):
                yield f"line through words: {at}, {tail} -> {head}"
    for tail, head, points in found.curves:
        for node in found.nodes:
            if node.owner not in (tail, head) and any(node.holds(point) for point in points):
                yield f"line through a box: {tail} -> {head}, {node.owner}"
