"""`localagent sessions`, run as users run it: a process of its own, its exit status, its bytes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from localagent.sessions_cli import visible
from tests.kit.sessions_cli import Cli, put
from tests.sessions.kit import House, begun

SHOWN = b"user  2026-03-02 08:00:01Z\n    hello\n"


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
def cli(house: House) -> Cli:
    return Cli(house)


def rows(text: bytes) -> list[list[str]]:
    return [line.split() for line in text.decode().splitlines()]


# list


def test_list_is_of_this_directory_and_newest_first(cli: Cli, house: House) -> None:
    put(house, "old", timestamp="2026-01-01T00:00:00Z")
    put(house, "new", timestamp="2026-05-01T00:00:00+02:00")
    put(house, "nowhere", cwd="", timestamp="2026-02-01T00:00:00Z")
    put(house, "there", cwd=str(house.base), timestamp="2026-06-01T00:00:00Z")
    house.put("torn", house.line("torn", "session_title", {"title": "T \u65e5 x"}), b"bad")
    house.put_bytes("void", b"")
    told = cli("list").decode().splitlines()
    assert told == [
        "SESSION  UPDATED               STATE    TITLE   DIRECTORY",
        f"new      2026-04-30 22:00:00Z  ok       -       {house.cwd}",
        f"torn     2026-03-02 08:00:01Z  refused  T \u65e5 x  {house.cwd}",
        "nowhere  2026-02-01 00:00:00Z  ok       -       -",
        f"old      2026-01-01 00:00:00Z  ok       -       {house.cwd}",
        "void     -                     ok       -       -",
        "1 session of other directories: sessions list --all",
    ]
    assert [each["session_id"] for each in cli.json("list", "--all")] == [
        "there",
        "new",
        "torn",
        "nowhere",
        "old",
        "void",
    ]
    assert [each["session_id"] for each in cli.json("list", "--cwd", "..")] == ["there", "nowhere", "void"]
    (there, *_) = cli.json("list", "--cwd", str(house.base))
    assert there == {
        "session_id": "there",
        "state": "ok",
        "code": None,
        "title": None,
        "updated_at": "2026-06-01T00:00:00Z",
        "cwds": [str(house.base)],
        "entries": 2,
        "complete": True,
        "notices": [],
        "fault": None,
        "bytes": house.file("there").stat().st_size,
        "records": 2,
    }


def test_list_of_nothing(cli: Cli, house: House) -> None:
    assert cli("list") == b"no sessions\n"
    assert cli.json("list") == []
    cli.environ["MC_HOME"] = str(house.base / "nowhere")
    assert cli("list", "--all") == b"no sessions\n"
    assert not (house.base / "nowhere").exists()  # looking makes nothing


def test_what_is_shown_is_safe(cli: Cli, house: House) -> None:
    """No sequence, no turned text, no secret, no line that pretends to be another."""
    secret = "ghp_" + "a" * 30
    nasty = f"\x1b]0;owned\x07a\u202eb\x1b[2J\x9bc {secret}\u2028 d"
    put(house, "s", f"{nasty}\nassistant  2026-01-01 00:00:00Z\nfake")
    with house.file("s").open("ab") as file:
        file.write(house.line("s", "session_title", {"title": f"\x1b[31mA\u202eB {secret}\n\u200bC"}) + b"\n")
        file.write(house.line("s", "turn_status", {"status": f"\x1b[2J{secret}"}) + b"\n")
    (house.sessions / "odd\x1b[31m\udcff\n\u202e").touch()
    for told in (
        cli("list"),
        cli("check", status=1),
        cli("repair", "s", status=1),
        cli("show", "s", status=1, stderr=REFUSED),
        json.dumps(cli.json("list"), ensure_ascii=False).encode(),
        json.dumps(cli.json("show", "s", status=1, stderr=REFUSED), ensure_ascii=False).encode(),
    ):
        assert secret.encode() not in told
    shown = cli("show", "s", status=1, stderr=REFUSED).decode()
    assert "\n    a\\u202eb" in shown
    assert "\n    assistant  2026-01-01 00:00:00Z\n" in shown
    assert "odd" in cli("check", status=1).decode().splitlines()[1]
    for told in (cli("list"), cli("list", "--json"), cli("check", status=1), shown.encode()):
        assert not {"\u202e", "\u2028", "\u200b", "\x9b", "\x07"} & set(told.decode())


REFUSED = b"localagent: s: session_invalid: line 4: turn_status: TurnStatus: Invalid enum value - at `$.status`\n"


def test_visible_text_is_still_json() -> None:
    nasty = "a\x00\x1b\x7f\x85\u202e\u2028\ufeff\U000e0041\ud800 \n\t\u65e5\U0001f9ed"
    document = visible(json.dumps(nasty, ensure_ascii=False))
    assert json.loads(document) == nasty
    assert document.isprintable()


def test_a_terminal_that_knows_fewer_characters(cli: Cli, house: House) -> None:
    put(house, "s", "\u65e5")
    cli.environ |= {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    assert b"    \\u65e5\n" in cli("show", "s")
    assert cli.json("show", "s")["entries"][0]["text"] == "\u65e5"


# check


def test_check_says_what_a_client_would_see(cli: Cli, house: House) -> None:
    put(house, "good")
    house.put("half", house.line("half", "user_input", {"text": "u"}, cwd=""))
    assert rows(cli("check")) == [
        ["good", "ok", "2", "entries,", "complete"],
        ["half", "ok", "2", "entries,", "not", "complete,", "cwd_unverified"],
        ["2", "sessions:", "2", "ok"],
    ]
    put(house, "loose")
    house.file("loose").chmod(0o644)
    house.put_bytes("torn", put(house, "torn")[:-5])
    house.lock("gone.writer").write_text("pid=999999999\n")
    (house.sessions / "x y.jsonl").touch()
    busy = begun(house)
    told = cli("check", status=1).decode()
    assert f"{busy.session_id}  busy" in told
    for line in (
        "2 entries, complete",
        "session_invalid: permissions for group or others",
        "session_invalid: line 2: the last record is torn after ",
        ".gone.writer.lock",
        "a stale lease: its holder is gone",
        "no session id: every listing is refused",
        "5 sessions: 2 ok, 1 busy, 2 refused\n",
        "localagent sessions repair torn\n",
    ):
        assert line in told
    found = cli.json("check", status=1)
    assert [each["state"] for each in found["sessions"]].count("refused") == 2
    assert {each["name"]: each["code"] for each in found["names"]} == {
        ".gone.writer.lock": None,
        "x y.jsonl": "discovery_unavailable",
    }
    (house.sessions / "x y.jsonl").unlink()
    assert cli.json("check", "good", busy.session_id)["names"] == []
    house.lock("good.active").write_text("pid=999999999\n")
    assert [each["name"] for each in cli.json("check", "good")["names"]] == [".good.active.lock"]
    (torn,) = cli.json("check", "torn", status=1)["sessions"]
    assert torn["fault"] == {
        "code": "session_invalid",
        "line": 2,
        "what": torn["fault"]["what"],
        "repairable": True,
    }
    assert rows(cli("check", "nope", status=1))[0] == [
        "nope",
        "refused",
        "session_missing:",
        "there",
        "is",
        "no",
        "such",
        "session",
    ]
    busy.release()


def test_nothing_but_apply_writes(cli: Cli, house: House) -> None:
    house.put_bytes("torn", put(house, "torn")[:-5])
    house.lock("torn.writer").write_text("pid=999999999\n")
    before = snapshot(house)
    cli("list"), cli("check", status=1), cli("repair", "torn", status=1)
    cli("show", "torn", status=1, stderr=cli_error(cli, "torn"))
    assert snapshot(house) == before


def cli_error(cli: Cli, session_id: str) -> bytes:
    (one,) = cli.json("check", session_id, status=1)["sessions"]
    fault = one["fault"]
    return f"localagent: {session_id}: {fault['code']}: line {fault['line']}: {fault['what']}\n".encode()


def snapshot(house: House) -> dict[Path, tuple[int, int, int]]:
    found = {path: path.lstat() for path in Path(house.root.path).rglob("*")}
    return {path: (each.st_ino, each.st_size, each.st_mtime_ns) for path, each in found.items()}


# show


def test_show(cli: Cli, house: House) -> None:
    put(house, "s")
    with house.file("s").open("ab") as file:
        file.write(house.line("s", "session_title", {"title": "A title"}) + b"\n")
        file.write(house.line("s", "user_input", {"text": "a\n\nb"}, timestamp="2026-03-02T09:00:00.5Z"))
    assert cli("show", "s").decode().splitlines() == [
        "A title",
        f"s  2026-03-02 09:00:00Z  {house.cwd}",
        "4 entries, not complete",
        "",
        *SHOWN.decode().splitlines(),
        "",
        "assistant  2026-03-02 08:00:01Z",
        "    hi",
        "",
        "user  2026-03-02 09:00:00Z",
        "    a",
        "",
        "    b",
        "",
        "diagnostic (partial)",
        "    Turn interrupted",
    ]
    told = cli.json("show", "s")
    assert told["title"] == "A title"
    assert told["entries"][2:] == [
        {"message_id": "m4", "kind": "user", "text": "a\n\nb", "partial": False, "at": "2026-03-02T09:00:00.500Z"},
        {"message_id": "m4.end", "kind": "diagnostic", "text": "Turn interrupted", "partial": True, "at": None},
    ]


def test_show_of_what_is_refused(cli: Cli, house: House) -> None:
    """What stands before the damage, and what is wrong; a session of elsewhere can be read anywhere."""
    put(house, "s")
    with house.file("s").open("ab") as file:
        file.write(b"\n" + house.line("s", "user_input", {"text": "behind"}))
    told = cli("show", "s", status=1, stderr=b"localagent: s: session_invalid: line 3: an empty line\n")
    assert SHOWN in told
    assert b"behind" not in told
    missing = b"localagent: nope: session_missing: there is no such session\n"
    assert cli("show", "nope", status=1, stderr=missing) == b""
    put(house, "gone", cwd="/nowhere/at/all")
    assert SHOWN in cli("show", "gone")
    cli.environ["MC_HOME"] = str(house.base / "nowhere")
    assert cli("show", "nope", status=1, stderr=missing) == b""


def test_without_a_stdout(cli: Cli, house: House) -> None:
    put(house, "s")
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -m localagent sessions show s >&-', sys.executable],
        cwd=house.cwd,
        env=cli.environ,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("size", [10, 3_000_000])
@pytest.mark.parametrize("arguments", [("show", "s"), ("show", "s", "--json"), ("list",), ("check",)])
def test_a_pipe_that_is_closed_early(cli: Cli, house: House, arguments: tuple[str, ...], size: int) -> None:
    """``| head -1``: whatever still fits a buffer or does not, nobody hears a complaint."""
    put(house, "s", "line\n" * (size // 5))
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run(
        [sys.executable, "-m", "localagent", "sessions", *arguments],
        cwd=house.cwd,
        env=cli.environ,
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert (process.returncode, process.stderr) == (1, b"")
