"""The page of the steps that a case is made of, from the table that the loader asks."""

from collections.abc import Mapping
from inspect import cleandoc

from diagrams.markdown import NOTICE, code, prose, table
from localagent.conformance import values
from localagent.conformance.steps import ABOUT, EXPECTATION, KINDS, Check, Kind

_HEAD = (
    "A case is a table in `localagent/conformance/cases/*.toml`: `id`, `title`, `tier`, `clauses`, what it `needs` of "
    "the backend's capabilities, which `prompts` and which `fixture`, and `steps`. The key that is the heading names "
    "the kind of a step. A step that compares something is a check where it has `clauses`, named by `check`; `level` "
    "says whether it must hold, should, or is only recorded; `timed` that a busy host can make it fail. Cases are read "
    "strictly: whatever is not on this page is refused when the file is read."
)


def pages() -> dict[str, str]:
    """Path below ``docs/`` -> text."""
    return {"reference/steps.md": _page()}


def _page() -> str:
    lines = [NOTICE, "", "# Steps of a case", "", _HEAD, ""]
    for name, about in ABOUT.items():
        lines += [f"## {name}", "", about, "", *table(("Key", "Takes"), _keys(name, KINDS[name]))]
    lines += ["## Checks", "", "Keys of every step that compares something.", ""]
    lines += table(("Key", "Takes"), ((code(key), _takes(key, EXPECTATION)) for key in EXPECTATION))
    lines += ["## Values", "", *_values()]
    return "\n".join(lines).rstrip() + "\n"


def _keys(name: str, kind: Kind) -> list[tuple[str, str]]:
    """The keys, first the one that names it, then those that it needs."""
    keys = sorted(kind.keys, key=lambda key: (key != name, key not in kind.needs))
    needed = {name, *kind.needs}
    return [(code(key) + ("" if key in needed else " (optional)"), _takes(key, kind.keys)) for key in keys]


def _takes(key: str, rules: Mapping[str, Check]) -> str:
    """What a key takes, in the words of what the loader says of anything else."""
    wrong = rules[key](object())
    return wrong.removeprefix("must be ") or "anything"


def _values() -> list[str]:
    """How values are written: the docstring of the module that compares them, from its second paragraph on."""
    text = cleandoc(values.__doc__ or "").split("\n\n", 1)[1]
    return [prose(text), ""]
