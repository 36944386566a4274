"""The walls of the house: who may import whom, and what the pure rooms must not touch. Each ban says why."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EFFECTS = (
    "asyncio",
    "concurrent",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
)

PURE = {
    "statemachines": "the model is data: it must mean the same everywhere and at any time",
    "localagent/protocol": "what a line means may not depend on where or when it is read",
    "localagent/core": "time and identifiers come in as arguments, so that every run can be repeated",
}

BANS = {
    "statemachines": (("localagent", "transitions", "msgspec"), "the model knows nothing of its users"),
    "localagent/protocol": (
        ("statemachines", "localagent.core", "localagent.shell", "localagent.sessions", "localagent.runner"),
        "the wire layer is below all others",
    ),
    "localagent/core": (
        ("localagent.shell", "localagent.sessions", "localagent.catalog", "localagent.runner", "localagent.cli"),
        "the core asks by commands; it does not know who carries them out",
    ),
    "localagent/sessions": (("localagent.core", "localagent.shell"), "the store is called with plain arguments"),
    "localagent/catalog": (("localagent.core", "localagent.shell"), "the catalog is called with plain arguments"),
    "localagent/settings": (
        (
            "localagent.core",
            "localagent.shell",
            "localagent.catalog",
            "localagent.runner",
            "localagent.sessions.handle",
            "localagent.sessions.listing",
            "localagent.sessions.discovery",
            "localagent.sessions.store",
        ),
        "what startup admits is data; of the store it uses only the ways to read and replace files",
    ),
    "localagent/runner": (("localagent.core", "localagent.shell"), "a runner is called with a sink"),
    "localagent/text": (
        ("statemachines", "localagent.core", "localagent.shell", "localagent.sessions", "localagent.runner"),
        "text is below everything that shows or stores it",
    ),
    "localagent/machines": (
        ("localagent.core", "localagent.shell", "localagent.sessions", "localagent.runner"),
        "the export shows the model, not a program that runs it",
    ),
    "localagent/conformance": (
        ("localagent.core", "localagent.shell", "localagent.sessions", "localagent.runner", "localagent.selftest"),
        "a judge must be able to fail our own backend",
    ),
}

ORDER = (
    ("rows",),
    (
        "connection",
        "attachment",
        "operation",
        "run",
        "persistence",
        "channel",
        "approval",
        "client_call",
        "message",
        "activity",
        "snapshot",
        "output",
    ),
    ("joint", "admission"),
    ("registry",),
    ("step",),
    ("check", "explore", "witness"),
    ("observe",),
    ("always_child", "always_run"),
    ("properties",),
)
"""rows <- machines <- joint, admission <- registry <- what walks them; a module imports only from layers above it."""


def _files(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def _imports(path: Path) -> Iterator[tuple[str, int]]:
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            yield module, node.lineno
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)


def _offences(room: str, banned: tuple[str, ...]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in _files(room)
        for name, line in _imports(path)
        if any(name == each or name.startswith(f"{each}.") for each in banned)
    ]


@pytest.mark.parametrize("room", PURE)
def test_pure_rooms_have_no_effects(room: str) -> None:
    assert _files(room), room
    assert _offences(room, EFFECTS) == [], PURE[room]


def test_judges_are_pure() -> None:
    """A judgement may depend on the transcript alone."""
    judges = [
        path for path in _files("localagent/conformance") if path.stem.startswith("judge") or path.stem == "model"
    ]
    assert len(judges) > 4
    assert [(path.stem, name) for path in judges for name, _ in _imports(path) if name.split(".")[0] in EFFECTS] == []


@pytest.mark.parametrize("room", [*PURE, "localagent/conformance", "localagent/text"])
def test_only_the_command_line_prints(room: str) -> None:
    for path in _files(room):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        names = [call.func.id for call in calls if isinstance(call.func, ast.Name)]
        assert not {"print", "input", "open", "exec", "eval"} & set(names), path


@pytest.mark.parametrize("room", BANS)
def test_nobody_looks_over_a_wall(room: str) -> None:
    banned, why = BANS[room]
    assert _offences(room, banned) == [], why


def test_the_model_uses_the_standard_library_alone() -> None:
    import sys

    for path in _files("statemachines"):
        for name, _ in _imports(path):
            top = name.partition(".")[0]
            assert top in sys.stdlib_module_names | {"statemachines"}, f"{path.name} imports {name}"


def test_the_layers_of_the_model() -> None:
    level = {name: i for i, layer in enumerate(ORDER) for name in layer}
    for path in _files("statemachines"):
        own = path.relative_to(ROOT / "statemachines").with_suffix("").parts[0]
        if own != "__init__":
            names = [name.split(".")[1] for name, _ in _imports(path) if name.startswith("statemachines.")]
            assert [name for name in names if level[name] > level[own]] == [], path.name


def test_only_the_engine_imports_transitions() -> None:
    users = {path.name for path in _files("localagent") for name, _ in _imports(path) if name.startswith("transitions")}
    assert users == {"engine.py"}


def test_only_the_command_line_of_the_package_prints() -> None:
    for path in _files("localagent"):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        if any(isinstance(call.func, ast.Name) and call.func.id == "print" for call in calls):
            assert path.name == "cli.py"


def test_no_file_is_longer_than_a_file_should_be() -> None:
    rooms = ("statemachines", "localagent", "diagrams", "tests")
    one = {"tests/kit/other_backend.py"}  # a whole backend in one file is what it is for
    long = {str(path.relative_to(ROOT)): n for room in rooms for path in _files(room) if (n := _lines(path)) > 420}
    assert long.keys() == one


def _lines(path: Path) -> int:
    return path.read_text().count("\n")
