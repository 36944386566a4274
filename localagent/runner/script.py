"""Scripts: what the ``scripted`` runner does for which prompt, as JSON. The format is described in docs/script.md.

Decoding is strict: an unknown member, a wrong type, a repeated key or a rule that can never match is a
:class:`ScriptError` which says where. Steps are structs tagged by ``do``; they hold data and no behaviour.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

import msgspec
from msgspec import Meta, Struct

from localagent.protocol.codes import Code
from localagent.protocol.ids import ID

Count = Annotated[int, Meta(ge=1)]
Milliseconds = Annotated[float, Meta(ge=0)]
Label = Annotated[str, Meta(pattern=ID)]
Text = Annotated[str, Meta(min_length=1)]

FILE_BYTES: Final = 1024 * 1024
"""A script file may be this large."""

FAILURES: Final = ("startup", "session", "history", "catalog", "selection", "turn")
"""Families whose codes ``run.finished`` can bear (BASE-OP-154)."""


class ScriptError(Exception):
    """A script that cannot be used: the fault of its author. The text says where and why."""


class _Step(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="do"):
    """Common to all steps."""


class Say(_Step, frozen=True, kw_only=True, tag="say"):
    """Say text: one piece, a list of pieces, or cut into pieces of ``piece`` characters, one every ``pause_ms``."""

    text: Text | Annotated[list[Text], Meta(min_length=1)]
    piece: Count | None = None
    pause_ms: Milliseconds = 0


class Flood(_Step, frozen=True, kw_only=True, tag="flood"):
    """Say ``bytes`` bytes of filler in pieces of ``piece`` bytes; ``stamp`` begins each with the clock (ms)."""

    bytes: Count
    piece: Count = 1600
    pause_ms: Milliseconds = 0
    stamp: bool = False


class Pause(_Step, frozen=True, kw_only=True, tag="pause"):
    """Let time pass."""

    ms: Milliseconds


class Stall(_Step, frozen=True, kw_only=True, tag="stall"):
    """Do nothing until the turn is told to stop."""


class Compute(_Step, frozen=True, kw_only=True, tag="compute"):
    """Keep the interpreter busy."""

    ms: Milliseconds


class Think(_Step, frozen=True, kw_only=True, tag="think"):
    """Give a reasoning summary; one that is not the provider's is kept nowhere."""

    text: Text
    item_id: str | None = None
    from_provider: bool = True


class Call(_Step, frozen=True, kw_only=True, tag="call"):
    """Call a tool that is only pretended; ``approval`` asks the user first, then one of the branches follows."""

    name: Label
    arguments: dict[str, Any] = {}
    result: str = ""
    success: bool = True
    ms: Milliseconds = 0
    approval: Text | None = None
    allowed: list["Step"] = []
    denied: list["Step"] = []

    def __post_init__(self) -> None:
        if self.approval is None and (self.allowed or self.denied):
            raise ValueError("`allowed` and `denied` need `approval`")


class Together(_Step, frozen=True, kw_only=True, tag="together"):
    """Several tool calls of one model message; their branches follow when all are done."""

    calls: Annotated[list[Call], Meta(min_length=1)]


class Note(_Step, frozen=True, kw_only=True, tag="note"):
    """Warn the user."""

    code: Label
    text: str


class Usage(_Step, frozen=True, kw_only=True, tag="usage"):
    """Report tokens."""

    input: Annotated[int, Meta(ge=0)]
    output: Annotated[int, Meta(ge=0)]


class Fail(_Step, frozen=True, kw_only=True, tag="fail"):
    """Fail as a provider does that says why."""

    code: Code = Code.EXECUTION_FAILED
    text: str = ""

    def __post_init__(self) -> None:
        if self.code.family not in FAILURES:
            raise ValueError(f"a run never ends with `{self.code.value}`")


class Crash(_Step, frozen=True, kw_only=True, tag="crash"):
    """Fail as a program does that has a fault."""

    text: str = "scripted crash"


class FailAppend(_Step, frozen=True, kw_only=True, tag="fail_append"):
    """Let ``after`` appends to the store pass and the next ``count`` fail."""

    count: Count = 1
    after: Annotated[int, Meta(ge=0)] = 0


class Repeat(_Step, frozen=True, kw_only=True, tag="repeat"):
    """Do the same steps several times."""

    times: Count
    steps: list["Step"]


Step = (
    Say
    | Flood
    | Pause
    | Stall
    | Compute
    | Think
    | Call
    | Together
    | Note
    | Usage
    | Fail
    | Crash
    | FailAppend
    | Repeat
)  # fmt: skip


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The steps for a prompt that is ``exact``, begins with ``prefix`` or holds ``contains``; without any: for all."""

    steps: list[Step]
    exact: Text | None = None
    prefix: Text | None = None
    contains: Text | None = None
    about: str = ""

    def __post_init__(self) -> None:
        if len(list(self._conditions())) > 1:
            raise ValueError("a rule has one of `exact`, `prefix` and `contains`, or none")

    @property
    def catches_all(self) -> bool:
        """True when every prompt matches."""
        return not any(self._conditions())

    def matches(self, prompt: str) -> bool:
        """True when this rule is for ``prompt``. Upper and lower case differ."""
        if self.exact is not None:
            return prompt == self.exact
        if self.prefix is not None:
            return prompt.startswith(self.prefix)
        return self.contains is None or self.contains in prompt

    def _conditions(self) -> Iterator[str]:
        return (each for each in (self.exact, self.prefix, self.contains) if each is not None)


class Script(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole script. The first rule that matches a prompt is played."""

    version: Literal[1]
    rules: Annotated[list[Rule], Meta(min_length=1)]
    about: str = ""

    def __post_init__(self) -> None:
        for number, rule in enumerate(self.rules[:-1]):
            if rule.catches_all:
                raise ValueError(f"rules[{number}] matches every prompt, so those behind it never would")

    def steps_for(self, prompt: str) -> list[Step] | None:
        """The steps of the first rule that matches; None when none does."""
        return next((rule.steps for rule in self.rules if rule.matches(prompt)), None)


_decoder = msgspec.json.Decoder(Script)


def parse(data: bytes, name: str = "script") -> Script:
    """Decode a script. ``name`` is how messages call it."""
    try:
        repeated = _repeated_keys(data)
        if repeated:
            raise ScriptError(f"{name}: key `{repeated[0]}` occurs twice in one object")
        return _decoder.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as fault:
        raise ScriptError(f"{name}: {_explained(fault)}") from None


def load(path: Path) -> Script:
    """Read a script file."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES + 1)
    except OSError as fault:
        raise ScriptError(f"{path}: {fault.strerror}") from None
    if len(data) > FILE_BYTES:
        raise ScriptError(f"{path}: larger than {FILE_BYTES} bytes")
    return parse(data, str(path))


def built_in() -> Script:
    """The script that the embedded default provider plays."""
    return load(BUILT_IN)


BUILT_IN: Final = Path(__file__).with_name("builtin.json")


def _repeated_keys(data: bytes) -> list[str]:
    repeated: list[str] = []

    def look(members: list[tuple[str, object]]) -> None:
        names = [name for name, _ in members]
        repeated.extend(name for i, name in enumerate(names) if name in names[:i])

    json.loads(data, object_pairs_hook=look)
    return repeated


def _explained(fault: Exception) -> str:
    text = str(fault)
    if isinstance(fault, msgspec.ValidationError) and text.endswith(".do`"):
        kinds = ", ".join(cast(str, kind.__struct_config__.tag) for kind in Step.__args__)
        return f"{text}; a step is one of {kinds}"
    return text
