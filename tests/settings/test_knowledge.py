"""Instructions and skills (PROF-01, PROF-03, PROF-04)."""

import os
from pathlib import Path

import pytest

from localagent.sessions.errors import Cancelled
from localagent.settings import knowledge
from localagent.settings.model import Skills

from .kit import Place, nested

KIB = 1024


def texts(place: Place) -> list[str]:
    return [each.text for each in place.admit().instructions]


def test_instructions_come_in_their_order(place: Place, tmp_path: Path) -> None:
    assert texts(place) == []
    more = [place.put(tmp_path / name, name) for name in ("z.md", "a.md")]
    place.put(place.cwd / "AGENTS.md", "project")
    place.put(place.cwd.parent / "AGENTS.md", "no parent is looked at")
    place.put(place.cwd / "CLAUDE.md", "no other name is tried")
    place.settings(nested("knowledge.instructions.additional_markdown_paths", list(map(str, more))))
    assert texts(place) == ["project", "z.md", "a.md"]
    place.put(place.home / "AGENTS.md", "user")
    assert texts(place) == ["user", "project", "z.md", "a.md"]


def test_a_root_that_is_the_working_directory_is_read_once(place: Place) -> None:
    place.put(place.home / "AGENTS.md", "both")
    place.put(place.home / ".mcp.json", {"mcpServers": {"a": {"command": "x"}}})
    place.cwd = place.home
    assert texts(place) == ["both"]


def test_instructions_may_be_links(place: Place, tmp_path: Path) -> None:
    target = place.put(tmp_path / "elsewhere.md", "linked")
    (place.home / "AGENTS.md").symlink_to(target)
    assert texts(place) == ["linked"]


def test_configured_instructions_must_be_there(place: Place, tmp_path: Path) -> None:
    place.settings(nested("knowledge.instructions.additional_markdown_paths", [str(tmp_path / "gone.md")]))
    assert [fault.file for fault in place.refused().faults] == [str(tmp_path / "gone.md")]


def test_instructions_that_cannot_be_used(place: Place, tmp_path: Path) -> None:
    path = place.home / "AGENTS.md"
    path.symlink_to("nowhere")
    assert "expected a file that can be read" in str(place.refused()) or "a regular file" in str(place.refused())
    path.unlink()
    os.mkfifo(path)
    assert "found a FIFO" in str(place.refused())
    path.unlink()
    path.mkdir()
    assert "found a directory" in str(place.refused())
    path.rmdir()
    place.put(path, b"\xff")
    assert "expected UTF-8" in str(place.refused())
    place.put(path, b"a" * 256 * KIB)
    assert [len(text) for text in texts(place)] == [256 * KIB]
    place.put(path, b"a" * (256 * KIB + 1))
    assert "at most 262,144 bytes" in str(place.refused())


def test_instructions_are_bounded_together(place: Place, tmp_path: Path) -> None:
    paths = [place.put(tmp_path / f"{i}.md", b"a" * 256 * KIB) for i in range(4)]
    place.settings(nested("knowledge.instructions.additional_markdown_paths", list(map(str, paths))))
    assert len(texts(place)) == 4
    place.put(place.cwd / "AGENTS.md", b"a")
    fault = place.refused()
    assert (fault.faults[0].file, fault.faults[0].expected) == (
        str(paths[-1]),
        "at most 1,048,576 bytes of instructions in all",
    )


def skill(root: Path, name: str, text: str | bytes = "body") -> Path:
    path = root / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_later_roots_win_a_name(place: Place, tmp_path: Path) -> None:
    extra = [tmp_path / "extra1", tmp_path / "extra2"]
    roots = [place.user / ".agents" / "skills", place.home / "skills", *extra, place.cwd / ".agents" / "skills"]
    place.settings(nested("knowledge.skills.additional_paths", list(map(str, extra))))
    for number, root in enumerate(roots):
        for name in range(number + 1):
            skill(root, f"s{name}", str(number))
    snapshot = place.admit()
    assert {name: each.text for name, each in snapshot.skills.items()} == dict.fromkeys(
        [f"s{i}" for i in range(len(roots))], str(len(roots) - 1)
    )
    assert snapshot.diagnostics == ()
    place.settings(nested("knowledge.skills.disabled", ["s0", "gone"]))
    assert list(place.admit().skills) == ["s1", "s2", "s3", "s4"]


