"""What is committed is what the tables make."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from graphviz import quoting

from diagrams import render
from diagrams.markdown import NOTICE, links, prose, table
from localagent.machines import PICTURES, dot


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return render.made()


def test_committed_files_are_up_to_date(made: dict[str, str]) -> None:
    assert render.differences(made) == [], "run: python diagrams/render.py"


def test_the_command_checks_in_another_process() -> None:
    # names hash by identity: another process iterates over sets of them in another order
    env = {**os.environ, "PYTHONHASHSEED": "4096"}
    done = subprocess.run([sys.executable, render.__file__, "--check"], capture_output=True, text=True, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_picture_has_its_two_files(made: dict[str, str]) -> None:
    for name in PICTURES:
        assert made[f"diagrams/{name}.dot"].startswith(f'digraph "{name}"')
        assert "</svg>" in made[f"diagrams/{name}.svg"]


def test_an_installed_package_has_every_picture() -> None:
    project = tomllib.loads((render.ROOT / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {f"diagrams/{name}.svg": f"localagent/diagrams/{name}.svg" for name in PICTURES}


def test_writing_checking_and_clearing_away(tmp_path: Path) -> None:
    wanted = {"diagrams/a.dot": "digraph {}\n", "docs/machines/a.md": f"{NOTICE}\n# a\n"}
    assert render.write(wanted, tmp_path) == sorted(wanted)
    assert render.differences(wanted, tmp_path) == []
    (tmp_path / "docs/machines/by-hand.md").write_text("# mine\n")
    (tmp_path / "docs/machines/old.md").write_text(f"{NOTICE}\n# old\n")
    (tmp_path / "diagrams/old.svg").write_text("<svg/>")
    (tmp_path / "diagrams/a.dot").write_text("digraph { a }\n")
    stale = ["diagrams/a.dot", "diagrams/old.svg", "docs/machines/old.md"]
    assert render.differences(wanted, tmp_path) == stale
    assert render.write(wanted, tmp_path) == stale
    assert render.differences(wanted, tmp_path) == []
    assert (tmp_path / "docs/machines/by-hand.md").exists()


def test_exit_status_and_words(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(render, "made", dict)
    monkeypatch.setattr(render, "differences", lambda _: ["diagrams/a.dot"])
    assert render.main(["--check"]) == 1
    assert capsys.readouterr().out == "out of date: diagrams/a.dot\n"
    monkeypatch.setattr(render, "write", lambda _: [])
    assert render.main([]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("words", ["idle", "working(attach)", "a+b", 'say "x"', "node", "", "a b"])
def test_our_quotes_mean_what_graphviz_means(words: str) -> None:
    theirs = quoting.quote(words)
    assert dot.quote(words) in (theirs, f'"{theirs}"')


def test_attributes_are_quoted_or_html() -> None:
    assert dot.attributes({"label": dot.Html("<B>x</B>"), "tooltip": "a\nb"}) == '[label=<<B>x</B>>, tooltip="a\\nb"]'


def test_markdown_pieces() -> None:
    assert table(("a", "b"), [("x|y", "z")]) == ["| a | b |", "| --- | --- |", "| x&#124;y | z |", ""]
    assert prose("see ``x`` and :mod:`y`\n") == "see `x` and `y`"
    (line,) = links("as [D45] says, not [this](D46.md)", "../")
    assert line.startswith('[D45]: ../reference/ambiguities.md#d45 "After an accepted shutdown')
