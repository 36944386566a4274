"""The checker has teeth: whatever is done to a good transcript, it notices."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from localagent.core import worker
from tests.kit.core_driver import Driver, attached
from tests.kit.transcript import Checker
from tests.kit.transcript_run import Violation
from tests.kit.transcript_steps import Command, Reported, Said, Step, Took

from . import test_stories_asks, test_stories_ends, test_stories_runs, test_stories_sessions
from .asking import approval
from .stories import play
from .turn import live

MAY_BE_MISSED = {"message.delta", "activity", "tool.card"}
"""Events whose loss alone no rule forbids the checker to overlook: best effort, or seen by what follows."""


def judge(steps: Sequence[Step]) -> Checker:
    checker = Checker()
    for step in steps:
        checker.check(step)
    return checker


def written(frame: dict[str, Any]) -> bytes:
    return json.dumps(frame, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def renumbered(steps: Sequence[Step]) -> list[Step]:
    """The same frames with seq 1, 2, 3, and a pipe that takes what was queued, so that only the change shows."""
    seq = 0
    after = []
    for step in steps:
        frames = []
        for frame in map(json.loads, step.frames):
            seq += 1
            frames.append(written(frame | {"seq": seq}))
        after.append(replace(step, frames=tuple(frames)))
    return _repiped(after)


def _repiped(steps: Sequence[Step]) -> list[Step]:
    """Took steps as a pipe that takes everything at once would have them; their commands stay with the last one."""
    after: list[Step] = []
    queued = b""
    kept: list[Command] = []
    for step in steps:
        if isinstance(step.given, Took):
            kept += step.commands
            continue
        after += _took(step.at, queued, kept)
        kept = []
        after.append(step)
        queued = b"".join(step.frames)
    return [*after, *_took(0, queued, kept)]


def _took(at: float, queued: bytes, commands: Sequence[Command]) -> Iterator[Step]:
    if queued:
        yield Step(at, Took(queued), (), tuple(commands))


def edited(steps: Sequence[Step], index: int, **changed: Any) -> list[Step]:
    return [*steps[:index], replace(steps[index], **changed), *steps[index + 1 :]]


TOLD = {
    name: story
    for told in (test_stories_asks, test_stories_ends, test_stories_runs, test_stories_sessions)
    for name, story in told.STORIES.items()
    if "retain" not in story  # which tells the checker something that no step has shown
}
STORIES = ["a whole life", *TOLD]
FRAMES = range(20)
"""All frames of the whole life, by number."""


@cache
def steps_of(name: str) -> list[Step]:
    return play(TOLD[name]).steps if name in TOLD else live(Driver()).steps


def a_life() -> list[Step]:
    return steps_of("a whole life")


def find(number: int) -> tuple[int, int]:
    """The step of a frame of the whole life, and its place there."""
    found = [(index, place) for index, step in enumerate(a_life()) for place in range(len(step.frames))]
    return found[number]


def finished() -> int:
    """The step with ``run.finished``."""
    return next(index for index, step in enumerate(a_life()) for frame in step.frames if b"run.finished" in frame)


def test_so_many_frames_there_are() -> None:
    assert sum(len(step.frames) for step in a_life()) == len(FRAMES)


@pytest.mark.parametrize("name", STORIES)
def test_good_transcripts_pass(name: str) -> None:
    judge(steps_of(name))


def test_numbering_anew_changes_nothing() -> None:
    assert [step.frames for step in renumbered(a_life()) if step.frames] == [
        step.frames for step in a_life() if step.frames
    ]
    assert judge(renumbered(a_life())).status == 0


@pytest.mark.parametrize("name", STORIES)
def test_no_command_can_be_left_out_or_given_twice(name: str) -> None:
    steps = steps_of(name)
    for index, step in enumerate(steps):
        for place in range(len(step.commands)):
            for copies in (0, 2):
                commands = (
                    *step.commands[:place],
                    *step.commands[place : place + 1] * copies,
                    *step.commands[place + 1 :],
                )
                changed = edited(steps, index, commands=commands)
                if copies == 0 and _only_seen_later(steps, index, place):
                    continue
                with pytest.raises(Violation):
                    judge(changed)


def _only_seen_later(steps: Sequence[Step], index: int, place: int) -> bool:
    """A last Exit that is missing is no wrong step: that the end was reached is asked of ``status``."""
    return steps[index].commands[place].name == "Exit" and not any(step.commands for step in steps[index + 1 :])


@pytest.mark.parametrize("number", FRAMES)
def test_no_frame_can_be_left_out(number: int) -> None:
    index, place = find(number)
    frames = a_life()[index].frames
    changed = edited(a_life(), index, frames=frames[:place] + frames[place + 1 :])
    with pytest.raises(Violation):
        judge(changed)
    event = json.loads(frames[place]).get("event")
    if event not in MAY_BE_MISSED:
        with pytest.raises(Violation):
            judge(renumbered(changed))


@pytest.mark.parametrize("number", FRAMES)
def test_no_frame_can_come_twice(number: int) -> None:
    index, place = find(number)
    frames = a_life()[index].frames
    changed = edited(a_life(), index, frames=(*frames[: place + 1], *frames[place:]))
    for steps in (changed, renumbered(changed)):
        if json.loads(frames[place]).get("event") in ("diagnostic", "tool.card") and steps is not changed:
            continue  # a worker may say these twice
        with pytest.raises(Violation):
            judge(steps)


SPOILS: dict[str, Callable[[bytes], bytes]] = {
    "not compact": lambda line: line.replace(b",", b", ", 1),
    "keys not in order": lambda line: (
        written({"z": 1})[:0] + json.dumps(dict(reversed(json.loads(line).items()))).encode()
    ),
    "no line feed": lambda line: line[:-1],
    "two lines": lambda line: line + b"\n",
    "another key": lambda line: written(json.loads(line) | {"extra": 1}),
    "a key less": lambda line: written({k: v for k, v in json.loads(line).items() if k != "version"}),
    "another protocol": lambda line: written(json.loads(line) | {"protocol": "other"}),
    "another instance": lambda line: written(
        json.loads(line) | {"instance_id": "0" * 8 + "-0000-4000-8000-" + "9" * 12}
    ),
    "a gap in seq": lambda line: written(json.loads(line) | {"seq": json.loads(line)["seq"] + 1}),
    "escaped": lambda line: json.dumps(json.loads(line) | {"protocol": "é"}, separators=(",", ":")).encode() + b"\n",
}


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
@pytest.mark.parametrize("number", FRAMES[:8])
def test_each_frame_is_written_as_it_must_be(number: int, spoil: Callable[[bytes], bytes]) -> None:
    index, place = find(number)
    frames = a_life()[index].frames
    with pytest.raises(Violation):
        judge(edited(a_life(), index, frames=(*frames[:place], spoil(frames[place]), *frames[place + 1 :])))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("outcome", each) for each in ("failed", "cancelled")),
        *(("persistence", each) for each in ("not_started", "degraded")),
        ("revision", None),
        ("error_code", "execution_failed"),
        ("session_id", "s9"),
        ("run_id", "r9"),
        ("extra", 1),
    ],
)
def test_run_finished_tells_the_truth(key: str, value: object) -> None:
    frame = json.loads(a_life()[finished()].frames[0])
    frame["data"][key] = value
    with pytest.raises(Violation):
        judge(edited(a_life(), finished(), frames=(written(frame),)))


def test_run_finished_comes_neither_early_nor_again() -> None:
    done = next(
        index for index, step in enumerate(a_life()) if isinstance(step.given, Said) and step.given.name == "TurnEnded"
    )
    early = edited(edited(a_life(), done, frames=a_life()[finished()].frames), finished(), frames=())
    with pytest.raises(Violation, match="EVT-46"):
        judge(renumbered(early))


def test_an_approval_is_granted_by_an_answer_alone() -> None:
    d = Driver(check=False).ready().attach().executing()
    d.event(approval(d))
    d.wait(60_000)
    expiry = d.steps[-1]
    granted = replace(expiry.commands[0], fields={**expiry.commands[0].fields, "allow": True})
    judge(d.steps)
    with pytest.raises(Violation, match="APPR-05"):
        judge([*d.steps[:-1], replace(expiry, commands=(granted,))])
    with pytest.raises(Violation, match="APPR-07"):
        judge([*d.steps[:-1], replace(expiry, commands=())])


def test_no_second_worker_beside_one_that_is_on() -> None:
    d = Driver(check=False).ready().attach()
    d.ask("session.list")
    start = d.steps[-1]
    d.ask("history.page", {"session_id": "s1", "revision": "h1"})
    again = replace(start.commands[0], fields={**start.commands[0].fields, "job": 9, "method": "history.page"})
    refusal = next(index for index, step in enumerate(d.steps) if step.frames and b"busy" in step.frames[0])
    with pytest.raises(Violation, match="BOUND-35"):
        judge(edited(d.steps, refusal, frames=(), commands=(again,))[: refusal + 1])


def test_the_status_is_that_of_the_output() -> None:
    end = next(index for index, step in enumerate(a_life()) if any(each.name == "Exit" for each in step.commands))
    commands = tuple(
        replace(each, fields={"status": 1}) if each.name == "Exit" else each for each in a_life()[end].commands
    )
    with pytest.raises(Violation, match="D40"):
        judge(edited(a_life(), end, commands=commands))
    with pytest.raises(Violation, match="FLOW-20"):
        judge([*a_life()[: end + 1], Step(0, Reported("time"), (), a_life()[end].commands)])


def test_late_words_are_not_answered() -> None:
    d = Driver(check=False).ready().attach()
    d.done(attached("s2"), 1)
    d.event(worker.Note("late", "x"), 2)
    judge(d.steps)
    frame = d.frames[-1] | {"seq": len(d.frames) + 1}
    with pytest.raises(Violation):
        judge([*d.steps[:-1], replace(d.steps[-1], frames=(written(frame),))])
