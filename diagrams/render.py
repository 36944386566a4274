"""Write everything that is made from the tables: DOT, SVG, and the generated pages of the documentation.

``python diagrams/render.py`` writes it anew, ``--check`` compares it with what is committed and exits 1 when
something differs. Pictures are laid out by ``graphviz-pure`` alone, pinned to one version: its bytes are the same on
every platform, those of another ``dot`` are not.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

import graphviz
from graphviz.backend import dot_command

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:  # run as a script, before or without an installation
    sys.path.insert(0, str(ROOT))

from diagrams import checks, durability, pages, reference, steps  # noqa: E402
from diagrams.markdown import NOTICE  # noqa: E402
from localagent.machines import PICTURES  # noqa: E402

DOT = Path(sys.executable).with_name("graphviz-pure")
GENERATED = ("diagrams/*.dot", "diagrams/*.svg", "docs/**/*.md")
"""Where generated files are; pages among others that are written by hand."""


def svg(source: str) -> str:
    """The picture of a DOT text."""
    dot_command.DOT_BINARY = DOT
    drawn: bytes = graphviz.pipe("dot", "svg", source.encode())
    return drawn.decode()


def made() -> dict[str, str]:
    """Path below the root -> text, for everything that is generated."""
    found: dict[str, str] = {}
    for name, draw in PICTURES.items():
        source = draw()
        found[f"diagrams/{name}.dot"] = source
        found[f"diagrams/{name}.svg"] = svg(source)
    for source_of in (pages, reference, durability, steps, checks):
        found |= {f"docs/{path}": text for path, text in source_of.pages().items()}
    return found


def differences(wanted: Mapping[str, str], root: Path = ROOT) -> list[str]:
    """The paths whose committed bytes differ, that are missing, or that nobody makes any more."""
    differ = [path for path, text in wanted.items() if _read(root / path) != text.encode()]
    return sorted({*differ, *(_present(root) - wanted.keys())})


def _present(root: Path) -> set[str]:
    """The generated files that are there; a page is one by its first line."""
    found = (path for pattern in GENERATED for path in root.glob(pattern))
    return {
        path.relative_to(root).as_posix()
        for path in found
        if path.suffix != ".md" or path.read_text(encoding="utf-8").startswith(NOTICE)
    }


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def write(wanted: Mapping[str, str], root: Path = ROOT) -> list[str]:
    """Bring the files up to date; the paths that changed."""
    changed = differences(wanted, root)
    for name in changed:
        path = root / name
        if name in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(wanted[name].encode())
        else:
            path.unlink()
    return changed


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="Write what is made from the tables: DOT, SVG, generated pages.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when something is out of date")
    check = parser.parse_args(arguments).check
    changed = differences(made()) if check else write(made())
    for path in changed:
        print(f"{'out of date' if check else 'written'}: {path}")
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
