"""DOT as text: quoting, labels, and the one style of all pictures.

Written by hand, because the ``graphviz`` package is no dependency of this one; ``diagrams/render.py`` hands the text
to it. Colours are those of Okabe and Ito, told apart by every kind of colour vision, some of them darkened so that
words can be read in them; the line style says the same once more, for print in black and white.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from html import escape
from textwrap import wrap
from typing import Final

FONT: Final = "Arial"
INK: Final = "#1f2933"
QUIET: Final = "#66707a"
NODE_TEXT: Final = 11
EDGE_TEXT: Final = 9.5
SMALL_TEXT: Final = 8.5
WIDE: Final = 28
"""Characters of a line of a label."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an input comes from: its word in the legend, and how its edges are drawn."""

    word: str
    colour: str
    style: str
    width: float

    @property
    def ink(self) -> str:
        """The colour of its words."""
        return QUIET if self is ABRIDGED else self.colour

    @property
    def edge(self) -> dict[str, str]:
        """Attributes of an edge."""
        colour = f"{self.colour}:white:{self.colour}" if self.style == "double" else self.colour
        return {
            "color": colour,
            "style": "solid" if self.style == "double" else self.style,
            "penwidth": f"{self.width:g}",
            "fontcolor": self.ink,
        }


CLIENT: Final = Origin("client", "#0072B2", "solid", 1.3)
WORKER: Final = Origin("worker", "#00805F", "dashed", 1.3)
TIMER: Final = Origin("timer", "#C4500A", "dotted", 1.8)
PIPE: Final = Origin("pipe", "#A8437F", "solid", 2.8)
JOINT: Final = Origin("another machine", "#4A4A4A", "double", 1.0)
ABRIDGED: Final = Origin("in another picture", "#9AA3AB", "solid", 1.0)

ORIGINS: Final = (CLIENT, WORKER, TIMER, PIPE, JOINT)
_BY_PREFIX: Final = {"RECV": CLIENT, "WORKER": WORKER, "TIMER": TIMER, "OUTPUT": PIPE, "EOF": PIPE, "JOINT": JOINT}


def origin(given: Enum) -> Origin:
    """Where an input comes from, by the prefix of its name."""
    return _BY_PREFIX[given.name.partition("_")[0]]


def quote(words: str) -> str:
    """A DOT string."""
    return '"' + words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


class Html(str):
    """A label in DOT's HTML subset; written between angle brackets, not quoted."""

    __slots__ = ()


def attributes(values: Mapping[str, str]) -> str:
    """An attribute list, in the order given."""
    parts = (
        f"{key}=<{value}>" if isinstance(value, Html) else f"{key}={quote(value)}" for key, value in values.items()
    )
    return "[" + ", ".join(parts) + "]"


def text(words: str, *, size: float = EDGE_TEXT, colour: str = INK, bold: bool = False) -> str:
    """Some words of an HTML label."""
    inner = f"<B>{escape(words)}</B>" if bold else escape(words)
    return f'<FONT POINT-SIZE="{size:g}" COLOR="{colour}">{inner}</FONT>'


_PLAIN: Final = 'BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0"'

Word = tuple[str, bool]
"""What is emitted, and whether it is a command."""


@dataclass(frozen=True, slots=True)
class Told:
    """Inputs of one origin that do the same, and what they emit."""

    origin: Origin
    inputs: tuple[str, ...]
    emits: tuple[Word, ...] = ()
    lead: str = "/ "

    def lines(self, wide: int = WIDE, indent: str = "  ", *, bare: bool = False) -> Iterator[str]:
        """Each line as HTML, of about ``wide`` characters; what does not fit goes on indented.

        Inputs are set ``bare`` where size and colour are those of the whole label.
        """
        for words in self.inputs:
            first, *more = _broken(words, wide)
            for each in (first, *(f"{indent}{part}" for part in more)):
                yield escape(each) if bare else text(each, colour=self.origin.ink)
        line, length = "", 0
        for i, (words, command) in enumerate(self.emits):
            comma = "," if i + 1 < len(self.emits) else ""
            if line and length + len(words) > wide:
                yield _quiet(line)
                line, length = indent[1:], 0
            lead = self.lead if i == 0 else " "
            line += escape(lead) + (f"<I>{escape(words)}</I>" if command else escape(words)) + comma
            length += len(lead) + len(words) + len(comma)
        if line:
            yield _quiet(line)


def _broken(words: str, wide: int) -> list[str]:
    """A long wording in as few lines as it needs, of about the same length; broken at its comma if that is in place."""
    head, comma, tail = words.partition(", ")
    if len(words) > wide and comma and max(len(head), len(tail)) < wide:
        return [f"{head},", tail]
    fewest = len(wrap(words, wide))
    return next(each for width in range(1, wide + 1) if len(each := wrap(words, width)) == fewest)


def _quiet(html: str) -> str:
    return f'<FONT POINT-SIZE="{SMALL_TEXT:g}" COLOR="{QUIET}">{html}</FONT>'


def label(told: Iterable[Told], *, across: bool, wide: int = WIDE, after: int = 3) -> Html:
    """The label of an edge: lines, and on the side of the edge as much room as its curve may need."""
    align = "CENTER" if across else "LEFT"
    rows = [
        f'<TD ALIGN="{align}" BALIGN="{align}" CELLPADDING="1">'
        + "".join(f'{line}<BR ALIGN="{align}"/>' for line in each.lines(wide, "" if across else "  ", bare=True))
        + "</TD>"
        for each in told
    ]
    if across:
        body = "".join(f"<TR>{row}</TR>" for row in rows)
        return Html(f'<TABLE {_PLAIN}>{body}<TR><TD HEIGHT="8"></TD></TR></TABLE>')
    body = "".join(f'<TR><TD WIDTH="11"></TD>{row}<TD WIDTH="{after}"></TD></TR>' for row in rows)
    return Html(f"<TABLE {_PLAIN}>{body}</TABLE>")


