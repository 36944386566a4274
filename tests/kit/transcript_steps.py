"""What a transcript consists of: steps, each one thing given and all that came of it. Plain data, for any driver.

Behind them what a checker remembers of requests and workers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Sent:
    """The client wrote bytes. The step is that of the first line they complete, if they complete one."""

    data: bytes


@dataclass(frozen=True, slots=True)
class NextLine:
    """The next line of the same bytes."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The client closed its end."""


@dataclass(frozen=True, slots=True)
class Said:
    """A worker's message. ``what`` is event, undeliverable, done or gone; ``name`` the event's or last word's."""

    job: int
    what: str
    name: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Took:
    """The pipe took bytes."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Reported:
    """The pipe ``refused`` or ``broke``, the runtime is ``cleaned`` up, or it is ``time`` to look at the clock."""

    what: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command to the shell: its name and its fields."""

    name: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was given at the time ``at``, and all that came of it."""

    at: float
    given: Sent | NextLine | Ended | Said | Took | Reported
    frames: tuple[bytes, ...] = ()
    commands: tuple[Command, ...] = ()


@dataclass(slots=True)
class Request:
    """A request that was read, and what became of it."""

    id: str
    method: str
    params: Any
    answered: bool = False
    refused: bool = False
    recorded: bool = False
    job: "Job | None" = None


@dataclass(slots=True)
class Job:
    """A worker that was started; ``on`` until its last word, a turn worker's until it has gone."""

    kind: str
    request: Request
    on: bool = True
    cancelled: bool = False
