"""The whole kill matrix: forked children are the same backend, and what is not played could not have been red."""

import subprocess
import sys
import threading
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest

from localagent.conformance import cases
from localagent.selftest import campaign, forks, matrix, reach
from localagent.selftest.campaign import Learning, case_of, expected
from localagent.selftest.mutant import PROGRAM, zoo

_CASES = ("shut.idle", "env.restart", "err.all-open")
_NAMES = ("bom-accepted", "blank-prompt-accepted", "shutdown-exits-1")


def _learned() -> Learning:
    known = Learning()
    campaign.unmutated((), 1, known)
    return known


@pytest.fixture(scope="module")
def played() -> tuple[matrix.Matrix, list[tuple[int, int]]]:
    done: list[tuple[int, int]] = []
    wanted = set(_CASES) | {case_of(check) for name in _NAMES for check in expected()[name]}
    some = [case for case in cases.load() if case.id in wanted]
    mutants = [zoo()[name] for name in _NAMES]
    due = {"err.all-open/goes-on"}  # none of them turns it red
    return matrix.whole(mutants, some, _learned(), 2, lambda *count: done.append(count), due=due), done


def test_forked_mutants_are_killed_by_the_checks_that_they_name(
    played: tuple[matrix.Matrix, list[tuple[int, int]]],
) -> None:
    found, done = played
    assert [outcome.mutant.name for outcome in found.outcomes] == list(_NAMES)
    assert [outcome.mutant.name for outcome in found.outcomes if not outcome.killed] == []
    runs = sum(len(outcome.red) for outcome in found.outcomes)
    first = [count for count, _ in done].index(1, 1)  # behind them some are played once more
    assert [count for count, _ in done[:first]] == list(range(1, first + 1))
    assert done[first - 1] == (first, first)
    assert first > runs  # the control ran too


def test_the_control_is_green_there(played: tuple[matrix.Matrix, list[tuple[int, int]]]) -> None:
    assert played[0].noise == {}


def test_what_a_fault_cannot_reach_is_not_played(played: tuple[matrix.Matrix, list[tuple[int, int]]]) -> None:
    found = {outcome.mutant.name: outcome for outcome in played[0].outcomes}
    assert played[0].spared > 0
    assert "shut.idle" not in found["blank-prompt-accepted"].red  # it never looks at a prompt
    assert "shut.idle" in found["bom-accepted"].red  # every line is looked at
    assert found["bom-accepted"].red["shut.idle"] == ()


def _outcome(name: str, red: dict[str, tuple[str, ...]], *names: str, sane: bool = True) -> campaign.Outcome:
    return campaign.Outcome(replace(forks.CONTROL, name=name), names, red, frozenset(red), sane)


def test_what_a_busy_host_may_have_spoiled_is_looked_at_again() -> None:
    control = _outcome("control", {"a.b": (), "a.noisy": ("a.noisy/x",)})
    killed = _outcome("killed", {"a.b": ("a.b/x",)}, "a.b/x")
    missed = _outcome("missed", {"a.c": ()}, "a.c/x", "a.d: trace/ENV-01")
    wreck = _outcome("wreck", {"a.b": ("a.b/x",)}, "a.b/x", sane=False)
    found = matrix.doubtful([control, killed, missed, wreck], [control.mutant], {"a.b/x", "a.e/x"})
    assert found == {"a.noisy", "a.c", "a.d", campaign.SANITY.id, "a.e"}
    assert matrix.doubtful([killed], [control.mutant], {"a.b/x"}) == frozenset()


def test_what_should_be_seen_and_is_not_is_played_once_more(
    played: tuple[matrix.Matrix, list[tuple[int, int]]],
) -> None:
    found, done = played
    first = [count for count, _ in done].index(1, 1)
    again = len(done) - first
    assert 2 * matrix.CONTROLS < again <= 2 * (len(_NAMES) + matrix.CONTROLS)  # the probe, the case of what is due
    assert all(outcome.red.get("err.all-open", ()) == () for outcome in found.outcomes)


# a fork


def test_no_fork_beside_another_thread() -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        with pytest.raises(RuntimeError, match="a fork beside"):
            forks.forking(forks.CONTROL)((sys.executable, *PROGRAM, "x", "serve", "--stdio"), (0, 1, 2), "/", {})
    finally:
        over.set()
        thread.join()


def test_another_program_is_started_as_it_is() -> None:
    started = forks.forking(forks.CONTROL)((sys.executable, "-c", "raise SystemExit(7)"), (0, 1, 2), "/", {})
    assert started.wait() == 7


_FORKED = """
import os, sys
from dataclasses import replace
from localagent.selftest import forks
from localagent.selftest.mutant import PROGRAM

def broken():
    raise ValueError("no such place")

install, *arguments = sys.argv[1:]
mutant = replace(forks.CONTROL, install=broken if install == "broken" else lambda: None)
child = forks.forking(mutant)((sys.executable, *PROGRAM, "x", "serve", *arguments), (0, 1, 2), "/", dict(os.environ))
print(child.wait(), child.wait())
"""


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (("ok", "--stdio", "x"), 2, "localagent:"),
        (("ok", "--help"), 0, ""),
        (("broken", "--stdio"), 1, "no such place"),
    ],
)
def test_a_fork_ends_as_the_program_does(arguments: tuple[str, ...], status: int, told: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FORKED, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == f"{status} {status}"
    assert told in done.stderr


# what a fault can reach

_REPLACED = """
from localagent.selftest import forks, reach
from localagent.selftest.mutant import zoo
forks.preload()
for name in ("prompt-bound-in-characters", "prompt-bound-below", "wrong-code-for-params", "listing-ends-early"):
    print(name, reach.replaced([zoo()[name]])[name])
"""


def test_a_fault_says_what_it_replaces() -> None:
    done = subprocess.run([sys.executable, "-c", _REPLACED], capture_output=True, text=True, timeout=60, check=True)
    characters, bound, code, listing = done.stdout.splitlines()
    assert "localagent/protocol/measure.py" in characters
    assert characters.endswith(":utf8_bytes'})")
    assert "localagent/protocol/params.py" in bound  # where it is read
    assert "localagent/protocol/framing.py" not in bound  # it has bounds, too, but others
    assert code.endswith(" None")  # a field may be read by anybody
    assert "localagent/sessions/listing.py" in listing


class _Owner:
    @property
    def shown(self) -> int:
        return 1

    def told(self) -> int:
        return 2

    def each(self) -> Any:
        yield 3


@lru_cache
def _cached() -> int:
    return 4


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (_Owner.shown, ["shown"]),
        (_Owner.told, ["told"]),
        (_Owner().told, ["told"]),
        (_Owner.each, []),  # it runs when it is asked for its first, if ever
        (_cached, []),  # it does not run when its answer is known
        (17, []),
        (_Owner, []),
        (len, []),
    ],
)
def test_only_what_runs_at_a_call_can_be_seen_to_run(value: object, names: list[str]) -> None:
    assert [code.co_name for code in reach._codes(_Owner, "shown", value)] == names


def test_a_value_of_a_module_is_known_by_the_functions_that_name_it() -> None:
    names = {code.co_qualname for code in reach._naming(reach, "_OURS")}
    assert "_trace.<locals>.look" in names
    assert names & {"_place", "_trace", "<module>"} == set()
