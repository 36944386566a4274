"""Commands that run a backend: ``conform``, ``conform smoke``, ``replay``. Those that only read are :mod:`.reading`."""

import os
import platform
import signal
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO

from localagent.conformance import choose, coverage, judge, play, reading, replay, stimuli, transcript
from localagent.conformance.cases import CaseError
from localagent.conformance.model import EVENT_MS, Case, Target
from localagent.conformance.progress import Progress
from localagent.conformance.reading import UnusableError
from localagent.conformance.report import Report, Stream, derive, people, status
from localagent.conformance.suite import Done, Event, Probed, Suite

__all__ = ["ACTIONS", "UnusableError"]


def conform(options: Namespace, out: TextIO, err: TextIO) -> int:
    """Run the selected cases; the exit status. Raises UnusableError."""
    chosen = reading.chosen(options)
    # a profile without a selection asks about every clause of it; a selection about what its cases cite
    universe = () if options.select else choose.universe(options.profile)
    return _run(options, chosen, universe, out, err)


def smoke(options: Namespace, out: TextIO, err: TextIO) -> int:
    """Run a dozen cases; the exit status. Raises UnusableError."""
    return _run(options, choose.smoke(reading.loaded()), (), out, err)


def replayed(options: Namespace, out: TextIO, err: TextIO) -> int:
    """Send the client's lines of a transcript to a backend and judge what comes; the exit status.

    Raises UnusableError.
    """
    try:
        case = replay.to_case(reading.transcript_of(options.file))
    except (replay.NothingToReplayError, CaseError) as fault:
        raise UnusableError(f"{options.file}: {fault}") from None
    target = _target(options)
    suite = Suite(target, (case,), play=play.play, judge=judge.judge, listen=lambda _: None, equip=_equip)
    with _interruptible(suite):
        results, end = suite.run()
    if options.save:
        with _written(options.save):
            transcript.write(next(each.transcript for each in results if each.case == case), options.save)
    report = Report({"strict": False}, results, end)
    out.write(people.render(report, reading.paint(out)))
    return status(report)


def _run(options: Namespace, chosen: Sequence[Case], universe: Sequence[str], out: TextIO, err: TextIO) -> int:
    if options.jobs < 1:
        raise UnusableError(f"--jobs must be 1 or more, not {options.jobs}")
    target = _target(options)
    header = _header(options, target, universe)
    stream = None
    if options.report:
        with _written(options.report):
            stream = Stream(Path(options.report), header)
    progress = Progress(err, reading.paint(err))
    known: dict[str, Any] = {}

    def listen(event: Event) -> None:
        progress(event)
        if isinstance(event, Probed):
            measured = asdict(event.calibration)
            known.update(capabilities=sorted(event.capabilities), calibration=measured)
            if stream is not None:
                stream.target(event.capabilities, measured)
        elif isinstance(event, Done) and stream is not None:
            stream.case(event.result)

    begin = time.monotonic()
    suite = Suite(
        target, chosen, play=play.play, judge=judge.judge, listen=listen, equip=_equip, jobs=options.jobs
    )  # fmt: skip
    with _interruptible(suite), _written(options.report):
        results, end = suite.run()
        progress.close()
        header |= {**known, "seconds": time.monotonic() - begin}
        report = Report(header, results, end, tuple(universe), header["reasons"])
        if stream is not None:
            stream.close(report)
            derive(Path(options.report))
    out.write(people.render(report, reading.paint(out)))
    if options.report:
        out.write(f"written: {Path(options.report) / 'index.html'}, junit.xml, report.md, report.ndjson\n")
    return status(report)


@contextmanager
def _written(place: str | None) -> Iterator[None]:
    """Says where a report could not be written. Raises UnusableError."""
    try:
        yield
    except OSError as fault:
        raise UnusableError(f"{fault.filename or place}: {fault.strerror or fault}") from None


@contextmanager
def _interruptible(suite: Suite) -> Iterator[None]:
    """An interrupt cuts the run, so that its report is whole; the second one ends the program as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}

    def cut(number: int, _: object) -> None:
        signal.signal(number, before[signal.Signals(number)])
        suite.cut()

    for each in before:
        signal.signal(each, cut)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _equip(target: Target, probed: Probed) -> Target:
    """Prompts that the target's provider is known to understand, unless others were given."""
    known = stimuli.PROVIDERS.get(probed.provider or "", {})
    return target if target.prompts else replace(target, prompts=known)


def _target(options: Namespace) -> Target:
    """The backend under test, as the options tell. Raises UnusableError."""
    for name in ("home", "cwd"):
        given = getattr(options, name)
        if given is not None and not Path(given).is_dir():
            raise UnusableError(f"--{name} {given}: no directory")
    environ = {}
    for each in options.env or ():
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise UnusableError(f"--env takes NAME=VALUE, not {each!r}")
        environ[name] = value
    try:
        prompts = stimuli.read(Path(options.prompts)) if options.prompts else {}
    except (OSError, stimuli.PromptsError) as fault:
        raise UnusableError(str(fault)) from None
    return Target(
        argv=tuple(options.command if options.cwd else map(_located, options.command)),
        cwd=options.cwd,
        home=options.home,
        environ=environ,
        prompts=prompts,
        event_ms=1000 * getattr(options, "patience", EVENT_MS / 1000),  # replay asks for no events
        fixtures=frozenset(options.fixture or ()),
    )


def _located(argument: str) -> str:
    """The argument as it is to be given to a child, which starts in a directory of its own: ``server.py`` of the
    user's directory by its absolute path. A bare word without a suffix is taken for what it says.
    """
    path = Path(argument)
    named = not argument.startswith("-") and (len(path.parts) > 1 or path.suffix)
    return str(path.absolute()) if named and path.is_file() else argument


def _header(options: Namespace, target: Target, universe: Sequence[str]) -> dict[str, Any]:
    """What a report begins with. Values of the environment are left out: they may be secrets."""
    again: list[str] = []
    for name in ("home", "cwd", "prompts"):
        if getattr(options, name) is not None:
            again += [f"--{name}", getattr(options, name)]
    for name in target.environ:
        again += ["--env", f"{name}=..."]
    for name in sorted(target.fixtures):
        again += ["--fixture", name]
    if target.event_ms != EVENT_MS:
        again += ["--patience", f"{target.event_ms / 1000:g}"]
    return {
        "argv": list(target.argv),
        "options": again,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} CPUs",
        "python": platform.python_version(),
        "profile": getattr(options, "profile", "all"),
        "select": list(getattr(options, "select", None) or ()),
        "strict": options.strict,
        "jobs": options.jobs,
        "universe": list(universe),
        "reasons": coverage.unexercised(reading.loaded()),
    }


Action = Callable[[Namespace, TextIO, TextIO], int]

ACTIONS: Final[Mapping[str, Action]] = {
    "conform": conform,
    "smoke": smoke,
    "replay": replayed,
    "list": reading.listed,
    "explain": reading.explained,
    "judge": reading.judged,
}
"""What ``options.action`` names."""
