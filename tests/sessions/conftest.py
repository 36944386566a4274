"""Fixtures of these tests."""

import os
from pathlib import Path

import pytest

from tests.sessions.kit import House


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
