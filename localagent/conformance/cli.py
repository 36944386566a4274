"""``localagent conform``, ``judge`` and ``replay``: what the command line offers. The work is :mod:`.commands`.

Nothing heavy is imported here: the parser is built for every command.
"""

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

COMMANDS: Final = frozenset({"conform", "judge", "replay"})
"""The commands of this room: wrong usage of them is exit status 3, because 2 says inconclusive."""
USAGE: Final = 3
FAULT: Final = 3
"""The suite itself failed: 1, with which Python would end, says violation."""
_ADDING: Final = ("select", "env", "fixture")
"""Options that may be given again, also behind the name of an action; argparse would forget the ones before it."""

Subparsers = argparse._SubParsersAction  # argparse has no public name for it

_EXAMPLES: Final = """\
examples:
  localagent conform -- ./my-backend serve --stdio
  localagent conform smoke -- ./my-backend serve --stdio
  localagent conform --select 'frame.*' --select TURN-14 --report out -- ./my-backend serve --stdio
  localagent conform explain TURN-14

exit status: 0 conformant, 1 violation, 2 inconclusive, 3 wrong usage or a fault of the suite
"""


def split(arguments: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """What stands before the first ``--``, and the command behind it; None without one."""
    given = list(arguments)
    if "--" not in given:
        return given, None
    place = given.index("--")
    return given[:place], given[place + 1 :]


def add(commands: "Subparsers[argparse.ArgumentParser]", selftest: Callable[[argparse.Namespace], int]) -> None:
    """Add the three commands to the parser. ``selftest`` puts the suite to the test, for which this room is too low."""
    _add_conform(commands, selftest)
    judge = commands.add_parser("judge", help="judge a recorded conversation, ours or anybody's")
    judge.add_argument("file", metavar="FILE", help="NDJSON: a transcript, or lines {dir, line} or {direction, frame}")
    judge.add_argument("--json", action="store_true", help="one JSON document instead of text")
    judge.set_defaults(run=run, action="judge")
    replay = commands.add_parser(
        "replay",
        usage="localagent replay [options] FILE -- CMD ARG...",
        help="hold the client's part of a recorded conversation again, with another backend",
    )
    replay.add_argument("file", metavar="FILE", help="NDJSON, as for judge")
    replay.add_argument("--save", metavar="FILE", help="write the new transcript there")
    _target(replay)
    replay.set_defaults(run=run, action="replay")


def _add_conform(
    commands: "Subparsers[argparse.ArgumentParser]", selftest: Callable[[argparse.Namespace], int]
) -> None:
    conform = commands.add_parser(
        "conform",
        usage="localagent conform [options] -- CMD ARG...\n       localagent conform list|explain|smoke|selftest ...",
        help="judge a backend, clause by clause",
        description="Judge a backend of magi-code.local-agent, version 1, clause by clause.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _selection(conform)
    _running(conform)
    conform.set_defaults(run=run, action="conform")
    actions = conform.add_subparsers(metavar="ACTION", required=False)
    listing = actions.add_parser("list", help="list the cases")
    _selection(listing, default=argparse.SUPPRESS)
    listing.set_defaults(action="list")
    explain = actions.add_parser("explain", help="say what a clause, a check or a case is about")
    explain.add_argument("id", metavar="ID", help="as TURN-14, frame.crlf, frame.crlf/answered")
    explain.set_defaults(action="explain")
    smoke = actions.add_parser(
        "smoke",
        usage="localagent conform smoke [options] -- CMD ARG...",
        help="run a dozen cases, to see whether the backend can be judged at all",
    )
    _running(smoke, default=argparse.SUPPRESS)
    smoke.set_defaults(action="smoke")
    _add_selftest(actions, selftest)


def _add_selftest(
    actions: "Subparsers[argparse.ArgumentParser]", selftest: Callable[[argparse.Namespace], int]
) -> None:
    parser = actions.add_parser("selftest", help="see that the suite finds each fault of a zoo of broken backends")
    mutants = "mutants by glob on their name or module; may be given again"
    parser.add_argument("--select", metavar="PATTERN", action="append", default=argparse.SUPPRESS, help=mutants)
    whole = "every mutant through every case that may tell something new, and which checks see none (an hour or more)"
    parser.add_argument("--full", action="store_true", help=whole)
    every = "with --full: also through the cases of which each check has been red already (some two hours)"
    parser.add_argument("--every-pair", action="store_true", help=every)
    minutes = "with --full: play for so many minutes at most; what no mutant is then seen by may be too much"
    parser.add_argument("--minutes", metavar="N", type=float, default=float("inf"), help=minutes)
    record = "with --full: write the checks that see no mutant there"
    parser.add_argument("--record", metavar="FILE", help=record)
    jobs = "children at a time (4: many of them only wait)"
    parser.add_argument("--jobs", metavar="N", type=int, default=4, help=jobs)
    parser.set_defaults(action="selftest", run=selftest)


def _selection(parser: argparse.ArgumentParser, default: object = None) -> None:
    """``default``: SUPPRESS keeps what was given before the name of an action."""
    select = "cases by glob on their id, by clause, tag or family; may be given again"
    _add_again(parser, "select", default, metavar="PATTERN", help=select)
    profile = default or "all"
    parser.add_argument("--profile", choices=("base", "extensions", "all"), default=profile, help="which cases to run")


def _target(parser: argparse.ArgumentParser, default: object = None) -> None:
    home = "a directory that every child gets a fresh copy of, as MC_HOME"
    parser.add_argument("--home", metavar="DIR", default=default, help=home)
    variable = "a variable of the child's environment; may be given again"
    _add_again(parser, "env", default, metavar="K=V", help=variable)
    parser.add_argument("--cwd", metavar="DIR", default=default, help="where the child is started")
    prompts = "TOML: prompts that make the backend's provider do what cases need"
    parser.add_argument("--prompts", metavar="FILE", default=default, help=prompts)
    fixture = "what cases may write into the home beforehand, settings or store; may be given again"
    _add_again(parser, "fixture", default, choices=("settings", "store"), help=fixture)


def _add_again(parser: argparse.ArgumentParser, name: str, default: object, **more: Any) -> None:
    """An option of :data:`_ADDING`."""
    parser.add_argument(f"--{name}", action="append" if default is None else _More, default=default, **more)


def _running(parser: argparse.ArgumentParser, default: object = None) -> None:
    _target(parser, default)
    strict = "what should hold counts like what must hold"
    parser.add_argument("--strict", action="store_true", default=default or False, help=strict)
    patience = "how long the next event of a run may take, at least (20): a live model may need more"
    parser.add_argument("--patience", metavar="SECONDS", type=float, default=default or 20.0, help=patience)
    report = "write report.ndjson, transcripts, junit.xml, report.md and index.html there"
    parser.add_argument("--report", metavar="DIR", default=default, help=report)
    parser.add_argument("--jobs", metavar="N", type=int, default=default or 2, help="children at a time (2)")


class _More(argparse._AppendAction):
    """Appends what is given behind the name of an action: beside what was given before it, not in its place."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        place = f"more_{self.dest}"
        setattr(namespace, place, [*getattr(namespace, place, ()), values])


def fail(text: str) -> NoReturn:
    """End with a message about wrong usage. Raises SystemExit."""
    sys.stderr.write(f"localagent: {text}\n")
    raise SystemExit(USAGE)


def run(options: argparse.Namespace) -> int:
    """Carry out one of the commands; the exit status."""
    needs = options.action in ("conform", "smoke", "replay")
    if needs and not options.command:
        fail(f"{options.action} needs the command of the backend behind --, as in: -- ./my-backend serve --stdio")
    if not needs and options.command is not None:
        fail(f"{options.action} takes no command")
    for name in _ADDING:
        setattr(options, name, [*(getattr(options, name, None) or ()), *getattr(options, f"more_{name}", ())] or None)
    try:
        return _carried_out(options)
    except BrokenPipeError:  # the reader has seen enough; what is still buffered goes nowhere
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except Exception as fault:
        import traceback

        traceback.print_exc()
        fail(f"a fault of the suite: {type(fault).__name__}: {fault}")
    return FAULT


def _carried_out(options: argparse.Namespace) -> int:
    from localagent.conformance import commands

    if isinstance(sys.stdout, io.TextIOWrapper):  # a character that cannot be shown must not cost the report
        sys.stdout.reconfigure(errors="backslashreplace")
    out = sys.stdout or io.StringIO()  # as it is when descriptor 1 is closed
    try:
        status = int(commands.ACTIONS[options.action](options, out, sys.stderr))
        out.flush()
    except commands.UnusableError as fault:
        fail(str(fault))
    return status
