"""The tests of the tables are tested: break any row, and something must fail.

A mutant is killed by a scenario or, failing that, by what the explorer finds in the lifecycle slice; pinned counts do
not help. What nothing can tell apart stands in ``EQUIVALENT``, with the reason.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter

import pytest

from statemachines.registry import MACHINES
from tests.kit.mutants import (
    Change,
    Mutant,
    by_explorer,
    by_scenario,
    deletions,
    misadmissions,
    redirections,
    silencings,
    uncouplings,
)

_FAILED_IS_IDLE = "a failed child never had a session worker, so the two refusals never meet"
_RUN_IS_ATTACHED = "a run has an attachment, so the two refusals never meet"

EQUIVALENT = {
    (Change.REORDERED, "session.create: not failed, session worker free"): _FAILED_IS_IDLE,
    (Change.REORDERED, "session.open: not failed, session worker free"): _FAILED_IS_IDLE,
    (Change.REORDERED, "session.list: not failed, session worker free"): _FAILED_IS_IDLE,
    (Change.REORDERED, "session.list/continuation: not failed, session worker free"): _FAILED_IS_IDLE,
    (Change.REORDERED, "session.discover: not failed, session worker free"): _FAILED_IS_IDLE,
    (Change.REORDERED, "model.catalog: not failed, session worker free"): _FAILED_IS_IDLE,
    (Change.REORDERED, "model.catalog/continuation: not failed, session worker free"): _FAILED_IS_IDLE,
    (Change.REORDERED, "model.catalog.status: not failed, session worker free"): _FAILED_IS_IDLE,
    (Change.REORDERED, "model.catalog.status/continuation: not failed, session worker free"): _FAILED_IS_IDLE,
    (Change.REORDERED, "model.refresh: not failed, session worker free"): _FAILED_IS_IDLE,
    (Change.REORDERED, "selection.set: not failed, session worker free"): _FAILED_IS_IDLE,
    (Change.REORDERED, "selection.set: no run, attached"): _RUN_IS_ATTACHED,
    (Change.REORDERED, "history.page: not failed, session worker free"): _FAILED_IS_IDLE,
    (Change.REORDERED, "history.page: no run, attached"): _RUN_IS_ATTACHED,
}
"""Changes that nothing can tell from the true model. Rows are not among them."""

Record = Callable[[str, object], None]


def _killer(mutant: Mutant) -> str | None:
    killer = by_scenario(mutant)
    if killer is None and mutant.places:
        killer = by_explorer(mutant, ("lifecycle",))
        return killer and "lifecycle"
    return killer and "scenario"


def _campaign(mutants: Iterable[Mutant], record: Record) -> list[str]:
    """Try every mutant, record who killed how many, and name the survivors that are not excused."""
    began, killed, survivors = perf_counter(), Counter[str](), []
    for mutant in mutants:
        killer = _killer(mutant)
        excused = (mutant.change, mutant.name) in EQUIVALENT
        killed[killer or ("equivalent" if excused else "nobody")] += 1
        if killer is None and not excused:
            survivors.append(mutant.name)
    record("mutants", killed.total())
    for killer, count in killed.items():
        record(f"killed by {killer}", count)
    print(f"{killed.total()} mutants in {perf_counter() - began:.1f} s: {dict(killed)}")  # noqa: T201
    return survivors


@pytest.mark.parametrize(
    "mutants", [deletions, redirections, silencings, uncouplings, misadmissions], ids=lambda make: str(make.__name__)
)
def test_every_change_is_noticed(mutants: Callable[[], Iterator[Mutant]], record_property: Record) -> None:
    assert _campaign(mutants(), record_property) == []


def test_every_row_has_its_mutants() -> None:
    rows = sum(len(spec.rows) for spec in MACHINES.values())
    assert sum(1 for _ in deletions()) == sum(1 for _ in redirections()) == rows


def test_what_is_called_equivalent_is_not_noticed() -> None:
    """The list of exceptions is minimal: each of them exists and survives."""
    found = {
        (mutant.change, mutant.name): mutant
        for mutant in (*deletions(), *redirections(), *uncouplings(), *misadmissions())
        if (mutant.change, mutant.name) in EQUIVALENT
    }
    assert set(found) == set(EQUIVALENT)
    assert [name for (_, name), mutant in found.items() if _killer(mutant)] == []


@pytest.mark.deep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("mutants", [deletions, redirections], ids=lambda make: str(make.__name__))
def test_what_the_explorer_notices_alone(
    mutants: Callable[[], Iterator[Mutant]], machine: str, record_property: Record
) -> None:
    """A measurement, not a demand: how many mutants of a machine's rows exploring would find without scenarios."""
    began, killed, survivors = perf_counter(), Counter[str](), []
    for mutant in mutants():
        if mutant.machine == machine:
            fault = by_explorer(mutant)
            killed[fault.partition(":")[0] if fault else "nobody"] += 1
            if fault is None:
                survivors.append(mutant.name)
    for killer, count in killed.items():
        record_property(f"killed in {killer}", count)
    record_property("survivors", survivors)
    print(f"{machine}: {dict(killed)} in {perf_counter() - began:.0f} s; survivors {survivors}")  # noqa: T201
    assert killed.total() == len(MACHINES[machine].rows)
