"""The suite against two backends that share nothing: ours, and one that takes every other legal choice.

What is legal must not be called a violation. The fast profile runs the families in which habits show most; the deep
one runs everything, the approval that expires after a minute included.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OTHER = (sys.executable, str(ROOT / "tests" / "kit" / "other_backend.py"), "serve", "--stdio")
OURS = (sys.executable, "-m", "localagent", "serve", "--stdio")
WORDS = """
plain = "hello"
long = "LONG"
tool = "TOOL"
approve = "APPROVAL"
approve_two = "PARALLEL"
stall = "STALL"
fail = "FAIL"
reason = "THINK"
many = "TOOL"
unsaved = "DEGRADED"
"""
"""What the other backend's canned turns answer to."""


def conform(
    tmp_path: Path, command: tuple[str, ...], *options: str, ways: str = "0"
) -> "subprocess.CompletedProcess[str]":
    prompts = tmp_path / "prompts.toml"
    prompts.write_text(WORDS)
    other = ("--prompts", str(prompts), "--env", "OTHER_CATALOG=1", "--env", f"OTHER_WAYS={ways}")
    given = (*options, *other) if command is OTHER else options
    return subprocess.run(
        [sys.executable, "-m", "localagent", "conform", *given, "--", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )


@pytest.mark.parametrize(
    ("select", "ways"),
    [("turn.cancel.*", "0"), ("neg.[a-o]*", "1"), ("evt.[s-z]*", "1")],
)
def test_legal_choices_are_no_violations(select: str, ways: str, tmp_path: Path) -> None:
    """Ours goes through its cases in the tests of the command line and, all of them, in ``just selftest``."""
    done = conform(tmp_path, OTHER, "--select", select, ways=ways)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    assert done.stdout.endswith("conformant\n")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("command", "ways"), [(OURS, "0"), (OTHER, "0"), (OTHER, "1")], ids=["ours", "other", "other-ways"]
)
def test_both_backends_are_conformant(command: tuple[str, ...], ways: str, tmp_path: Path) -> None:
    fixtures = ("--fixture", "store", "--fixture", "settings") if command is OURS else ()
    done = conform(tmp_path, command, *fixtures, ways=ways)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
