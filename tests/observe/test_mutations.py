"""Two hundred single mutations of the captures: each is reported, or is of a kind that frames cannot show.

Why a mutation may stay unseen is decided here, from the mutation and the recorded frames alone. The reasons are a
closed set, each tied to a sentence of the contract; whatever falls under none of them must be reported.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final

import pytest

from statemachines.observe import Finding, Observer
from tests.kit.mutations import MUTATORS, Conversation, Mutation, Seen, leaves, load, sample

SEED: Final = 1
EACH: Final = 25
CAPTURES: Final = ("plain", "tools", "discovery")


def observe(conversation: Conversation) -> list[Finding]:
    observer = Observer()
    for seen in conversation:
        if seen.side == "client":
            observer.client(seen.frame)
        else:
            observer.backend(seen.frame)
    observer.exited(0)
    observer.finish()
    return observer.findings


# what may stay unseen


def _run(c: Iterable[Seen], seen: Seen) -> list[Seen]:
    """The events of the run that an event belongs to."""
    return [each for each in c if each.event and each.data.get("run_id") == seen.data.get("run_id")]


def _settled(events: list[Seen], message: str, seen: Seen) -> bool:
    """The other events still reconcile the segment after its last delta, and end as the outcome asks (D60, D61)."""
    rest = [each for each in events if each is not seen and each.data.get("message_id") == message]
    recs = [each for each in rest if each.event == "message.reconcile"]
    deltas = [each for each in rest if each.event == "message.delta"]
    if not recs:
        return not deltas
    return bool(
        rest[-1] is recs[-1]
        and _fits([each for each in events if each is not seen], recs[-1], recs[-1].data["partial"])
    )


def _fits(events: list[Seen], rec: Seen, partial: bool) -> bool:
    """A segment's last ``partial`` fits the outcome; in a run that failed any does, but for the last of all."""
    completed = next(each for each in events if each.event == "run.finished").data["outcome"] == "completed"
    last = [each for each in events if each.event == "message.reconcile"][-1]
    return partial is not completed if completed or rec is last else True


def _whole(seen: Seen) -> bool:
    return bool(seen.event == "message.reconcile" and seen.data["part"] == 0 and seen.data["last_part"])


def lost_delta(c: Conversation, m: Mutation) -> bool:
    """EVT-19: a delta may be dropped, a gap in its numbers is no fault."""
    return m.kind == "drop" and c[m.at].event == "message.delta"


def lost_repeat(c: Conversation, m: Mutation) -> bool:
    """BASE-OP-167: of several whole reconciliations of a segment one may be missing, if the right one is the last."""
    seen = c[m.at]
    return m.kind == "drop" and _whole(seen) and _settled(_run(c, seen), seen.data["message_id"], seen)


def lost_end(c: Conversation, m: Mutation) -> bool:
    """BASE-OP-172: the end of an activity may be missing; ``run.finished`` closes it."""
    return m.kind == "drop" and c[m.at].event == "activity" and c[m.at].data["state"] != "started"


def outlasted(c: Conversation, m: Mutation) -> bool:
    """BASE-OP-61, D89: an operation pending at shutdown stays unanswered if it outlasts the closing deadline."""
    return m.kind == "drop" and _pending_at_shutdown(c, m.at)


def _pending_at_shutdown(c: Conversation, answer: int) -> bool:
    """The frame is the answer of an operation behind which the client sent nothing but ``shutdown``."""
    if "result" not in c[answer].frame:
        return False
    request = next(i for i, seen in enumerate(c) if seen.method and seen.frame["id"] == c[answer].frame["id"])
    later = [seen.method for seen in c[request + 1 :] if seen.side == "client"]
    return later == ["shutdown"] and c[request].method in ("session.open", "history.page")


def repeated_whole(c: Conversation, m: Mutation) -> bool:
    """BASE-OP-167: a whole reconciliation may come again."""
    return m.kind == "duplicate" and _whole(c[m.at])


def behind_shutdown(c: Conversation, m: Mutation) -> bool:
    """SHUT-05: a line behind ``shutdown`` gets no answer, whatever it is."""
    return m.kind == "duplicate" and c[m.at].method == "shutdown"


