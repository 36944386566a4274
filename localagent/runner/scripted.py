"""The ``scripted`` runner: plays a script instead of asking a model. The embedded default provider.

It does what any runner does and nothing else; time passes only in ``stage.wait``. The one thing it may do beside is
asking for an append to fail, through the seam it is given for that.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Final, Protocol

from . import script
from .provider import ProviderError, Stage, ToolCall, ToolResult, Usage, Work
from .script import Script, Step

_LINE: Final = "The quick brown fox jumps over the lazy dog, again and again, and never tires of it.\n"
_LOOK_UP_MS: Final = 1.0


class FailAppend(Protocol):
    """Makes appends fail: :meth:`.faults.FaultyHandle.fail_append`."""

    def __call__(self, count: int = 1, after: int = 0) -> None:
        """Let ``after`` appends pass and the next ``count`` fail."""
        ...


class Scripted:
    """Answers prompts by a script."""

    def __init__(self, played: Script, clock: Callable[[], float], fail_append: FailAppend | None = None) -> None:
        self._script, self._clock, self._fail_append = played, clock, fail_append

    def run(self, prompt: str, stage: Stage) -> None:
        """Play the steps for ``prompt``."""
        steps = self._script.steps_for(prompt)
        if steps is None:
            raise ProviderError("The script has no rule for this prompt.")
        _Performance(prompt, stage, self._clock, self._fail_append).play(steps)


class _Performance:
    """One turn of a script."""

    def __init__(self, prompt: str, stage: Stage, clock: Callable[[], float], fail_append: FailAppend | None) -> None:
        self._prompt, self._stage, self._clock, self._fail_append = prompt, stage, clock, fail_append
        self._numbers = count(1)

    def play(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self._play(step)

    def _play(self, step: Step) -> None:
        match step:
            case script.Say():
                self._say(_pieces(step, self._prompt), step.pause_ms)
            case script.Flood():
                self._say(_filler(step), step.pause_ms, step.stamp)
            case script.Pause():
                self._stage.wait(step.ms / 1000)
            case script.Stall():
                while True:
                    self._stage.wait(3600)
            case script.Compute():
                self._compute(step.ms)
            case script.Think():
                self._stage.summary(step.text, step.item_id, from_provider=step.from_provider)
            case script.Call():
                self._call([step])
            case script.Together():
                self._call(step.calls)
            case script.Note():
                self._stage.note(step.code, step.text)
            case script.Usage():
                self._stage.usage(Usage(input=step.input, output=step.output, total=step.input + step.output))
            case script.Fail():
                raise ProviderError(step.text, step.code)
            case script.Crash():
                raise RuntimeError(step.text)
            case script.FailAppend():
                if self._fail_append is None:
                    raise ProviderError("This backend cannot make appends fail.")
                self._fail_append(step.count, step.after)
            case script.Repeat():
                for _ in range(step.times):
                    self.play(step.steps)

    def _say(self, pieces: Iterator[str], pause_ms: float, stamp: bool = False) -> None:
        """Say pieces, the n-th of them n pauses after the first, however long saying one takes."""
        begin = self._clock()
        for number, piece in enumerate(pieces):
            early = begin + number * pause_ms - self._clock() if pause_ms else 0
            if early > 0:
                self._stage.wait(early / 1000)
            self._stage.text(f"{self._clock():.3f} {piece}"[: len(piece)] if stamp else piece)

    def _compute(self, ms: float) -> None:
        """Compute in one thread, looking up once a millisecond."""
        end = self._clock() + ms
        while (now := self._clock()) < end:
            while self._clock() < min(now + _LOOK_UP_MS, end):
                sum(range(100))
            self._stage.wait(0)

    def _call(self, calls: Sequence[script.Call]) -> None:
        results = self._stage.tools([(_tool_call(call, next(self._numbers)), self._work(call)) for call in calls])
        for call, result in zip(calls, results, strict=True):
            if call.approval is not None:
                self.play(call.denied if result.denied else call.allowed)

    def _work(self, call: script.Call) -> Work:
        def work() -> ToolResult:
            if call.ms:
                self._stage.wait(call.ms / 1000)
            return ToolResult(success=call.success, content=call.result)

        return work


def _pieces(step: script.Say, prompt: str) -> Iterator[str]:
    for given in [step.text] if isinstance(step.text, str) else step.text:
        text = given.replace("{prompt}", prompt)
        size = step.piece or len(text)
        yield from (text[at : at + size] for at in range(0, len(text), size))


def _filler(step: script.Flood) -> Iterator[str]:
    """ASCII prose, exactly as many bytes as asked for."""
    lines = _LINE * (step.piece // len(_LINE) + 2)
    for at in range(0, step.bytes, step.piece):
        yield lines[at % len(_LINE) :][: min(step.piece, step.bytes - at)]


def _tool_call(call: script.Call, number: int) -> ToolCall:
    return ToolCall(id=f"call-{number}", name=call.name, arguments=call.arguments, approval=call.approval)
