"""Prompts that make a provider do something: those that the embedded provider ``scripted`` understands, or a file's.

A file is TOML: ``plain = "Say hello."`` and so on, one line per stimulus. What it leaves out is not exercised.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from localagent.conformance.steps import STIMULI

SCRIPTED: Final[Mapping[str, str]] = {
    "plain": "Say something.",
    "long": "Tell me a long story. " + "And then the story went on. " * 200,
    "tool": "TOOL",
    "approve": "APPROVAL",
    "approve_two": "PARALLEL",
    "stall": "STALL",
    "fail": "FAIL",
    "reason": "THINK",
    "many": "TOOL, and some words besides",
    "flood": "FLOOD",
    "secret": "SECRET",
    "unsaved": "DISK",
}
"""For the provider ``scripted``: a word in capitals asks for more than an echo (docs/script.md)."""

PROVIDERS: Final[Mapping[str, Mapping[str, str]]] = {"scripted": SCRIPTED}


class PromptsError(ValueError):
    """A file of prompts that is none."""


def read(path: Path) -> dict[str, str]:
    """The prompts of a file, by stimulus. Raises PromptsError, OSError."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise PromptsError(f"{path}: {fault}") from None
    for name, prompt in found.items():
        if name not in STIMULI:
            raise PromptsError(f"{path}: no stimulus is named {name!r}; there are {', '.join(sorted(STIMULI))}")
        if not isinstance(prompt, str) or not prompt:
            raise PromptsError(f"{path}: {name} must be a text that is not empty")
    return found
