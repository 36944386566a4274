"""The command line: parse, call a room, print. ``serve`` goes its own way, before anything heavy is imported."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import argparse


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status.

    0 done, 1 something was found (a frame that no row explains, a property that does not hold), 2 wrong usage.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["serve"]:
        from localagent.shell.serve import serve

        return serve(given[1:])
    options = parser().parse_args(given)
    try:
        return int(options.run(options))
    except BrokenPipeError:
        sys.stderr.close()  # the reader has seen enough; nothing more can be said to it
        return 1
    except KeyboardInterrupt:
        return 130


def parser() -> "argparse.ArgumentParser":
    """The parser of the command line; the shell completions are made from it."""
    import argparse

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
    return top


def _version() -> str:
    from importlib.metadata import version

    return f"localagent {version('localagent')}"


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
