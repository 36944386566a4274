"""Single mutations of a recorded conversation, seeded: what a broken backend or a damaged recording may look like.

A conversation is a list of frames, each with its direction. After a frame was dropped, doubled or moved, ``seq`` is
counted anew: otherwise the counter alone would give every such mutation away. What a mutation must look like to an
observer is not said here.
"""

import copy
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

CAPTURES: Final = Path(__file__).parents[1] / "data" / "captures"

Path_ = tuple[str | int, ...]
"""Keys and indices that lead to a value in a frame."""


@dataclass(frozen=True)
class Seen:
    """One frame as it crossed."""

    side: str
    frame: dict[str, Any]

    @property
    def event(self) -> str:
        """The name of the event; empty for requests and responses."""
        return str(self.frame.get("event", ""))

    @property
    def method(self) -> str:
        """The method of a request; empty otherwise."""
        return str(self.frame.get("method", ""))

    @property
    def data(self) -> dict[str, Any]:
        """What an event carries."""
        data: dict[str, Any] = self.frame.get("data", {})
        return data


Conversation = list[Seen]


@dataclass(frozen=True)
class Mutation:
    """What was done to which frame, and the conversation after it."""

    kind: str
    at: int
    after: Conversation
    path: Path_ = ()
    old: Any = None
    new: Any = None
    to: int = -1
    """Where a moved frame stands now."""

    def __str__(self) -> str:
        return f"{self.kind} of frame {self.at} {'.'.join(map(str, self.path))} {self.old!r} {self.new!r} {self.to}"


def load(name: str) -> Conversation:
    """The frames of a capture."""
    records = [json.loads(line) for line in (CAPTURES / f"{name}.ndjson").read_text().splitlines()]
    return [Seen(each["dir"], json.loads(each["line"])) for each in records if "dir" in each]


def renumbered(conversation: Conversation) -> Conversation:
    """The same frames with ``seq`` counted from 1."""
    numbers = iter(range(1, len(conversation) + 1))
    return [
        Seen(each.side, each.frame if each.side == "client" else {**each.frame, "seq": next(numbers)})
        for each in conversation
    ]


def altered(conversation: Conversation, at: int, path: Path_, new: Any) -> Conversation:
    """A copy with one value of one frame replaced."""
    frame = copy.deepcopy(conversation[at].frame)
    inner: Any = frame
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return [*conversation[:at], Seen(conversation[at].side, frame), *conversation[at + 1 :]]