def sent_ahead(c: Conversation, m: Mutation) -> bool:
    """CLIENT-26: a client may send before it has read an earlier answer; the line waits until it is read."""
    return m.kind == "swap" and (c[m.at].side, c[m.at + 1].side) == ("backend", "client")


_FREE: Final = {"message.delta", "message.reconcile", "activity"}


def unordered(c: Conversation, m: Mutation) -> bool:
    """EVT-49, BASE-OP-169: what a run tells of different segments and activities has no order among itself."""
    if m.kind != "swap" or not {c[m.at].event, c[m.at + 1].event} <= _FREE:
        return False
    left, right = (each.data.get("message_id", each.data.get("activity_id")) for each in c[m.at : m.at + 2])
    return bool(left != right)


def same_segment(c: Conversation, m: Mutation) -> bool:
    """BASE-OP-167, BASE-OP-168: within a segment only deltas, and the last reconciliation, have a place."""
    left, right = c[m.at], c[min(m.at + 1, len(c) - 1)]
    if m.kind != "swap" or not {left.event, right.event} <= _FREE or left.event == right.event == "message.delta":
        return False
    if left.data.get("message_id") != right.data.get("message_id") or "activity" in (left.event, right.event):
        return False
    swapped = [{id(left): right, id(right): left}.get(id(each), each) for each in _run(c, left)]
    return _settled(swapped, left.data["message_id"], Seen("", {}))


def seq_may_skip(c: Conversation, m: Mutation) -> bool:
    """BASE-OP-43: ``seq`` may skip; only the last frame can without meeting the next one."""
    last = max(i for i, seen in enumerate(c) if seen.side == "backend")
    return m.kind == "seq" and m.at == last and m.new > m.old


def won_the_race(c: Conversation, m: Mutation) -> bool:
    """BASE-OP-61: an operation that was pending at shutdown may still succeed."""
    return m.kind == "after shutdown" and _pending_at_shutdown(c, m.at)


def named_once(c: Conversation, m: Mutation) -> bool:
    """CLIENT-22: ids are opaque; one that nothing else names may be any other."""
    return m.kind == "id" and sum(value == m.old for seen in c for _, value in leaves(seen.frame)) == 1


def another_segment(c: Conversation, m: Mutation) -> bool:
    """EVT-19, BASE-OP-167: a reconciliation alone makes a segment, where its own had another one left."""
    seen = c[m.at]
    if m.kind != "id" or m.path != ("data", "message_id") or not _whole(seen):
        return False
    events = _run(c, seen)
    return _settled(events, seen.data["message_id"], seen) and _settled(
        [*events[:-1], Seen("", {**seen.frame, "data": {**seen.data, "message_id": "new"}}), events[-1]], "new", seen
    )


def blank_segment(c: Conversation, m: Mutation) -> bool:
    """D62, D162: white space alone makes a segment that owes nothing."""
    seen = c[m.at]
    blank = seen.event == "message.delta" and not seen.data["text"].strip()
    return m.kind == "id" and m.path == ("data", "message_id") and blank


def another_listed(c: Conversation, m: Mutation) -> bool:
    """LIST-13: which sessions are stored only the store knows; a listing must be in order (LIST-14)."""
    if m.kind != "id" or m.path[:2] != ("result", "sessions"):
        return False
    pages = [seen for seen in m.after if "sessions" in seen.frame.get("result", {})]
    ordered = [each["session_id"] for seen in pages if "progress" not in seen.frame["result"]
               for each in seen.frame["result"]["sessions"]]  # fmt: skip
    return ordered == sorted(ordered)


