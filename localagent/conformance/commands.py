"""Commands that run a backend: ``conform``, ``conform smoke``, ``replay``. Those that only read are :mod:`.reading`."""

import os
import platform
import shutil
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

from localagent.conformance import choose, judge, play, reading, replay, stimuli, transcript
from localagent.conformance.cases import CaseError
from localagent.conformance.model import EVENT_MS, Case, Target
from localagent.conformance.place import Place
from localagent.conformance.progress import Progress
from localagent.conformance.reading import UnusableError
from localagent.conformance.report import Report, Stream, derive, people, status
from localagent.conformance.suite import Done, Event, Probed, Suite

__all__ = ["ACTIONS", "UnusableError"]

PATIENCE_MOST: Final = 86_400.0
"""Seconds that anybody may want to wait for an event: a day."""


def conform(options: Namespace, out: TextIO, err: TextIO) -> int:
    """Run the selected cases; the exit status. Raises UnusableError."""
    chosen = reading.chosen(options)
    # a profile without a selection asks about every clause of it; a selection about what its cases cite
    universe = () if options.select else choose.universe(options.profile)
    return _run(options, chosen, universe, out, err)


def smoke(options: Namespace, out: TextIO, err: TextIO) -> int:
    """Run a dozen cases; the exit status. Raises UnusableError."""
    if options.select or options.profile != "all":
        raise UnusableError("smoke has its own dozen of cases: neither --select nor --profile changes it")
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
    played = next((each.transcript for each in results if each.case == case), None)
    if options.save and played is not None:
        with _written(options.save):
            transcript.write(played, options.save)
    report = Report({"strict": False}, results, end)
    out.write(people.render(report, reading.paint(out)))
    if options.save and played is None:
        err.write(f"{options.save} is not written: the conversation was not held\n")
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
        where = fault.filename or place
        if isinstance(fault, BrokenPipeError) or where is None:
            raise
        raise UnusableError(f"{where}: {fault.strerror or fault}") from None


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
    _copied(options.home)
    patience = getattr(options, "patience", EVENT_MS / 1000)  # replay asks for no events
    if not 0 < patience <= PATIENCE_MOST:
        raise UnusableError(f"--patience takes seconds, more than 0 and at most {PATIENCE_MOST}, not {patience:g}")
    try:
        prompts = stimuli.read(Path(options.prompts)) if options.prompts else {}
    except (OSError, stimuli.PromptsError) as fault:
        raise UnusableError(str(fault)) from None
    return Target(
        argv=_located(options.command, options.cwd),
        cwd=options.cwd,
        home=options.home,
        environ=_environ(options.env or ()),
        prompts=prompts,
        event_ms=1000 * patience,
        fixtures=frozenset(options.fixture or ()),
    )


def _copied(home: str | None) -> None:
    """See that every child can be given a copy of the home. Raises UnusableError."""
    if home is None:
        return
    try:
        Place(home, None).remove()
    except shutil.Error as fault:  # it holds one (from, to, why) for each file
        raise UnusableError(f"--home {home} cannot be copied: {fault.args[0][0][2]}") from None
    except OSError as fault:
        raise UnusableError(f"--home {home} cannot be copied: {fault}") from None


def _environ(given: Sequence[str]) -> dict[str, str]:
    """The variables of ``--env``. Raises UnusableError."""
    environ = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise UnusableError(f"--env takes NAME=VALUE, not {each!r}")
        if name == "MC_HOME":
            raise UnusableError("--env MC_HOME: every child has a home of its own; --home DIR says what stands in it")
        environ[name] = value
    return environ


def _located(command: Sequence[str], cwd: str | None) -> tuple[str, ...]:
    """The command as it is to be given to children, some of which start in a directory of their own: ``server.py`` of
    the user's directory, or of ``--cwd``, by its absolute path. A bare word without a suffix is taken for what it says.
    """
    program, *arguments = command
    own, started = Path(), Path(cwd or "")
    return (_file(program, own, started), *(_file(each, started) for each in arguments))


def _file(argument: str, *directories: Path) -> str:
    path = Path(argument)
    named = not argument.startswith("-") and (len(path.parts) > 1 or path.suffix)
    found = next((each / path for each in directories if named and (each / path).is_file()), None)
    return argument if found is None else str(found.absolute())


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
    if options.strict:
        again.append("--strict")
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
        "reasons": dict(reading.reasons()),
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
