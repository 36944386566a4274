"""Where a case is played: what stood in the home before, what chooses settings, where a case ends, how long to wait."""

import time
from errno import EAGAIN, EMFILE
from json import loads
from pathlib import Path
from typing import Any

import pytest

from localagent.conformance import play as player
from localagent.conformance.model import Target
from tests.conformance.test_play import Hasty, case, exits, marks, play


class Slow(Hasty):
    """Much patience for the start."""

    @property
    def start_ms(self) -> float:
        return 20_000.0


def test_what_stood_in_the_home_is_not_the_childs_doing(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("x")
    program = (
        "import os, sys\nopen(os.environ['MC_HOME'] + '/new', 'w').close()\n"
        'for line in sys.stdin:\n print(\'{"id": "a", "type": "response"}\', flush=True)'
    )
    some = case(
        """
        { send = "status", as = "a" }, { answer = "a", any = true },
        { home_has = "old" }, { home_has = "old", new = true }, { home_has = "n*", new = true },
        { home_has = "gone", new = true },
        """
    )
    played = play(some, program, home=str(tmp_path))
    told = [mark for mark in marks(played) if mark.startswith("home")]
    assert told == ["home 3 holds", "home 5 holds", "home 6 fails: no gone"]


def test_settings_that_a_case_writes_are_not_overruled(tmp_path: Path) -> None:
    program = (
        "import json, os, sys\nsys.stdin.readline()\n"
        "told = {'id': 's', 'type': 'response', 'result': {'env': sorted(os.environ), 'cwd': os.getcwd()}}\n"
        "print(json.dumps(told), flush=True)\nsys.stdin.read()"
    )
    steps = '{ send = "status", as = "s" }, { answer = "s", result = {} }'
    more: dict[str, Any] = {"environ": {"MC_PROVIDER": "x", "MC_OTHER": "y"}, "cwd": str(tmp_path)}
    results = []
    for fixture in ("settings", "store"):
        played = play(case(steps, tier=2, more=f'fixture = "{fixture}"'), program, **more)
        results.append(next(loads(each.data)["result"] for each in played.records if each.kind == "backend"))
    settings, store = results
    assert "MC_OTHER" in settings["env"]
    assert "MC_PROVIDER" not in settings["env"]
    assert settings["cwd"] != str(tmp_path)
    assert "MC_PROVIDER" in store["env"]
    assert store["cwd"] == str(tmp_path)


def test_a_home_of_its_own_is_not_overruled_either() -> None:
    program = "import os; print(os.environ['MC_HOME'])"
    played = play(case("{ exit = [0] }"), program, environ={"MC_HOME": "/elsewhere"})
    assert [each.data for each in played.records if each.kind == "backend"] != [b"/elsewhere\n"]


@pytest.mark.parametrize("code", [EMFILE, EAGAIN])
def test_a_host_without_room_for_a_process_is_no_fault_of_the_target(code: int) -> None:
    def start(*_: object) -> Any:
        raise OSError(code, "no room")

    with pytest.raises(OSError, match="no room"):
        player.play(case("{ exit = [0] }"), Target(("x",)), start=start)


def test_a_pause_lasts_while_there_is_a_child_to_use_it() -> None:
    begin = time.monotonic()
    ended = play(case("{ pause_ms = 50000 }, { exit = [3] }"), "import sys; sys.exit(3)")
    assert time.monotonic() - begin < 40
    assert exits(ended) == [3]
    lasted = play(case("{ pause_ms = 300 }, { close = true }"), "import sys; print(1, flush=True); sys.stdin.read()")
    moments = {each.value: each.t or 0.0 for each in lasted.records if each.kind == "mark"}
    assert moments["step 2"] - moments["step 1"] >= 299


def test_a_condition_that_does_not_hold_ends_the_case() -> None:
    some = case(
        """
        { send = "status", as = "a" }, { answer = "a", error = "not_initialized" },
        { given = "$a.error.code", pattern = "not_initialized" }, { send = "status", as = "b" },
        { answer = "b", any = true }, { given = "$b.result", pattern = "*" }, { send = "status", as = "c" },
        """
    )
    played = play(some)
    assert [loads(each.data)["id"] for each in played.records if each.kind == "client"] == ["a", "b"]
    assert marks(played)[-1] == "step 6"
    assert exits(played) == [0]


def test_whatever_waits_for_a_startup_has_its_patience() -> None:
    program = (
        "import json, sys, time\n"
        "for line in sys.stdin:\n"
        " asked = json.loads(line)\n"
        " if asked['method'] == 'initialize': continue\n"
        " time.sleep(1 if asked['id'] == 's' else 0)\n"
        " print(json.dumps({'id': asked['id'], 'type': 'response', 'result': {}}), flush=True)\n"
    )
    steps = """
        { send = "status", as = "r" }, { answer = "r", result = {} },
        { send = "initialize", as = "i", params = {} }, { send = "status", as = "s" }, { answer = "s", result = {} },
    """
    played = play(case(steps), program, Slow())
    assert not any("gave up" in mark for mark in marks(played))