def free_value(c: Conversation, m: Mutation) -> bool:
    """CLIENT-20: a known value in a place where no other frame tells which of the known ones is true."""
    seen, path = c[m.at], tuple(key for key in m.path if isinstance(key, str))
    if m.kind != "enum" or m.new == "bogus":
        return False
    name, last = seen.event, path[-1]
    if name == "activity":
        return bool(last == "kind" or {m.old, m.new} == {"completed", "failed"})
    if name == "message.reconcile" and last == "partial":
        events = _run(c, seen)
        ours = [each for each in events if each.data.get("message_id") == seen.data["message_id"]]
        return bool(ours[-1] is not seen or _fits(events, seen, m.new))
    if name == "run.finished":
        return (last == "error_code" and m.old is not None) or (m.old, m.new) == ("durable", "degraded")
    if last == "progress":
        return "complete" not in (m.old, m.new)
    if last == "eligibility":  # busy is a hint about others' leases; the attached session is never so (LIST-44)
        attached = [each.frame["result"]["session_id"] for each in c[: m.at]
                    if "durable" in each.frame.get("result", {})][-1]  # fmt: skip
        return bool(m.new == "busy") and seen.frame["result"]["sessions"][m.path[2]]["session_id"] != attached
    if "selection" in path:
        return last in ("requested_effort", "effective_effort", "permitted_efforts")
    if path[:2] == ("result", "entries"):
        return _free_entry(seen.frame["result"]["entries"][m.path[2]], last, m.new)
    return bool(path == ("result", "complete") and "entries" in seen.frame["result"] and not m.new)


_PARTIAL: Final = ("assistant", "activity", "diagnostic")


def _free_entry(entry: dict[str, Any], key: str, new: Any) -> bool:
    """The store alone knows what an entry is; but only three kinds can be partial (BASE-OP-117)."""
    told = {**entry, key: new}
    return key in ("kind", "partial") and (not told["partial"] or told["kind"] in _PARTIAL)


REASONS: Final[tuple[Callable[[Conversation, Mutation], bool], ...]] = (
    lost_delta,
    lost_repeat,
    lost_end,
    outlasted,
    repeated_whole,
    behind_shutdown,
    sent_ahead,
    unordered,
    same_segment,
    seq_may_skip,
    won_the_race,
    named_once,
    another_segment,
    blank_segment,
    another_listed,
    free_value,
)


Judged = tuple[str, Mutation, bool, tuple[str, ...]]
"""Capture, mutation, whether it is reported, and the reasons why it need not be."""


def judge(mutations: Iterable[tuple[str, Mutation]]) -> Iterator[Judged]:
    for name, m in mutations:
        reasons = tuple(each.__name__ for each in REASONS if each(captures()[name], m))
        yield name, m, bool(observe(m.after)), reasons


@cache
def captures() -> dict[str, Conversation]:
    return {name: load(name) for name in CAPTURES}


@cache
def judged() -> list[Judged]:
    return list(judge(sample(SEED, captures(), EACH)))


def wrong(every: Iterable[Judged]) -> list[tuple[str, str, bool, tuple[str, ...]]]:
    """Neither reported nor excused, or both: the predicates are tight."""
    return [(name, str(m), reported, reasons) for name, m, reported, reasons in every if reported == bool(reasons)]


@pytest.mark.parametrize("name", CAPTURES)
def test_the_captures_themselves_are_explained(name: str) -> None:
    assert observe(load(name)) == []


def test_a_mutation_is_reported_unless_frames_cannot_show_it() -> None:
    assert len(judged()) == 200
    assert wrong(judged()) == []


def test_the_counts_by_kind() -> None:
    counts = Counter((m.kind, "reported" if reported else reasons[0]) for _, m, reported, reasons in judged())
    assert {kind: dict(each) for kind, each in _by_kind(counts).items()} == COUNTS


def _by_kind(counts: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    table: dict[str, dict[str, int]] = {}
    for (kind, how), count in counts.items():
        table.setdefault(kind, {})[how] = count
    return table


COUNTS: Final = {
    "drop": {"reported": 18, "lost_repeat": 5, "lost_delta": 1, "lost_end": 1},
    "duplicate": {"reported": 20, "repeated_whole": 5},
    "swap": {"reported": 15, "unordered": 6, "sent_ahead": 3, "same_segment": 1},
    "enum": {"reported": 22, "free_value": 3},
    "id": {"reported": 20, "named_once": 4, "another_segment": 1},
    "seq": {"reported": 25},
    "after terminal": {"reported": 25},
    "after shutdown": {"reported": 25},
}
"""The mutations of seed 1 by kind: how many are reported, and why the others are not."""


@pytest.mark.deep
def test_every_mutation_there_is() -> None:
    every = [(name, m) for mutate in MUTATORS for name, c in captures().items() for m in mutate(c)]
    assert len(every) == 3103
    assert wrong(judge(every)) == []
