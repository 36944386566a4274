"""The committed shell completions are what the parser gives."""

from pathlib import Path

import pytest
import shtab

from localagent.cli import parser

FILES = Path(__file__).parent.parent / "completions"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_up_to_date(shell: str) -> None:
    assert (FILES / f"localagent.{shell}").read_text().strip() == shtab.complete(parser(), shell=shell).strip()
