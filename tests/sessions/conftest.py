"""Fixtures of these tests."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.sessions.kit import House
from tests.sessions.processes import Child, Nursery


@pytest.fixture(autouse=True)
def _patient_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody cuts the power in these tests, so nobody waits for the disk; the steps are watched by name.

    What is killed in test_kill is a process of its own, and syncs in earnest.
    """

    def look(descriptor: int) -> None:
        os.fstat(descriptor)

    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, look, raising=False)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    one = Nursery()
    yield one
    one.close()


@pytest.fixture
def spawn(nursery: Nursery, house: House) -> Iterator[Callable[[], Child]]:
    """Start a process that uses the house; it ends with the test at the latest."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(nursery.child(house.root.path, house.cwd))
