"""A refresh that is killed, or whose disk fails, at each step of the write: the old cache or the new one (ROOT-10)."""

from collections.abc import Iterator

import pytest

from .child import Nursery
from .kit import Desk, House, custom
from .server import Server, answering, models, serving

STEPS = ["REPLACE_CREATE", "REPLACE_WRITE", "REPLACE_SYNC", "REPLACE_RENAME", "REPLACE_SYNC_DIRECTORY"]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as one:
        yield one


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(answering(models("new"))) as one:
        yield one


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_killed(house: House, nursery: Nursery, server: Server, step: str, when: str) -> None:
    old = house.put("bench", ["old"]).read_bytes()
    assert nursery.ask("refresh", house.path, server.url, step, when) == -9
    desk = Desk(house, custom("bench", "old", "new"))
    renamed = (step, when) in (("REPLACE_RENAME", "after"), *(("REPLACE_SYNC_DIRECTORY", each) for each in _WHENS))
    assert desk.models() == (["new"] if renamed else ["old"])
    assert (house.file().read_bytes() == old) != renamed
    left = [each for each in house.folder.iterdir() if each != house.file()]
    assert len(left) == (0 if renamed or (step, when) == ("REPLACE_CREATE", "before") else 1)
    assert desk.page().notices == ()  # what is left is in nobody's way
    assert nursery.ask("refresh", house.path, server.url) == 0
    assert desk.models() == ["new"]


_WHENS = ("before", "after")


@pytest.mark.parametrize("step", STEPS)
def test_failing(house: House, nursery: Nursery, server: Server, step: str) -> None:
    """EXT-REFRESH-31: after the rename the outcome is uncertain, and only reading tells."""
    house.put("bench", ["old"])
    assert nursery.ask("refresh", house.path, server.url, step, "fail") == 3
    assert Desk(house, custom("bench", "old", "new")).models() == (
        ["new"] if step == "REPLACE_SYNC_DIRECTORY" else ["old"]
    )
    assert list(house.folder.iterdir()) == [house.file()]


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_while_the_folder_is_made(house: House, nursery: Nursery, server: Server, when: str) -> None:
    house.folder.rmdir()
    assert nursery.ask("refresh", house.path, server.url, "MAKE_DIRECTORY", when) in (-9, 0)
    assert nursery.ask("refresh", house.path, server.url) == 0
    assert Desk(house, custom("bench", "new")).models() == ["new"]
