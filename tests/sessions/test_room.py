"""The walls inside the room, and facts about it that documents rely on."""

import ast
from pathlib import Path

import pytest

import localagent.sessions
from localagent.sessions import clock, disk
from localagent.sessions.disk import Step
from localagent.sessions.errors import Cancelled

ROOM = Path(localagent.sessions.__file__).parent
PURE = {
    "records",
    "payloads",
    "projection",
    "labels",
    "history",
    "facts",
    "sketch",
    "checkpoint",
    "damage",
    "scope",
    "instants",
    "efforts",
}
EFFECTS = {"os", "time", "threading", "random", "uuid", "pathlib", "fcntl", "tempfile", "subprocess", "socket"}
IMPURE = {path.stem for path in ROOM.glob("*.py")} - PURE - {"__init__", "errors"}
MUTATORS = {
    *("mkdir", "write", "fsync", "fdatasync", "ftruncate", "truncate", "rename", "replace", "unlink", "remove"),
    *("utime", "fchmod", "chmod", "link", "symlink", "rmdir", "pwrite", "writev"),
}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.update({node.module or "", *(alias.name for alias in node.names)})
    return names


@pytest.mark.parametrize("module", sorted(PURE))
def test_pure_modules_have_no_effects(module: str) -> None:
    assert not imported(ROOM / f"{module}.py") & (EFFECTS | IMPURE)


def test_every_module_is_named_in_the_overview() -> None:
    named = {path.stem for path in ROOM.glob("*.py") if f":mod:`.{path.stem}`" in (localagent.sessions.__doc__ or "")}
    assert named == {path.stem for path in ROOM.glob("*.py")} - {"__init__"}


def test_no_threads_are_started() -> None:
    for path in ROOM.glob("*.py"):
        assert "Thread(" not in path.read_text()


def test_the_disk_is_changed_through_named_steps_alone() -> None:
    """What is not in ``disk`` only takes away what a failed step has begun."""
    calls = {
        (path.stem, node.attr)
        for path in ROOM.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
        if node.attr in MUTATORS
    }
    assert {call for call in calls if call[0] != "disk"} == {
        ("files", "unlink"),
        ("leases", "unlink"),
        ("repair", "unlink"),
    }


def test_steps_are_named_once_and_all_used() -> None:
    sources = "".join(path.read_text() for path in ROOM.glob("*.py"))
    for step in Step:
        assert f"Step.{step.name}," in sources, step
    assert len({step.value for step in Step}) == len(Step)


def test_nobody_watches_by_default() -> None:
    assert disk.watch is disk._unwatched
    for step in Step:
        disk.watch(step, True)


def test_a_token() -> None:
    clock.proceed(clock.never)
    with pytest.raises(Cancelled):
        clock.proceed(lambda: True)
