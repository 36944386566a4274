"""The room is pure: no clock, no threads, no I/O, no chance, and no other room (ARCHITECTURE, walls)."""

import ast
from pathlib import Path

import pytest

import localagent.protocol

ROOM = sorted(Path(localagent.protocol.__file__).parent.glob("*.py"))
ALLOWED = {"collections", "enum", "json", "math", "re", "types", "typing", "msgspec"}


def imported(tree: ast.AST) -> set[str]:
    """Top-level names of absolute imports; relative ones stay in the room, as it has no rooms inside."""
    plain = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    froms = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 0}
    return {name.partition(".")[0] for name in plain | froms}


@pytest.mark.parametrize("file", ROOM, ids=lambda file: file.name)
def test_imports(file: Path) -> None:
    tree = ast.parse(file.read_text())
    assert imported(tree) <= ALLOWED
    assert all(node.level <= 1 for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))


@pytest.mark.parametrize("file", ROOM, ids=lambda file: file.name)
def test_nothing_is_printed_or_opened(file: Path) -> None:
    called = {
        node.func.id
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert called.isdisjoint({"print", "open", "input", "eval", "exec", "__import__"})
