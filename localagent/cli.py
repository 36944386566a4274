"""The command line: parse, call a room, print. ``serve`` goes its own way, before anything heavy is imported."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import argparse


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status.

    0 done, 1 something was found (a frame that no row explains, a property that does not hold, a session that is
    refused), 2 wrong usage. ``conform``, ``judge`` and ``replay`` have 2 for inconclusive and 3 for wrong usage.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["serve"]:
        from localagent.shell.serve import serve

        return serve(given[1:])
    options = _parsed(given)
    try:
        status = int(options.run(options))
        if sys.stdout is not None:  # as it is when descriptor 1 is closed
            sys.stdout.flush()  # a reader who is gone shows here at the latest, not after main
        return status
    except BrokenPipeError:
        _detach_stdout()  # the reader has seen enough; nothing more can be said to it
        return 1
    except KeyboardInterrupt:
        return 130


def _parsed(given: list[str]) -> "argparse.Namespace":
    """The options. Behind the first ``--`` stands the command of another backend, for those that want one."""
    from localagent.conformance import cli as conformance

    if given[:1] == [] or given[0] not in conformance.COMMANDS:
        return parser().parse_args(given)
    given, command = conformance.split(given)
    try:
        options = parser().parse_args(given)
    except SystemExit as end:
        raise SystemExit(conformance.USAGE if end.code == 2 else end.code) from None
    options.command = command
    return options


def parser() -> "argparse.ArgumentParser":
    """The parser of the command line; the shell completions are made from it."""
    import argparse

    from localagent import models_cli, settings_cli
    from localagent.conformance import cli as conformance

    top = argparse.ArgumentParser(
        prog="localagent",
        description="Executable reference for magi-code.local-agent, version 1.",
    )
    top.add_argument("--version", action="version", version=_version())
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    serve = commands.add_parser("serve", help="serve the protocol on stdin and stdout (what a client starts)")
    serve.add_argument("--stdio", action="store_true", help="the one transport there is")

    demo = commands.add_parser("demo", help="start a backend, hold a whole conversation with it, and explain it")
    demo.add_argument("--json", action="store_true", help="one JSON object a line instead of text")
    demo.add_argument("--slow", action="store_true", help="pause between frames")
    demo.set_defaults(run=_demo)

    observe = commands.add_parser(
        "observe", help="explain every frame of a recorded conversation by the rows of the machines"
    )
    observe.add_argument("file", help="NDJSON capture: lines {dir, t, line} or {direction, frame}")
    observe.add_argument("--json", action="store_true", help="one JSON document instead of text")
    observe.set_defaults(run=_observe)

    machines = commands.add_parser("machines", help="show the state machines as text, JSON, DOT or Mermaid")
    machines.add_argument("name", nargs="?", help="one machine; all without it")
    machines.add_argument("--format", choices=("text", "json", "dot", "mermaid"), default="text")
    machines.set_defaults(run=_machines)

    explore = commands.add_parser("explore", help="explore the joint machines and judge every transition")
    explore.add_argument("slice", nargs="*", help="slices to explore; all but the deep one without it")
    explore.set_defaults(run=_explore)
    _add_sessions(commands)
    settings_cli.add(commands, _settings)
    models_cli.add(commands, _models)
    conformance.add(commands, _selftest)
    return top


def _add_sessions(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The offline commands on the store: none needs a backend, all but ``repair --apply`` only read."""
    sessions = commands.add_parser("sessions", help="list, check, repair and show stored sessions, without a backend")
    actions = sessions.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="list the sessions of this directory, newest first")
    where = listing.add_mutually_exclusive_group()
    where.add_argument("--all", action="store_true", help="those of every directory")
    where.add_argument("--cwd", metavar="DIR", help="those of another directory")
    listing.set_defaults(id=[])
    check = actions.add_parser("check", help="say what a client would see of each session, or why it is refused")
    check.add_argument("id", nargs="*", metavar="ID", help="a session; all, and what else lies there, without it")
    repair = actions.add_parser("repair", help="say what repair would set aside of damaged sessions")
    repair.add_argument("id", nargs="+", metavar="ID", help="a session")
    repair.add_argument("--apply", action="store_true", help="do it; every byte is kept in salvage/")
    show = actions.add_parser("show", help="print a session")
    show.add_argument("id", nargs=1, metavar="ID", help="the session")
    for name, action in (("list", listing), ("check", check), ("repair", repair), ("show", show)):
        action.add_argument("--json", action="store_true", help="one JSON document instead of text")
        action.set_defaults(run=_sessions, action=name)


