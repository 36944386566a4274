"""The root: where it is, what is made in it, and who may look in (ROOT, ENV-35 to ENV-42)."""

import hashlib
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from localagent.protocol.codes import Code
from localagent.sessions import paths
from localagent.sessions.clock import Clock
from localagent.sessions.disk import Step
from localagent.sessions.errors import Cancelled, StoreError, Unsafe
from localagent.sessions.files import replace
from localagent.sessions.paths import Root
from tests.sessions.kit import House, StillClock, failing, refusal


def mode(path: Path | str) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


# where (ROOT-01, ROOT-02)


def test_mc_home_is_the_root_and_resolving_creates_nothing(tmp_path: Path) -> None:
    home = str(tmp_path / "not" / "yet")
    assert paths.locate({"MC_HOME": home}) == home
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("value", ["", "relative", "./x", "~/store"])
def test_an_empty_or_relative_mc_home_is_refused(value: str) -> None:
    assert refusal(lambda: paths.locate({"MC_HOME": value})) is Code.CONFIGURATION_INVALID
    assert refusal(lambda: paths.prepare(value)) is Code.CONFIGURATION_INVALID


def test_what_exists_there_must_be_a_directory_or_a_link_to_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    assert paths.locate({"MC_HOME": str(tmp_path / "link")})
    for name in ("file", "dangling"):
        assert refusal(lambda name=name: paths.locate({"MC_HOME": str(tmp_path / name)})) is Code.CONFIGURATION_INVALID  # type: ignore[misc]


@pytest.mark.skipif(sys.platform != "linux", reason="the folder of this platform is named in the next test")
def test_without_mc_home_it_is_the_data_directory_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert paths.locate({}) == str(tmp_path / "localagent")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert paths.locate({}) == str(tmp_path / ".local/share/localagent")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform != "darwin", reason="macOS only")
def test_on_macos_it_is_application_support(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert paths.locate({}) == str(tmp_path / "Library/Application Support/localagent")


# what is made (ROOT-05 to ROOT-07)


@pytest.mark.parametrize("umask", [0o022, 0o000, 0o777, 0o277])
def test_a_new_root_is_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        root = paths.prepare(str(tmp_path / "a" / "b"))
    finally:
        os.umask(before)
    assert root.path == str((tmp_path / "a" / "b").resolve())
    assert sorted(os.listdir(root.path)) == ["cache", "checkpoints", "sessions", "settings.json", "state"]
    assert mode(tmp_path / "a") == mode(root.path) == 0o700
    assert {mode(Path(root.path) / name) for name in ("cache", "checkpoints", "sessions", "state")} == {0o700}
    assert mode(Path(root.path) / "settings.json") == 0o600
    assert (Path(root.path) / "settings.json").read_bytes() == b'{\n  "schema_version": 2\n}\n'
    assert os.listdir(Path(root.path) / "sessions") == []


def test_the_order_of_creation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    mkdir, rename = os.mkdir, os.rename

    def note_mkdir(name: str, *rest: Any, **more: Any) -> None:
        made.append(name)
        mkdir(name, *rest, **more)

    def note_rename(old: str, new: str, **more: Any) -> None:
        made.append(new)
        rename(old, new, **more)

    monkeypatch.setattr(os, "mkdir", note_mkdir)
    monkeypatch.setattr(os, "rename", note_rename)
    paths.prepare(str(tmp_path / "home"))
    assert made == ["home", "cache", "state", "checkpoints", "sessions", "settings.json"]


def test_what_exists_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "cache").mkdir(parents=True, mode=0o755)
    home.chmod(0o755)
    (home / "primary-agents").mkdir()
    (home / "settings.json").write_text("not even json")
    (home / "settings.json").chmod(0o644)
    paths.prepare(str(home))
    assert (home / "settings.json").read_text() == "not even json"
    assert (mode(home), mode(home / "cache"), mode(home / "settings.json")) == (0o755, 0o755, 0o644)
    assert sorted(os.listdir(home)) == ["cache", "checkpoints", "primary-agents", "sessions", "settings.json", "state"]


def test_preparing_twice_changes_nothing(house: House) -> None:
    before = {path: path.lstat().st_mtime_ns for path in Path(house.root.path).rglob("*")}
    assert paths.prepare(house.root.path) == house.root
    assert {path: path.lstat().st_mtime_ns for path in Path(house.root.path).rglob("*")} == before


def test_a_dangling_settings_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.json").symlink_to(tmp_path / "outside")
    paths.prepare(str(tmp_path / "home"))
    assert not (tmp_path / "outside").exists()


def loosen(sessions: Path) -> None:
    sessions.chmod(0o750)