def leaves(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every scalar of a JSON value, with the way to it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(inner, (*path, i))
    else:
        yield path, value


_EFFORTS: Final = ("default", "low", "medium", "high", "xhigh", "max")
ENUMS: Final[dict[str, tuple[str, ...]]] = {
    "type": ("response", "event"),
    "event": ("input.persisted", "message.delta", "message.reconcile", "activity", "diagnostic", "run.finished"),
    "outcome": ("completed", "cancelled", "failed"),
    "persistence": ("durable", "degraded", "not_started"),
    "eligibility": ("available", "cwd_unverified", "busy"),
    "progress": ("directory_work", "history_work", "record_work", "byte_work", "inventory_validation", "deadline",
                 "page_entries", "page_bytes", "complete"),
    "recovery": ("continue_cursor", "none"),
    "consistency": ("provisional_until_complete",),
    "readiness": ("initializing", "ready", "startup_failed"),
    "requested_effort": _EFFORTS,
    "effective_effort": _EFFORTS,
    "permitted_efforts": _EFFORTS,
    "effort_support": ("supported", "unsupported", "unknown"),
    "error_code": ("execution_failed", "content_limit", "provider_unavailable"),
    "code": ("operation_missing", "busy", "stale_run", "not_initialized"),
}  # fmt: skip
_KINDS: Final = {
    "activity": ("tool", "subagent", "compaction"),
    "entries": ("user", "assistant", "reasoning_summary", "activity", "compaction", "diagnostic"),
}
_STATES: Final = {
    "activity": ("started", "completed", "failed"),
    "": ("starting", "idle", "running", "failed", "stopping"),
}
IDS: Final = frozenset(
    {"id", "instance_id", "session_id", "run_id", "message_id", "activity_id", "revision", "cursor", "next_cursor",
     "request_id", "context_id"}
)  # fmt: skip


def enum_of(seen: Seen, path: Path_, value: Any) -> tuple[Any, ...]:
    """The values that the contract knows for a field of a backend frame; a flag counts as an enum of two."""
    if isinstance(value, bool):
        return (True, False)
    key = next(each for each in reversed(path) if isinstance(each, str))
    if key == "kind":
        return _KINDS[seen.event or "entries"]
    return _STATES[seen.event] if key == "state" else ENUMS.get(key, ())


def another_id(value: str) -> str:
    """An id of the same form that is not the same."""
    first = value[0]
    return ("1" if first == "0" else "0" if first in "123456789abcdef" else "x" if first != "x" else "y") + value[1:]


def drops(c: Conversation) -> Iterator[Mutation]:
    """Leave a frame out."""
    for at in range(len(c)):
        yield Mutation("drop", at, renumbered(c[:at] + c[at + 1 :]))


def duplicates(c: Conversation) -> Iterator[Mutation]:
    """Let a frame come twice."""
    for at in range(len(c)):
        yield Mutation("duplicate", at, renumbered(c[: at + 1] + c[at:]))


def swaps(c: Conversation) -> Iterator[Mutation]:
    """Exchange two neighbours."""
    for at in range(len(c) - 1):
        yield Mutation("swap", at, renumbered([*c[:at], c[at + 1], c[at], *c[at + 2 :]]))


def enums(c: Conversation) -> Iterator[Mutation]:
    """Give an enum or a flag of the backend another value, a known or an unknown one."""
    for at, seen in enumerate(c):
        for path, value in leaves(seen.frame) if seen.side == "backend" else ():
            known = enum_of(seen, path, value)
            for new in (*known, *(("bogus",) if known and not isinstance(value, bool) else ())):
                if new != value:
                    yield Mutation("enum", at, altered(c, at, path, new), path, value, new)


def ids(c: Conversation) -> Iterator[Mutation]:
    """Give a frame of either side another id."""
    for at, seen in enumerate(c):
        for path, value in leaves(seen.frame):
            if path[-1] in IDS and isinstance(value, str):
                new = another_id(value)
                yield Mutation("id", at, altered(c, at, path, new), path, value, new)


def seqs(c: Conversation) -> Iterator[Mutation]:
    """Give a frame another ``seq``."""
    for at, seen in enumerate(c):
        if seen.side == "backend":
            old = seen.frame["seq"]
            for new in (old - 1, old + 1, old + 7, 1, 0):
                if new != old:
                    yield Mutation("seq", at, altered(c, at, ("seq",), new), ("seq",), old, new)


def _moves(kind: str, c: Conversation, ends: Callable[[int], bool]) -> Iterator[Mutation]:
    for to in filter(ends, range(len(c))):
        for at in range(to):
            if c[at].side == "backend":
                moved = [*c[:at], *c[at + 1 : to + 1], c[at], *c[to + 1 :]]
                yield Mutation(kind, at, renumbered(moved), to=to)


def after_terminal(c: Conversation) -> Iterator[Mutation]:
    """Move a frame of a run behind its ``run.finished``."""
    for each in _moves("after terminal", c, lambda i: c[i].event == "run.finished"):
        run = c[each.to].data["run_id"]
        if run in (c[each.at].data.get("run_id"), c[each.at].frame.get("result", {}).get("run_id")):
            yield each


def after_shutdown(c: Conversation) -> Iterator[Mutation]:
    """Move a frame of the backend behind the answer to ``shutdown``."""
    yield from _moves("after shutdown", c, lambda i: c[i].frame.get("result") == {"state": "stopping"})


MUTATORS: Final = (drops, duplicates, swaps, enums, ids, seqs, after_terminal, after_shutdown)


def sample(seed: int, conversations: dict[str, Conversation], each: int) -> Iterator[tuple[str, Mutation]]:
    """``each`` mutations of every kind, drawn from all conversations together, the same for the same seed."""
    rng = random.Random(seed)
    for mutate in MUTATORS:
        every = [(name, mutation) for name, c in conversations.items() for mutation in mutate(c)]
        yield from rng.sample(every, each)


_JUNK: Final[tuple[Any, ...]] = (None, True, 0, -1, 1.5, "", "x", "r1", [], [1], {}, {"a": 1}, "success", "finished")


def damaged(value: Any, rng: random.Random) -> Any:
    """A JSON value with something left out or replaced by junk, anywhere in it."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        kept = {each: inner for each, inner in value.items() if each != key}
        return kept if rng.random() < 0.25 else {**kept, key: damaged(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        return [*value[:at], damaged(value[at], rng), *value[at + 1 :]]
    return rng.choice(_JUNK)
