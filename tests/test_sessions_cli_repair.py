"""`localagent sessions repair`, and command lines that are wrong, run as users run them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.sessions_cli import Cli, put
from tests.sessions.kit import House, begun


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
def cli(house: House) -> Cli:
    return Cli(house)


# repair


def test_repair_reports_and_then_repairs(cli: Cli, house: House) -> None:
    whole = put(house, "torn")
    data = house.put_bytes("torn", whole[:-5]).read_bytes()
    aside = len(whole[:-5]) - whole.index(b"\n") - 1
    told = cli("repair", "torn", status=1).decode()
    assert told.splitlines() == [
        f"torn: 1 damaged line of 2, {aside} of {len(data)} bytes to be set aside",
        f"    line 2: the last record is torn (no JSON: it ends too early): {aside} bytes",
        "    then: 2 entries, not complete",
        "    nothing was changed; to do it: localagent sessions repair --apply torn",
    ]
    assert house.file("torn").read_bytes() == data
    told = cli("repair", "--apply", "torn").decode()
    copy = Path(house.root.path, "salvage/torn/1.bytes")
    assert f"    repaired; all bytes as they were: {copy}\n" in told
    assert told.endswith("    now: 3 entries, not complete\n")
    assert copy.read_bytes() == data
    assert cli("repair", "torn", "--apply") == b"torn: nothing to repair\n"
    cli("check", "torn")
    assert f"Repair set aside {aside} damaged bytes.".encode() in cli("show", "torn")


def test_repair_of_several(cli: Cli, house: House) -> None:
    one, two = put(house, "two").splitlines()
    house.put_bytes("two", one + two + b"\n" + b"x\n" * 30)
    put(house, "good")
    house.put("copy", house.line("good", "x", {}))
    house.put("newer", house.line("newer", "turn_status", {"status": "paused"}))
    busy = begun(house)
    with house.file(busy.session_id).open("ab") as file:
        file.write(b"bad\n")
    ids = ["two", "good", "copy", "newer", "nope", busy.session_id, "two"]
    told = cli("repair", *ids, status=1).decode()
    assert told.count("two: 31 damaged lines of 31, 60 of ") == 1
    assert "    line 1: no JSON: trailing characters: 0 bytes, 2 whole records kept\n" in told
    assert "    line 20: no JSON: invalid character: 2 bytes\n    and 11 more lines\n" in told
    assert "good: nothing to repair\n" in told
    assert "    cannot be repaired: every line is a record of one other session" in told
    assert "newer: nothing to repair; it is refused all the same: session_invalid: line 1: turn_status" in told
    assert "nope: session_missing: there is no such session\n" in told
    assert f"--apply {busy.session_id}; it is in use now, and would be left alone\n" in told
    done = {each["session_id"]: each for each in cli.json("repair", "--apply", *ids, status=1)}
    assert [done[each]["code"] for each in ids[:6]] == [
        None,
        None,
        "session_invalid",
        "session_invalid",
        "session_missing",
        "session_busy",
    ]
    assert [done[each]["salvage"] for each in ids[:3]] == ["salvage/two/1.bytes", None, None]
    assert done["two"]["set_aside"] == 60
    assert done["two"]["damages"][0] == {
        "line": 1,
        "what": "no JSON: trailing characters",
        "set_aside": 0,
        "records_kept": 2,
    }
    busy.release()


def test_without_a_store_every_session_is_missing(cli: Cli, house: House) -> None:
    cli.environ["MC_HOME"] = str(house.base / "nowhere")
    for action in (("check", "s"), ("repair", "s"), ("repair", "--apply", "s")):
        assert b"session_missing: there is no such session\n" in cli(*action, status=1)
    assert not (house.base / "nowhere").exists()


# usage


@pytest.mark.parametrize(
    "session_id", ["../x", "/etc/passwd", "a/b", ".", "..", "", "x" * 65, "s.jsonl", "\u65e5", "a\n", "\x1b[31m"]
)
def test_ids_are_refused_before_the_disk_is_touched(cli: Cli, session_id: str) -> None:
    cli.environ["MC_HOME"] = "relative"  # which would be refused next
    message = cli.refused("show", session_id)
    assert message.startswith(b"localagent: no session id: ")
    assert message.count(b"\n") == 1
    assert b"\x1b" not in message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), b"the following arguments are required: ACTION"),
        (("repair",), b"the following arguments are required: ID"),
        (("show",), b"the following arguments are required: ID"),
        (("show", "a", "b"), b"unrecognized arguments: b"),
        (("list", "--all", "--cwd", "."), b"not allowed with argument"),
        (("list", "--cwd", "nowhere"), b"localagent: nowhere: No such file or directory\n"),
        (("frobnicate",), b"invalid choice"),
    ],
)
def test_wrong_usage(cli: Cli, arguments: tuple[str, ...], words: bytes) -> None:
    assert words in cli.refused(*arguments)


def test_a_store_that_cannot_be_read(cli: Cli, house: House) -> None:
    house.sessions.chmod(0o755)
    for action in (("list",), ("check",), ("repair", "s"), ("show", "s")):
        told = cli.refused(*action)
        assert told == b"localagent: configuration_invalid: sessions/: permissions for group or others\n"
    cli.environ["MC_HOME"] = ""
    assert cli.refused("list").startswith(b"localagent: configuration_invalid: ")


def test_a_working_directory_that_is_gone(cli: Cli, house: House, tmp_path: Path) -> None:
    script = 'cd "$1" && rmdir "$1" && exec "$0" -m localagent sessions list'
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, str(gone)], env=cli.environ, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"localagent: the working directory: No such file or directory\n"