def _version() -> str:
    from importlib.metadata import version

    return f"localagent {version('localagent')}"


def _detach_stdout() -> None:
    """Let what is still buffered go nowhere, or the interpreter would complain about it at its end."""
    import os

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _fail(text: str) -> NoReturn:
    print(f"localagent: {text}", file=sys.stderr)
    raise SystemExit(2)


def _demo(options: "argparse.Namespace") -> int:
    from localagent.demo import demo

    return demo(sys.stdout, as_json=options.json, slow=options.slow)


def _observe(options: "argparse.Namespace") -> int:
    from localagent.observe import observe_file

    try:
        return observe_file(options.file, options.json, sys.stdout)
    except OSError as fault:
        _fail(f"{options.file}: {fault.strerror}")


def _selftest(options: "argparse.Namespace") -> int:
    from localagent.conformance import cli as conformance
    from localagent.selftest import command

    if options.command is not None:
        conformance.fail("selftest takes no command")
    return command.selftest(options, sys.stdout, sys.stderr)


def _machines(options: "argparse.Namespace") -> int:
    from localagent import machines

    write = {
        "text": machines.as_text,
        "json": machines.as_json,
        "dot": machines.as_dot,
        "mermaid": machines.as_mermaid,
    }[options.format]
    try:
        text = write(options.name)
    except machines.UnknownMachineError as fault:
        _fail(str(fault))
    print(text.rstrip("\n"))
    return 0


def _sessions(options: "argparse.Namespace") -> int:
    import io

    from localagent import sessions_cli

    try:
        return sessions_cli.run(options, sys.stdout or io.StringIO(), sys.stderr or io.StringIO())
    except sessions_cli.Unusable as fault:
        _fail(str(fault))


def _settings(options: "argparse.Namespace") -> int:
    import io

    from localagent import settings_cli

    try:
        return settings_cli.run(options, sys.stdout or io.StringIO())
    except settings_cli.Unusable as fault:
        _fail(str(fault))


def _models(options: "argparse.Namespace") -> int:
    import io

    from localagent import models_cli

    try:
        return models_cli.run(options, sys.stdout or io.StringIO(), sys.stderr or io.StringIO())
    except models_cli.Unusable as fault:
        _fail(str(fault))


def _explore(options: "argparse.Namespace") -> int:
    import time

    from statemachines.explore import SLICES, compile_slice, explore
    from statemachines.properties import always, goals, unfired

    names = options.slice or [name for name in SLICES if name != "talk"]
    unknown = [name for name in names if name not in SLICES]
    if unknown:
        _fail(f"no slice named {unknown[0]!r}; there are {', '.join(SLICES)}")
    explored, faults = [], 0
    for name in names:
        model = compile_slice(SLICES[name])
        begin = time.perf_counter()
        report = explore(model, always(model), goals(model), most=10)
        explored.append((model, report))
        seconds = time.perf_counter() - begin
        print(f"{name:<14} {report.states:>9,} states {report.transitions:>11,} transitions {seconds:7.2f} s")
        for fault in report.faults:
            faults += 1
            print(f"\n{fault}\n")
    if not options.slice:
        for line in unfired(explored):
            faults += 1
            print(line)
    print("every property holds" if not faults else f"{faults} faults")
    return 1 if faults else 0
