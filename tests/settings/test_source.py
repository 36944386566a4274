"""Files as disks hold them: every way in which one is not what it should be (SET-01, CRED-04, MCPC-01, PROF-01)."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.settings import source
from localagent.settings.faults import Inadmissible

from .kit import Place
from .privileges import unprivileged

MIB = 1024 * 1024
FILES: dict[str, tuple[str, bytes]] = {
    "settings.json": ("home/settings.json", b'{"schema_version": 2}'),
    "project settings": ("work/.magi-code/settings.json", b"{}"),
    "auth.json": ("home/auth.json", b"{}"),
    ".mcp.json": ("home/.mcp.json", b"{}"),
    "project .mcp.json": ("work/.mcp.json", b"{}"),
}


@pytest.fixture(params=FILES)
def file(request: pytest.FixtureRequest, place: Place, tmp_path: Path) -> tuple[Place, Path, bytes]:
    """One of the JSON files, good so far."""
    name, data = FILES[request.param]
    path = place.put(tmp_path / name, data)
    path.chmod(0o600)
    place.admit()
    return place, path, data


File = tuple[Place, Path, bytes]


def refusal(place: Place, path: Path) -> tuple[str, str]:
    """What was expected of a file as a whole, and what was found."""
    (fault,) = place.refused().faults
    assert (fault.file, fault.key) == (str(path), "")
    return fault.expected, fault.found


def test_absent_is_fine(file: File) -> None:
    place, path, _ = file
    path.unlink()
    place.admit()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "JSON"),
        (b" \n", "JSON"),
        (b"\xef\xbb\xbf{}", "no byte order mark"),
        (b"\xff\xfe{\0}\0", "UTF-8"),
        (b'{"a": "\xff"}', "UTF-8"),
        (b'{"a": "\xc0\xae"}', "UTF-8"),
        (b"{", "JSON"),
        (b"{}{}", "JSON"),
        (b"{'a': 1}", "JSON"),
        (b'{"a": 1,}', "JSON"),
        (b'// c\n{"a": 1}', "JSON"),
        (b'{"a": NaN}', "JSON"),
        (b'{"a": 1e999}', "JSON"),
        (b'{"a": "\\ud800"}', "JSON"),
        (b"[]", "an object"),
        (b"null", "an object"),
        (b'"x"', "an object"),
        (b"2", "an object"),
        (b'{"a":' + b"[" * 127 + b"]" * 127 + b"}", "at most 127 objects and lists in each other"),
        (b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", "at most 127 objects and lists in each other"),
    ],
)
def test_what_is_no_object_of_json_is_refused(file: File, data: bytes, expected: str) -> None:
    place, path, _ = file
    path.write_bytes(data)
    assert refusal(place, path)[0] == expected


def test_as_deep_as_readers_go(place: Place) -> None:
    place.settings(b'{"a":' + b"[" * 126 + b"]" * 126 + b"}")
    place.admit()


def test_where_json_ends_is_told_and_nothing_of_it() -> None:
    with pytest.raises(Inadmissible) as caught:
        source.document("f", b'{\n  "a": 1,\n  "b": hunter2\n}')
    assert str(caught.value) == "configuration_invalid: f: expected JSON, found something else at line 3, column 8"


@pytest.mark.parametrize(
    ("data", "key"),
    [
        (b'{"a": 1, "a": 1}', "a"),
        (b'{"a": {"b": 1, "b": 2}}', "b"),
        (b'{"x": [{"a": 1, "\\u0061": 2}]}', "a"),
        (b'{"sk-abcdefgh": 1, "sk-abcdefgh": 2}', "[<hidden>]"),
    ],
)
def test_a_key_that_stands_twice_is_refused(file: File, data: bytes, key: str) -> None:
    place, path, _ = file
    path.write_bytes(data)
    (fault,) = place.refused().faults
    assert (fault.file, fault.key, fault.expected) == (str(path), key, "each key once in an object")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(alphabet=':"\\{}[],a', max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(st.sampled_from(["a", "b", ':"', "{"]), inner)),
    max_leaves=12,
)
"""Objects are lists of pairs here, so that keys can repeat."""


def spell(value: object) -> str:
    import json

    if isinstance(value, list) and value and all(isinstance(each, tuple) for each in value):
        members = ",".join(f"{json.dumps(key)}:{spell(each)}" for key, each in value)
        return f"{{{members}}}"
    if isinstance(value, list):
        return f"[{','.join(map(spell, value))}]"
    return json.dumps(value)


def repeats(value: object) -> bool:
    if not isinstance(value, list):
        return False
    pairs = [each for each in value if isinstance(each, tuple)]
    return len({key for key, _ in pairs}) < len(pairs) or any(
        repeats(each[1] if isinstance(each, tuple) else each) for each in value
    )


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), json_values), min_size=1, max_size=3))
def test_repeats_are_found_exactly(pairs: list[tuple[str, object]]) -> None:
    try:
        source.document("f", spell(pairs).encode())
    except Inadmissible:
        assert repeats(pairs)
    else:
        assert not repeats(pairs)


def test_a_mebibyte_is_read_and_a_byte_more_is_not(file: File) -> None:
    place, path, data = file
    path.write_bytes(data + b" " * (MIB - len(data)))
    place.admit()
    path.write_bytes(data + b" " * (MIB - len(data) + 1))
    assert refusal(place, path) == ("at most 1,048,576 bytes", "more")


def _link(path: Path) -> None:
    path.rename(path.with_name("other"))
    path.symlink_to("other")


def _dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def _loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "found"),
    [(_link, "a link"), (_dangling, "a link"), (_loop, "a link"), (_fifo, "a FIFO"), (_directory, "a directory")],
)
def test_what_is_no_regular_file_is_refused_at_once(file: File, spoil: Callable[[Path], None], found: str) -> None:
    place, path, _ = file
    spoil(path)
    assert refusal(place, path) == ("a regular file", found)


def test_a_file_that_may_not_be_read_is_refused(file: File) -> None:
    place, path, _ = file
    path.chmod(0)
    for folder in (place.home, path.parent, place.cwd):
        folder.chmod(0o755)

    def act() -> None:
        with pytest.raises(Inadmissible) as caught:
            source.read(str(path), MIB)
        assert str(caught.value).endswith(f"{path}: expected a file that can be read, found Permission denied")

    reachable(path)
    unprivileged(act)


def reachable(path: Path) -> None:
    """Let anybody pass the directories above, which are the test's own."""
    for folder in path.parents:
        if "pytest" in str(folder):
            folder.chmod(folder.stat().st_mode | 0o711)


def test_a_project_directory_must_lead_to_a_place_inside(place: Place, tmp_path: Path) -> None:
    project = place.cwd / ".magi-code"
    inside = place.cwd / "config"
    place.put(inside / "settings.json", {"agent": {"model": {"thinking_level": "high"}}})
    project.symlink_to("config")
    assert place.admit().choice.effort == "high"
    for target, expected in [
        (tmp_path / "elsewhere", "a directory inside the working directory"),
        (place.cwd.with_name("work2"), "a directory inside the working directory"),
        (place.cwd / "gone", "a directory"),
    ]:
        if target.name != "gone":
            target.mkdir()
        project.unlink()
        project.symlink_to(target)
        assert refusal(place, project)[0] == expected
    project.unlink()
    project.write_text("")
    assert refusal(place, project) == ("a directory", "something else")


def test_only_the_very_working_directory_has_a_say(place: Place) -> None:
    place.put(place.cwd.parent / ".magi-code" / "settings.json", "not json")
    place.put(place.cwd / "below" / ".magi-code" / "settings.json", "not json")
    place.admit()