def box(names: Iterable[str], told: Iterable[Told]) -> Html:
    """The label of a state: its names, and below a rule what it answers without leaving."""
    name = "<BR/>".join(map(escape, names))
    rows = []
    for each in told:
        rows.append('<TR><TD COLSPAN="3" HEIGHT="3"></TD></TR>')
        for i, line in enumerate(each.lines()):
            first = "<TD></TD>" if i else sample(each.origin, 20)
            rows.append(f'<TR>{first}<TD WIDTH="4"></TD><TD ALIGN="LEFT">{line}</TD></TR>')
    if not rows:
        return Html(name)
    head = f'<TR><TD COLSPAN="3" CELLPADDING="3">{name}</TD></TR><HR/>'
    return Html(f"<TABLE {_PLAIN}>{head}{''.join(rows)}</TABLE>")


def sample(kind: Origin, width: int = 28) -> str:
    """A table cell that shows the line of an origin, as the border between two empty cells."""
    style = {"dashed": ' STYLE="DASHED"', "dotted": ' STYLE="DOTTED"'}.get(kind.style, "")
    double = kind.style == "double"
    border = f'BORDER="{max(1, round(kind.width))}" SIDES="{"TB" if double else "T"}" COLOR="{kind.colour}"{style}'
    line = f'<TR><TD {border} HEIGHT="{3 if double else 6}"></TD></TR>'
    cells = f'<TR><TD HEIGHT="5"></TD></TR>{line}' + ('<TR><TD HEIGHT="5"></TD></TR>' if double else "")
    return f'<TD ALIGN="RIGHT" FIXEDSIZE="TRUE" WIDTH="{width}" HEIGHT="14"><TABLE {_PLAIN}>{cells}</TABLE></TD>'


def legend(title: str, origins: Iterable[Origin], emits: Iterable[Word], note: str) -> Html:
    """What stands below a picture: its title, how its lines are to be read, and what it leaves out."""
    cells = [
        f'{sample(each)}<TD WIDTH="2"></TD><TD ALIGN="LEFT">{text(each.word, size=SMALL_TEXT, colour=each.ink)}</TD>'
        for each in origins
    ]
    cells += [f'<TD ALIGN="LEFT">{line}</TD>' for line in Told(ABRIDGED, (), tuple(emits)).lines()]
    return Html(
        '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="2" CELLPADDING="1">'
        f"<TR><TD>{text(title, size=NODE_TEXT, bold=True)}</TD></TR>"
        f'<TR><TD><TABLE BORDER="0" CELLBORDER="0" CELLSPACING="4" CELLPADDING="0"><TR>{"".join(cells)}</TR></TABLE>'
        f"</TD></TR><TR><TD>{_quiet(escape(note))}</TD></TR></TABLE>"
    )


def defaults(*, across: bool, title: str, foot: Html) -> Iterator[str]:
    """What all pictures have in common."""
    graph = {
        "rankdir": "LR" if across else "TB",
        "bgcolor": "white",
        "fontname": FONT,
        "nodesep": "0.2",
        "ranksep": "0.5",
        "pad": "0.15",
        "compound": "true",
        "label": foot,
        "labelloc": "b",
        "tooltip": title,
    }
    node = {
        "shape": "box",
        "style": "rounded,filled",
        "fillcolor": "#F4F6F8",
        "color": INK,
        "fontname": FONT,
        "fontsize": f"{NODE_TEXT}",
        "fontcolor": INK,
        "margin": "0.14,0.07",
        "height": "0.38",
    }
    edge = {"fontname": FONT, "fontsize": f"{EDGE_TEXT}", "arrowsize": "0.7"}
    for kind, values in (("graph", graph), ("node", node), ("edge", edge)):
        yield f"{kind} {attributes(values)};"


def graph(name: str, lines: Iterable[str]) -> str:
    """A whole DOT text."""
    return "\n".join([f"digraph {quote(name)} {{", *(f"  {line}" for line in lines), "}"]) + "\n"


def node(name: str, values: Mapping[str, str]) -> str:
    """A node."""
    return f"{quote(name)} {attributes(values)};"


def edge(source: str, dest: str, values: Mapping[str, str]) -> str:
    """An edge."""
    return f"{quote(source)} -> {quote(dest)} {attributes(values)};"


def start(dest: str) -> Iterator[str]:
    """The mark of the initial state."""
    values = {"shape": "circle", "label": "", "width": "0.13", "height": "0.13", "fillcolor": INK, "style": "filled"}
    yield node("start", {**values, "tooltip": "initial"})
    yield edge("start", dest, {"color": INK, "tooltip": "initial"})


def frame(name: str, words: str, nodes: Iterable[str]) -> Iterator[str]:
    """A frame around some nodes."""
    values = {
        "style": "rounded",
        "color": ABRIDGED.colour,
        "margin": "11",
        "labeljust": "l",
        "labelloc": "t",
        "label": Html(text(words, colour=QUIET)),
        "tooltip": words,
    }
    yield f"subgraph {quote(name)} {{"
    yield f"  graph {attributes(values)};"
    yield from (f"  {each}" for each in nodes)
    yield "}"


def same_level(names: Iterable[str]) -> str:
    """Nodes on one level."""
    return f"{{ rank=same; {' '.join(f'{quote(name)};' for name in names)} }}"
