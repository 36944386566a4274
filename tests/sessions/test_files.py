"""Opening only what may be trusted, and closing what was opened (REC-02, ROOT-12)."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from localagent.sessions import files
from localagent.sessions.disk import Step
from localagent.sessions.errors import Unsafe
from localagent.sessions.files import Identity
from tests.sessions.kit import House, StillClock, failing


def linked(path: Path) -> None:
    path.with_name("real").touch(0o600)
    path.symlink_to("real")


def twice(path: Path) -> None:
    path.touch(0o600)
    os.link(path, path.with_name("again"))


def shared(path: Path) -> None:
    path.touch(0o640)
    path.chmod(0o640)


def fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize("make", [linked, twice, shared, fifo, Path.mkdir])
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR | os.O_APPEND])
def test_what_is_unsafe_is_not_opened(house: House, make: Callable[[Path], None], flags: int) -> None:
    make(house.sessions / "x")
    with house.root.sessions() as directory, pytest.raises(Unsafe):
        files.open_private("x", directory, flags)


def test_what_is_missing_is_missing(house: House) -> None:
    with house.root.sessions() as directory:
        with pytest.raises(FileNotFoundError):
            files.open_private("x", directory)
        assert files.status("x", directory) is None


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors by /proc")
def test_every_descriptor_is_closed(house: House) -> None:
    for number, make in enumerate([linked, twice, shared, fifo]):
        (house.sessions / str(number)).mkdir()
        make(house.sessions / str(number) / "x")
    before = os.listdir("/proc/self/fd")
    for number in range(4):
        with files.opened(str(house.sessions / str(number))) as directory, pytest.raises(Unsafe):
            files.open_private("x", directory)
    for steps in ([], [Step.REPLACE_WRITE], [Step.REPLACE_RENAME]):
        with house.root.directory() as directory, failing(steps, OSError(5, "Input/output error")):
            try:
                files.replace("settings.json", b"{}", directory, StillClock().clock)
            except OSError:
                assert steps
    assert os.listdir("/proc/self/fd") == before


def test_a_link_to_a_directory_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(OSError, match="link"), files.opened(str(tmp_path / "link")):
        pass


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(b"y"),
        lambda path: path.write_bytes(b"xy"),
        lambda path: path.touch(),
        lambda path: path.rename(path.with_name("z")).write_bytes(b"") or path.write_bytes(b"x"),
    ],
)
def test_an_identity_changes_with_the_file(tmp_path: Path, change: Callable[[Path], object]) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"x")
    os.utime(path, ns=(1, 1))
    before = Identity.of(path.stat())
    assert Identity.of(path.stat()) == before
    change(path)
    assert Identity.of(path.stat()) != before
