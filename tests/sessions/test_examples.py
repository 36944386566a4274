"""The four sessions of store.md, section 11, as the published backend would write them."""

from typing import Any

import pytest

from localagent.sessions import facts
from localagent.sessions.facts import Facts
from localagent.sessions.handle import Handle
from localagent.sessions.instants import spell
from localagent.sessions.records import parse
from tests.sessions.kit import DATA, House, is_complete, shown

EXAMPLES: dict[str, tuple[list[tuple[str, str, bool]], bool]] = {
    "harbor-7f3": (
        [
            ("user", "Which tides are listed for Friday?", False),
            ("reasoning_summary", "Find the tide table first.", False),
            ("assistant", "I will look it up. ", False),
            ("activity", "read 1 file: completed", False),
            ("assistant", "Friday: 04:10 and 16:32.", False),
        ],
        True,
    ),
    "kiln-22c": (
        [
            ("user", "Sort the glaze recipes.", False),
            ("assistant", "Starting with the celadons.", True),
            ("activity", "bash sort glazes.txt: started", True),
            ("diagnostic", "Turn interrupted", True),
        ],
        False,
    ),
    "orchard-90b": (
        [
            ("compaction", "Rows 1 to 4 are pruned; row 5 waits for frost.", False),
            ("assistant", "Row 5 is next.", False),
            ("user", "And row 6?", False),
            ("assistant", "Row 6 needs no cut.", False),
        ],
        True,
    ),
    "loom-5d1": (
        [
            ("user", "Count the threads per file.", False),
            ("activity", "code_mode: completed", False),
            ("activity", "list_files .: completed", False),
            ("diagnostic", "One entry was skipped.", False),
            ("assistant", "Two files so far", True),
            ("diagnostic", "Turn cancelled", True),
            ("user", "Write the total to count.txt", False),
            ("activity", "write count.txt: completed", False),
            ("diagnostic", "The model endpoint closed early.", False),
            ("diagnostic", "Turn failed", True),
            ("diagnostic", "stream ended before completion", True),
        ],
        True,
    ),
}


def place(house: House, name: str) -> bytes:
    """Copy an example, its directory replaced by a real one."""
    data = (DATA / f"{name}.jsonl").read_bytes().replace(b"/home/ada/notes", house.cwd.encode())
    house.put_bytes(name, data)
    return data


def opened(house: House, name: str) -> Handle:
    return house.store().open(name)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_opens_and_pages_as_stated(house: House, name: str) -> None:
    data = place(house, name)
    handle = opened(house, name)
    assert (shown(handle), is_complete(handle)) == EXAMPLES[name]
    assert (handle.durable, handle.notices, handle.scope) == (True, (), None)
    handle.release()
    assert house.file(name).read_bytes() == data
    assert house.names() == {f"{name}.jsonl"}


def test_saved_selections(house: House) -> None:
    saved: dict[str, Any] = {}
    for name in EXAMPLES:
        place(house, name)
        handle = opened(house, name)
        saved[name] = handle.preferences
        handle.release()
    assert saved == {
        "harbor-7f3": facts.Preferences("bench", "tiny-chat", "xhigh"),
        "kiln-22c": None,
        "orchard-90b": facts.Preferences("bench", "tiny-chat", "high"),
        "loom-5d1": None,
    }


def test_titles_and_times(house: House) -> None:
    stated = {
        "harbor-7f3": ("Friday tides", "2026-03-02T08:00:11Z"),
        "kiln-22c": (None, "2026-03-02T09:10:03Z"),
        "orchard-90b": ("Pruning plan", "2026-03-02T11:41:03Z"),
        "loom-5d1": (None, "2026-03-02T13:05:04Z"),
    }
    for name, (title, time) in stated.items():
        gathered = Facts()
        for line in (DATA / f"{name}.jsonl").read_bytes().splitlines():
            gathered.add(parse(line, name))
        assert gathered.newest is not None
        assert (gathered.title, spell(gathered.newest)) == (title, time)


def test_an_example_goes_on(house: House) -> None:
    from tests.sessions.kit import turn

    data = place(house, "harbor-7f3")
    handle = opened(house, "harbor-7f3")
    handle.append(turn(1))
    handle.refresh()
    assert shown(handle) == [
        *EXAMPLES["harbor-7f3"][0],
        ("user", "prompt 1", False),
        ("assistant", "answer 1", False),
    ]
    assert house.file("harbor-7f3").read_bytes().startswith(data)
    handle.release()
