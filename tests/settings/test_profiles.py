"""Subagent profiles and the primary agent (PROF-05 to PROF-08)."""

import os
from pathlib import Path

import pytest

from localagent.protocol.codes import Code

from .kit import Place, nested

FRONT = "---\nname: Scout\ndescription: looks around\n---\n"
GOOD = FRONT + "Look around.\n"
KIB = 1024


def profile(place: Place, text: str | bytes = GOOD, name: str = "scout.md", folder: str = "subagents") -> Path:
    return place.put(place.home / folder / name, text)


def member(line: str) -> str:
    return f"---\nname: n\ndescription: d\n{line}\n---\nbody"


def test_a_profile_with_everything(place: Place) -> None:
    lines = "model: bench/org/m\nreasoning: xhigh\noutput_schema: plan\ndisabled_tools: [bash, notes__read]"
    profile(place, member(lines))
    found = place.admit().profiles["scout"]
    assert (found.id, found.name, found.description, found.prompt) == ("scout", "n", "d", "body")
    assert (found.model, found.reasoning, found.output_schema) == (("bench", "org/m"), "xhigh", "plan")
    assert found.disabled_tools == ("bash", "notes__read")


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("reasoning: x_high", "reasoning", "xhigh"),
        ("disabled_tools:\n- bash\n  - client__x", "disabled_tools", ("bash", "client__x")),
        ("disabled_tools: []", "disabled_tools", ()),
        ('output_schema: inline:{"type": "object"}', "output_schema", {"type": "object"}),
        ("output_schema: inline: {}", "output_schema", {}),
        ("unknown: member", "model", None),
    ],
)
def test_optional_members(place: Place, line: str, key: str, value: object) -> None:
    profile(place, member(line))
    assert getattr(place.admit().profiles["scout"], key) == value


BROKEN: tuple[tuple[str | bytes, str], ...] = (
    ("", ""),
    ("body", ""),
    (FRONT, ""),
    (FRONT + " \n\t\n", ""),
    ("---\nname: n\ndescription: d\nbody", ""),
    ("---\nname: n\n---\nbody", "description"),
    ("---\ndescription: d\n---\nbody", "name"),
    ("---\nname:\ndescription: d\n---\nbody", "name"),
    ("---\nname:\n- a\ndescription: d\n---\nbody", "name"),
    ("---\nname: n\nname: n\ndescription: d\n---\nbody", ""),
    ("---\n- a\n---\nbody", ""),
    ("---\nno colon\n---\nbody", ""),
    (" ---\nname: n\ndescription: d\n---\nbody", ""),
    (GOOD.replace("\n", "\r\n"), ""),
    (GOOD + "a line\r\n", ""),
    (b"\xef\xbb\xbf" + GOOD.encode(), ""),
    (GOOD.encode() + b"\xff", ""),
    (GOOD + "a" * 64 * KIB, ""),
    (member("model: m"), "model"),
    (member("model: /m"), "model"),
    (member("model: p/"), "model"),
    (member("model:\n- a"), "model"),
    (member("reasoning: High"), "reasoning"),
    (member("reasoning:"), "reasoning"),
    (member("output_schema: other"), "output_schema"),
    (member("output_schema: inline:[]"), "output_schema"),
    (member("output_schema: inline:{"), "output_schema"),
    (member('output_schema: inline:{"a":1,"a":2}'), "output_schema"),
    (member("disabled_tools: bash"), "disabled_tools"),
    (member("disabled_tools: [bash"), "disabled_tools"),
    (member("disabled_tools: [no_such_tool]"), "disabled_tools"),
    (member("disabled_tools: [bash,]"), "disabled_tools"),
    (member("disabled_tools: [bash] # why"), "disabled_tools"),
    (member('disabled_tools: ["bash"]'), "disabled_tools"),
    (member("disabled_tools: x\n- bash"), ""),
)


@pytest.mark.parametrize(("text", "key"), BROKEN)
def test_a_broken_profile_is_profile_invalid_unless_it_is_disabled(place: Place, text: str | bytes, key: str) -> None:
    path = profile(place, text)
    fault = place.refused(Code.PROFILE_INVALID)
    assert [(each.file, each.key) for each in fault.faults] == [(str(path), key)]
    place.settings(nested("agent.subagents.disabled", ["scout"]))
    assert place.admit().profiles == {}


def test_every_broken_profile_is_told(place: Place) -> None:
    paths = [str(profile(place, "", name)) for name in ("b.md", "a.md")]
    assert [each.file for each in place.refused(Code.PROFILE_INVALID).faults] == sorted(paths)


@pytest.mark.parametrize("name", ["a b.md", "é.md", ".md", "a.b.md", "scout.MD", "scout.txt", "scout", ".hidden.md"])
def test_invalid_ids_and_other_files_are_ignored(place: Place, name: str) -> None:
    profile(place, "", name)
    assert place.admit().profiles == {}


def test_a_full_size_profile(place: Place) -> None:
    profile(place, GOOD + "a" * (64 * KIB - len(GOOD)))
    assert list(place.admit().profiles) == ["scout"]


def test_links_and_other_things_are_broken_profiles(place: Place, tmp_path: Path) -> None:
    path = profile(place)
    path.rename(tmp_path / "other.md")
    for what in ("link", "fifo", "directory"):
        if what == "link":
            path.symlink_to(tmp_path / "other.md")
        elif what == "fifo":
            os.mkfifo(path)
        else:
            path.mkdir()
        assert [each.file for each in place.refused(Code.PROFILE_INVALID).faults] == [str(path)]
        if what == "directory":
            path.rmdir()
        else:
            path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(tmp_path)
    assert [each.file for each in place.refused(Code.PROFILE_INVALID).faults] == [str(path.parent)]


@pytest.mark.parametrize("folder", ["agents", "primary-agents"])
def test_the_primary_agent(place: Place, folder: str) -> None:
    place.settings({"agent": {"primary_agent": "main"}})
    assert place.refused(Code.PROFILE_INVALID).faults[0].file.endswith("/main.md")
    path = profile(place, member("model: not judged here"), "main.md", folder)
    profile(place, "broken, and nobody's", "other.md", folder)
    found = place.admit().primary_agent
    assert found is not None
    assert (found.id, found.name, found.prompt, found.path) == ("main", "n", "body", str(path))
    path.write_text("broken")
    assert [each.file for each in place.refused(Code.PROFILE_INVALID).faults] == [str(path)]
    place.settings({"agent": {"primary_agent": None}})
    assert place.admit().primary_agent is None
    assert (place.home / folder).is_dir()  # nothing is renamed (ROOT-08)


def test_the_old_folder_counts_only_without_the_new_one(place: Place) -> None:
    place.settings({"agent": {"primary_agent": "main"}})
    profile(place, GOOD, "main.md", "primary-agents")
    place.admit()
    (place.home / "agents").mkdir()
    place.refused(Code.PROFILE_INVALID)
