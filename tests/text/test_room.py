"""This room is pure and stands below all others."""

import ast
from pathlib import Path

import localagent.text

ALLOWED = {"collections.abc", "itertools", "localagent.protocol.limits", "re", "typing"}


def test_what_the_room_imports() -> None:
    files = sorted(Path(localagent.text.__file__).parent.glob("*.py"))
    assert len(files) == 7
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= ALLOWED, file.name
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 1 or node.module in ALLOWED, file.name


def test_the_room_says_what_it_offers() -> None:
    for name in localagent.text.__all__:
        assert getattr(localagent.text, name).__doc__, name
