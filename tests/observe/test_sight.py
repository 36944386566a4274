"""What was looked at: the clauses of rows, shapes, rules and grounds, no more than frames show."""

import pytest

from localagent.conformance.register import find
from statemachines.observe import Explanation
from statemachines.witness.sight import CLAUSES
from tests.observe import traces as t
from tests.observe.traces import Trace, Write


def _last(write: Write) -> Explanation:
    trace = Trace()
    write(trace)
    return trace.told[-1]


@pytest.mark.parametrize(
    ("write", "seen", "unseen"),
    [
        (lambda w: w.ready(), "ENV-28 ENV-33 NEG-02 NEG-22 STATUS-06", "TC-21 CT-21 EVT-01"),
        (lambda w: w.ready("tool.cards"), "TC-20 TC-21", "CT-22 NEG-03"),
        (lambda w: w.running(), "EVT-01 EVT-09 EVT-11", "EVT-04 EVT-14"),
        (lambda w: w.running().finished(), "EVT-42 EVT-43", "EVT-04"),
        (lambda w: w.running().finished().ask("status").result(t.status(session_id="s1")), "EVT-04 EVT-45", "EVT-42"),
        (lambda w: w.ready().ask("status", id="r1").error("duplicate_id"), "ENV-47 ENV-19", "SESS-06"),
        (lambda w: w.ask("shutdown", now=True).error("invalid_params"), "ERR-10 SHUT-01", "SHUT-04"),
        (lambda w: w.ready().ask("session.list").result(t.listing()), "LIST-10 LIST-66", "LIST-11 LIST-14 SESS-06"),
        (lambda w: w.ready().ask("session.list").result(t.listing(t.listed())), "LIST-11 LIST-13", "EVT-01 LIST-14"),
        (lambda w: w.ready().ask("session.list").result(t.listing(t.listed("a"), t.listed("b"))), "LIST-14", "LIST-29"),
        (
            lambda w: w.ready().ask("status").result(t.status()),
            "STATUS-06 STATUS-14 SEL-03",
            "STATUS-18 STATUS-15 SEL-02",
        ),
        (
            lambda w: w.running().ask("status").result(t.status("running", session_id="s1", run_id=t.RUN)),
            "STATUS-15 ENV-30",
            "STATUS-14 STATUS-05",
        ),
    ],
    ids=range(12),
)
def test_what_a_frame_shows(write: Write, seen: str, unseen: str) -> None:
    looked = _last(write).looked
    assert set(seen.split()) <= looked
    assert not set(unseen.split()) & looked


def test_what_is_supposed_is_not_seen() -> None:
    trace = Trace().running().approval().allow().error("stale_approval")
    inferred = {clause for step in trace.told[-1].steps if step.inferred for clause in step.clauses}
    assert inferred
    assert not inferred & trace.told[-1].looked - {clause for each in trace.told[-1].steps for clause in each.clauses
                                                    if not each.inferred}  # fmt: skip


def test_everything_that_is_looked_at_is_listed() -> None:
    trace = Trace().running("tool.cards", "client.tools").delta().whole().activity("started").carded(t.card())
    trace.call().deliver().result({"accepted": True}).activity("completed").carded(t.card(1, "success")).finished()
    looked = frozenset().union(*(each.looked for each in trace.told))
    assert trace.findings == []
    assert len(looked) > 100
    assert looked <= CLAUSES


def test_every_clause_that_is_listed_exists() -> None:
    for clause in CLAUSES:
        find(clause)


def test_less_is_asked_of_a_backend_that_claims_less() -> None:
    from statemachines.observe import Observer

    claimed = frozenset(t.SIXTEEN) - {"model.catalog"}
    for observer, found in ((Observer(claimed), []), (Observer(), ["NEG-02", "NEG-06"])):
        trace = Trace()
        trace.observer = observer
        trace.ask("initialize", required_capabilities=[]).result({**t.initialized(), "capabilities": sorted(claimed)})
        trace.ask("model.catalog").error("unsupported_method")
        assert trace.clauses == found
