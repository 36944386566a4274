"""`localagent settings`: the schema of settings, what a startup would say of them and why, and a first file.

Nothing here needs a backend. ``check`` only reads; it tells every fault, not the first alone, and never a value.
"""

import os
from argparse import Namespace
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    import argparse

    from localagent.sessions.paths import Root
    from localagent.settings.admit import Examination

ACTIONS: Final = {
    "schema": "print the JSON Schema of settings.json",
    "check": "say what a startup in this directory would refuse: file, key, what was expected",
    "init": "write a first settings.json; one that exists is left alone",
}


class Unusable(Exception):  # noqa: N818 - says what is wrong
    """No store can be where it is to be: exit status 2."""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", execute: Callable[[Namespace], int]) -> None:
    """Add the command to the parser; nothing heavy is loaded for that."""
    settings = commands.add_parser("settings", help="print the schema of the settings, check them, write the first")
    actions = settings.add_subparsers(metavar="ACTION", required=True)
    for name, text in ACTIONS.items():
        action = actions.add_parser(name, help=text)
        if name == "check":
            action.add_argument("--json", action="store_true", help="one JSON document instead of text")
        action.set_defaults(run=execute, action=name)


def run(options: Namespace, out: TextIO) -> int:
    """Carry out an action; the exit status: 0 all is well, 1 a startup would fail, or there is a file already.

    Raises Unusable.
    """
    actions: dict[str, Callable[[Namespace, TextIO], int]] = {"schema": _schema, "check": _check, "init": _init}
    return actions[options.action](options, out)


def _schema(_options: Namespace, out: TextIO) -> int:
    from localagent.settings import schema

    out.write(schema.document().decode())
    return 0


def _located() -> str:
    from localagent.sessions import paths
    from localagent.sessions.errors import StoreError

    try:
        return paths.locate(os.environ)
    except StoreError as fault:
        raise Unusable(str(fault)) from None


def _init(_options: Namespace, out: TextIO) -> int:
    """Prepare the store as a first startup does, its settings included (ROOT-06)."""
    from localagent.sessions import paths
    from localagent.sessions.errors import StoreError

    from .sessions_cli import visible

    place = _located()
    path = os.path.join(place, paths.SETTINGS)
    existed = os.path.lexists(path)
    try:
        paths.prepare(place)
    except (StoreError, OSError) as fault:
        raise Unusable(str(fault)) from None
    out.write(visible(f"{path} exists; it was left as it is\n" if existed else f"wrote {path}\n"))
    return int(existed)


def _check(options: Namespace, out: TextIO) -> int:
    from localagent.runner import MODEL, PROVIDER
    from localagent.sessions.paths import Root, canonical
    from localagent.settings.admit import examine
    from localagent.settings.providers import Embedded

    place = _located()
    try:
        root = Root(canonical(place) if os.path.lexists(place) else os.path.abspath(place))
        cwd = canonical(os.getcwd())
        told = examine(root, cwd, os.environ, Embedded(PROVIDER, MODEL))
    except OSError as fault:
        raise Unusable(str(fault)) from None
    _look_further(told, root)
    if options.json:
        _write_json(told, out)
    else:
        _write_text(told, root, out)
    return int(bool(told.faults))


def _look_further(told: "Examination", root: "Root") -> None:
    """Add what else makes a startup fail: the folder of sessions, the script, servers that nobody can connect yet."""
    from localagent.protocol.codes import Code
    from localagent.runner import script
    from localagent.sessions.errors import Unsafe
    from localagent.sessions.paths import SETTINGS
    from localagent.settings.faults import Fault

    sessions = os.path.join(root.path, "sessions")
    if os.path.lexists(sessions):
        try:
            with root.sessions():
                pass
        except (OSError, Unsafe) as fault:
            found = fault.strerror or "" if isinstance(fault, OSError) else str(fault)
            expected = "a real directory of this user, closed to group and others (chmod 700)"
            told.faults.append((Code.CONFIGURATION_INVALID, Fault(sessions, "", expected, found)))
    path = told.settings.localagent.script if told.settings else None
    if path is not None:
        try:
            script.load(Path(path))
        except script.ScriptError as fault:
            where = Fault(
                os.path.join(root.path, SETTINGS), "localagent.script", "a script that can be played", str(fault)
            )
            told.faults.append((Code.CONFIGURATION_INVALID, where))
    for name in told.servers:
        expected = "no approved MCP server: this backend cannot connect any yet"
        told.faults.append((Code.MCP_UNAVAILABLE, Fault("MCP server", name, expected)))


def _code(told: "Examination") -> str | None:
    """The code that ``initialize`` would answer (BASE-OP-83)."""
    from localagent.protocol.codes import Code

    found = {code for code, _ in told.faults}
    order = (Code.CONFIGURATION_INVALID, Code.PROFILE_INVALID, Code.PROVIDER_UNAVAILABLE, Code.MCP_UNAVAILABLE)
    return next((str(code) for code in order if code in found), None)


def _write_json(told: "Examination", out: TextIO) -> None:
    from json import dumps

    from localagent.sessions.inspect import printable

    from .sessions_cli import visible

    faults: list[dict[str, Any]] = [
        {"code": str(code), **{name: printable(word) for name, word in asdict(fault).items()}}
        for code, fault in told.faults
    ]
    choice = told.choice
    selection = None
    if choice is not None:
        selection = {"provider": printable(choice.provider), "model": printable(choice.model), "effort": choice.effort}
    document = {
        "code": _code(told),
        "faults": faults,
        "notes": [printable(note) for note in told.notes],
        "selection": selection,
    }
    out.write(visible(dumps(document, ensure_ascii=False, indent=1)) + "\n")


def _write_text(told: "Examination", root: "Root", out: TextIO) -> None:
    from localagent.sessions.inspect import printable

    from .sessions_cli import visible

    def line(text: str) -> str:
        return visible(printable(text)).replace("\n", "\\n") + "\n"

    for code, fault in told.faults:
        out.write(line(f"{code}: {fault}"))
    for note in told.notes:
        out.write(line(f"note: skipped {note}"))
    if told.faults:
        out.write(f"a startup here would fail: {_code(told)}\n")
    elif told.choice is not None:
        choice = told.choice
        out.write(line(f"{root.path}: all is well; {choice.provider}/{choice.model} is selected"))
