"""What the system forbids, seen by somebody whom it forbids things: root itself is no proof, so the reader drops it."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localagent.protocol.codes import Code
from localagent.sessions.errors import StoreError

from .kit import House
from .scanning import Scans, ids, put

NOBODY = 65_534


@pytest.fixture
def open_house() -> Iterator[House]:
    """A house that belongs to nobody in particular, where everybody gets to."""
    base = Path(tempfile.mkdtemp(prefix="localagent-"))
    base.chmod(0o755)
    house = House(base)
    yield house
    for path in (house.sessions, base):
        path.chmod(0o755)
    shutil.rmtree(base)


def as_nobody(house: House, look: Callable[[], Any]) -> Any:
    """What ``look`` returns in a process that owns the house and has no privileges."""
    reader, writer = os.pipe()
    if os.geteuid() == 0:
        for path in [house.base, *house.base.rglob("*")]:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    pid = os.fork()
    if pid == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            os.write(writer, json.dumps(look()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        answer = answers.read()
    os.waitpid(pid, 0)
    return json.loads(answer)


def seen(house: House) -> Any:
    found: list[Any] = []
    scans = Scans(house)
    for scan in (scans.page, scans.step):
        try:
            page = scan()
            found.append([sorted(ids(page.sessions)), list(page.notices)])
        except StoreError as fault:
            found.append(fault.code)
    return found


def test_a_history_nobody_may_read_is_left_out(open_house: House) -> None:
    put(open_house, "a", "b")
    open_house.file("b").chmod(0)
    assert as_nobody(open_house, lambda: seen(open_house)) == [[["a"], ["sessions_omitted_invalid"]]] * 2


def test_a_directory_that_may_only_be_read_is_enough(open_house: House) -> None:
    put(open_house, "a")
    open_house.sessions.chmod(0o500)
    assert as_nobody(open_house, lambda: seen(open_house)) == [[["a"], []]] * 2


@pytest.mark.parametrize("mode", [0o000, 0o300, 0o600])
def test_a_directory_that_may_not_be_read_or_entered_is_unavailable(open_house: House, mode: int) -> None:
    """With 0600 names can be seen, and nothing behind them."""
    put(open_house, "a")
    open_house.sessions.chmod(mode)
    assert as_nobody(open_house, lambda: seen(open_house)) == [Code.DISCOVERY_UNAVAILABLE] * 2


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
def test_a_history_of_another_owner_is_left_out(open_house: House) -> None:
    put(open_house, "a", "b")

    def look() -> Any:
        return seen(open_house)

    os.chown(open_house.file("b"), 12345, 12345)
    assert seen(open_house) == [[["a"], ["sessions_omitted_invalid"]]] * 2
    assert as_nobody(open_house, look) == [[["a", "b"], []]] * 2