def test_without_a_home_there_are_no_personal_skills(place: Place) -> None:
    skill(place.user / ".agents" / "skills", "a")
    for home in ("", "relative"):
        assert place.admit(HOME=home).skills == {}


def test_skills_in_groups(place: Place) -> None:
    root = place.home / "skills"
    skill(root, "group/inner", "1")
    skill(root, "other/inner", "2")
    skill(root, "group/deep/er", "too deep")
    skill(root, "b/a", "in a group")
    skill(root, "a", "---\nname: A\ndescription:  of: it \n\nempty:\n---\nbody\n")
    place.put(root / "SKILL.md", "belongs to nobody")
    place.put(root / "file", "means nothing")
    skills = place.admit().skills
    assert {name: each.text for name, each in skills.items()} == {"a": "body\n", "inner": "1"}
    assert skills["a"].front == {"name": "A", "description": "of: it", "empty": ""}
    assert skills["a"].path == str(root / "a" / "SKILL.md")


def test_a_root_may_be_a_link_and_nothing_below_it(place: Place, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    skill(elsewhere, "good")
    outside = skill(tmp_path / "outside", "x")
    (elsewhere / "linked").symlink_to(outside.parent)
    (elsewhere / "file").mkdir()
    (elsewhere / "file" / "SKILL.md").symlink_to(outside)
    (place.home / "skills").symlink_to(elsewhere)
    snapshot = place.admit()
    assert list(snapshot.skills) == ["good"]
    assert snapshot.diagnostics == (f"{place.home}/skills/file/SKILL.md: expected a regular file, found a link",)


def test_problems_skip_a_skill_and_say_so(place: Place, tmp_path: Path) -> None:
    root = place.home / "skills"
    skill(root, "utf8", b"\xff")
    skill(root, "big", b"a" * (KIB * KIB + 1))
    skill(root, "front", "---\nname: x\n")
    skill(root, "flat", "---\nname: x\n  nested: {\n---\n")
    skill(root, "twice", "---\na: 1\na: 2\n---\n")
    (root / "folder" / "SKILL.md").mkdir(parents=True)
    os.mkfifo(skill(root, "fifo").with_name("other"))
    os.replace(root / "fifo" / "other", root / "fifo" / "SKILL.md")
    skill(root, "fits", b"a" * KIB * KIB)
    skill(root, "crlf", "---\r\nname: x\r\n---\r\nbody\r\n")
    skill(place.user / ".agents" / "skills", "utf8", "an earlier one stays")
    place.settings(nested("knowledge.skills.additional_paths", [str(tmp_path / "gone"), str(tmp_path / "work")]))
    snapshot = place.admit()
    assert list(snapshot.skills) == ["crlf", "fits", "utf8"]
    assert (snapshot.skills["crlf"].front, snapshot.skills["crlf"].text) == ({"name": "x"}, "body\n")
    assert [each.removeprefix(f"{root}/").partition(":")[0] for each in snapshot.diagnostics] == [
        *("big/SKILL.md", "fifo/SKILL.md", "flat/SKILL.md", "folder/SKILL.md", "front/SKILL.md"),
        *("twice/SKILL.md", "utf8/SKILL.md", str(tmp_path / "gone")),
    ]


def test_names_that_are_no_text_are_skipped(place: Place) -> None:
    root = place.home / "skills"
    root.mkdir()
    try:
        os.makedirs(os.fsencode(root) + b"/\xff")
    except OSError:
        pytest.skip("this file system has text for names")
    (root / os.fsdecode(b"\xff") / "SKILL.md").write_text("x")
    assert place.admit().skills == {}


def test_looking_for_skills_can_be_cancelled(place: Place) -> None:
    for name in "abc":
        skill(place.home / "skills", name)
    asked: list[None] = []

    def cancelled() -> bool:
        asked.append(None)
        return len(asked) > 2

    with pytest.raises(Cancelled):
        knowledge.skills(place.root, str(place.cwd), Skills(), place.environ, cancelled)
