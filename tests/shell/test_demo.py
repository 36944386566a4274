"""The demonstration, run as users run it."""

import json
import os
import subprocess
import sys

from statemachines.registry import MACHINES


def _demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name != "MC_HOME"}
    return subprocess.run(
        [sys.executable, "-m", "localagent", "demo", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=environ,
        check=False,
    )


def test_the_demo_explains_every_frame() -> None:
    done = _demo()
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert "FINDING" not in done.stdout
    assert "\033" not in done.stdout  # colour is for terminals
    for told in (
        "connection          uninitialized -> starting",
        "none -> requested",
        "requested -> allowed",
        "executing -> cancelling(user)",
        "attachment          lazy -> durable",
        ". exit status 0",
        "A second child opens the session again",
    ):
        assert any(told in line for line in lines), told
    assert sum(line.startswith("< run.finished") for line in lines) == 2
    assert any(line.split() == ["findings", "0"] for line in lines)


def test_the_demo_as_json_lines() -> None:
    done = _demo("--json")
    assert (done.returncode, done.stderr) == (0, "")
    *told, last = [json.loads(line) for line in done.stdout.splitlines()]
    summary = last["summary"]
    assert summary["transitions that exist"] == sum(len(spec.rows) for spec in MACHINES.values())
    assert summary["requests"] == sum(each["source"] == "client" for each in told)
    assert summary["answers"] + summary["events"] == sum(each["source"] == "backend" for each in told)
    assert {each["child"] for each in told} == {1, 2}
    (page,) = [each["line"] for each in told if each["child"] == 2 and each["label"] == "history.page r3 result"]
    assert [entry["kind"] for entry in page["result"]["entries"]][:3] == ["user", "assistant", "activity"]
    assert not any(each["findings"] for each in told)