def link(sessions: Path) -> None:
    sessions.rename(sessions.with_name("elsewhere"))
    sessions.symlink_to(sessions.with_name("elsewhere"))


def be_a_file(sessions: Path) -> None:
    sessions.rmdir()
    sessions.touch(0o600)


@pytest.mark.parametrize("spoil", [loosen, link, be_a_file])
def test_a_sessions_folder_that_is_not_ours_alone_is_refused_and_not_repaired(house: House, spoil) -> None:  # type: ignore[no-untyped-def]
    spoil(house.sessions)
    before = os.lstat(house.sessions)
    assert refusal(lambda: paths.prepare(house.root.path)) is Code.CONFIGURATION_INVALID
    assert os.lstat(house.sessions) == before
    with pytest.raises((Unsafe, OSError)), house.root.sessions():
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a folder away needs root")
def test_a_sessions_folder_of_somebody_else_is_refused(house: House) -> None:
    os.chown(house.sessions, 12345, 12345)
    assert refusal(lambda: paths.prepare(house.root.path)) is Code.CONFIGURATION_INVALID


def test_a_root_that_cannot_be_made_is_a_failed_startup(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert refusal(lambda: paths.prepare(str(tmp_path / "file" / "home"))) is Code.STARTUP_FAILED
    with failing([Step.MAKE_DIRECTORY], OSError(28, "No space left on device")):
        assert refusal(lambda: paths.prepare(str(tmp_path / "home"))) is Code.STARTUP_FAILED


def test_two_first_starts_write_one_settings_file(tmp_path: Path) -> None:
    """LEASE-01: the second waits for the first, and then finds its file."""
    home = tmp_path / "home"
    home.mkdir()
    lock = home / ".settings.json.lock"
    lock.write_text(f"pid={os.getpid()}\n")
    still = StillClock()

    def sleep(seconds: float) -> None:
        still.sleep(seconds)
        (home / "settings.json").write_text("{}")
        lock.unlink()

    paths.prepare(str(home), Clock(lambda: still.wall, lambda: still.steady, sleep))
    assert (home / "settings.json").read_text() == "{}"
    assert still.slept == [0.01]


def test_waiting_for_the_settings_can_be_cancelled_and_ends_after_30_s(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".settings.json.lock").write_text(f"pid={os.getpid()}\n")
    with pytest.raises(Cancelled):
        paths.prepare(str(home), StillClock().clock, lambda: True)
    still = StillClock()
    with pytest.raises(StoreError):
        paths.prepare(str(home), still.clock)
    assert 30 <= still.steady < 30.02


# whole files (ROOT-10)


def test_a_whole_file_is_replaced_step_by_step(house: House) -> None:
    with house.root.directory() as directory:
        with failing([], OSError()) as log:
            replace("settings.json", b"{}", directory, StillClock(77).clock)
        assert log == [
            (step, done)
            for step in (
                Step.REPLACE_CREATE,
                Step.REPLACE_WRITE,
                Step.REPLACE_SYNC,
                Step.REPLACE_RENAME,
                Step.REPLACE_SYNC_DIRECTORY,
            )
            for done in (False, True)
        ]
        with failing([Step.REPLACE_SYNC], OSError(5, "Input/output error")), pytest.raises(OSError, match="Input"):
            replace("settings.json", b"[]", directory, StillClock(78).clock)
    assert (Path(house.root.path) / "settings.json").read_bytes() == b"{}"
    assert not any(name.endswith(".tmp") for name in os.listdir(house.root.path))


def test_the_temporary_name_is_no_session(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """ROOT-10, ROOT-11."""
    names: list[str] = []

    def note(old: str, new: str, **_: Any) -> None:
        names.append(old)

    monkeypatch.setattr(os, "rename", note)
    with house.root.sessions() as directory:
        replace("event-id-sequence", b"1", directory, StillClock(77).clock)
    assert names == [f".event-id-sequence.{os.getpid()}.77.tmp"]


# identity (ENV-35 to ENV-42)


def test_context_id(house: House, tmp_path: Path) -> None:
    data = b"localagent context 1\0" + house.cwd.encode() + b"\0" + house.root.path.encode()
    assert paths.context_id(house.root, house.cwd) == hashlib.sha256(data).hexdigest()
    alias = tmp_path / "alias"
    alias.symlink_to(house.root.path)
    assert paths.prepare(str(alias)) == house.root
    other = paths.prepare(str(tmp_path / "other"))
    ids = {
        paths.context_id(root, cwd)
        for root in (house.root, other)
        for cwd in (house.cwd, str(tmp_path), os.fsdecode(b"/\xff"))
    }
    assert len(ids) == 6
    assert paths.context_id(Root("/ab"), "/c") != paths.context_id(Root("/b"), "/ca")
