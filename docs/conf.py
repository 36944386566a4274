"""Sphinx configuration. Build with ``just docs``; diagrams/render.py makes most of the pages."""

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

project = "localagent"
author = "the localagent maintainers"
copyright = "the localagent maintainers"  # noqa: A001  # Sphinx's name for it
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "localagent"
html_static_path = ["_static"]
html_css_files = ["pictures.css"]
html_copy_source = False
myst_heading_anchors = 3

_PROLOG = re.compile(r"\A.*?(?=<svg)", re.DOTALL)


def inline_pictures(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put SVG pictures into the page itself: an image element would lose their tooltips."""
    if app.builder.format != "html":
        return
    for image in list(doctree.findall(nodes.image)):
        if str(image["uri"]).endswith(".svg"):
            path = Path(str(app.srcdir), image["uri"])
            image.replace_self(nodes.raw("", _figure(path.stem, path.read_text(), image["alt"]), format="html"))


def _figure(name: str, svg: str, title: str) -> str:
    """The picture as an element of a page: ids made unique, a name for screen readers."""
    svg = _PROLOG.sub("", svg).replace('id="', f'id="{name}-')
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)
    return f'<div class="picture">{svg}</div>'


def setup(app: Sphinx) -> None:
    """Register the hook."""
    app.connect("doctree-resolved", inline_pictures)
