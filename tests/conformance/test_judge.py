"""The judge on traces: hand-written ones with one thing wrong, and all those of the observer's own tests."""

import json
from pathlib import Path

import pytest

from localagent.conformance import judge as judge_module
from localagent.conformance import transcript
from localagent.conformance.judge import advertised, conclusion, judge
from localagent.conformance.judge_trace import broken
from localagent.conformance.model import Blame, Record, Transcript, Verdict
from statemachines.observe import PLAIN, Finding, Observer
from tests.conformance.talks import ENVELOPE, HEADER, Talk, ask, bad, judged
from tests.observe import traces as t
from tests.observe.test_contents import CASES as BROKEN
from tests.observe.test_flows import SOUND
from tests.test_walls import EFFECTS, _imports


def recorded(trace: t.Trace) -> Transcript:
    """A trace of the observer's tests as a foreign transcript."""
    records = []
    for number, (kind, value, _) in enumerate(trace.given, 1):
        match kind:
            case "exit":
                records.append(Record(number, "exit", value=value))
            case "closed" if value:
                records.append(Record(number, "client", data=b"{"))
            case "closed":
                records.append(Record(number, "closed"))
            case _:
                records.append(Record(number, kind, data=json.dumps(value).encode() + b"\n", value="decoded"))
    return Transcript(tuple(records))


def _trace(write: t.Write) -> t.Trace:
    trace = t.Trace()
    write(trace)
    return trace


def _findings(trace: t.Trace) -> list[Finding]:
    """What an observer finds of the frames alone; some traces begin with a memory that was made up."""
    observer = Observer()
    for kind, value, line in trace.given:
        match kind:
            case "exit":
                observer.exited(value)
                observer.finish()
            case "closed":
                observer.client_closed(inside_frame=value)
            case "client":
                observer.client(value, line)
            case _:
                observer.backend(value, line)
    return observer.findings


def _bare(trace: t.Trace) -> bool:
    """What was told to the observer beside values: a transcript says that by its bytes."""
    return all(line == PLAIN for _, _, line in trace.given)


@pytest.mark.parametrize("name", sorted(SOUND))
def test_no_false_alarm_on_a_sound_trace(name: str) -> None:
    trace = _trace(SOUND[name])
    if _bare(trace) and name not in ("a launch that failed", "a signal"):  # which is told of the process, not of frames
        assert bad(judge(recorded(trace), None, None)) == {}


@pytest.mark.parametrize("number", range(len(BROKEN)), ids=lambda n: f"{n}-{BROKEN[n][0]}")
def test_a_finding_of_the_observer_violates_a_clause(number: int) -> None:
    trace = _trace(BROKEN[number][2])
    if not _bare(trace):
        return
    found = bad(judge(recorded(trace), None, None))
    wanted = {f"trace/{clause}" for each in _findings(trace) if not each.reading for clause in broken(each)}
    assert set(found) == wanted
    assert all(each.record is not None and each.what and each.blame is Blame.WRONG for each in found.values())


def test_what_was_looked_at_held() -> None:
    results = judged(Talk().running().shut().end())
    for clause in ("ENV-28", "ENV-29", "STATUS-03", "SESS-17", "TURN-11", "EVT-09", "SHUT-04", "FRAME-02"):
        assert results[f"trace/{clause}"].verdict is Verdict.HELD, clause
    for clause in ("EVT-20", "APPR-02", "LIST-14"):
        assert results[f"trace/{clause}"].verdict is Verdict.NOT_EXERCISED, clause
    assert results["trace/TC-46"].verdict is Verdict.NOT_CLAIMED


def test_a_refusal_holds_its_ground_and_an_acceptance_does_not() -> None:
    talk = Talk().ready().ask("status", "s").result(t.status(), "s").shut().end()
    assert judged(talk)["trace/ENV-47"].verdict is Verdict.NOT_EXERCISED
    talk = Talk().ready().ask("status", "init").error("duplicate_id", "init").shut().end()
    assert judged(talk)["trace/ENV-47"].verdict is Verdict.HELD


def test_nothing_after_the_end_of_a_run_holds_once_something_else_came() -> None:
    end = {"outcome": "completed", "persistence": "durable", "revision": "h-3", "error_code": None}
    talk = Talk().running().event("run.finished", **end)
    assert judged(talk)["trace/EVT-04"].verdict is Verdict.NOT_EXERCISED
    assert judged(talk.shut().end())["trace/EVT-04"].verdict is Verdict.HELD


def test_a_reading_of_ours_is_not_held_against_anybody() -> None:
    told = {"activity_id": "x", "kind": "tool", "state": "completed", "name": "n", "summary": ""}
    assert bad(judge(Talk().running().event("activity", **told).transcript, None, None)) == {}


def test_lines_that_are_no_frames() -> None:
    talk = Talk().ready().add(dir="backend", line="hello\n").shut().end()
    found = judged(talk)["trace/FRAME-03"]
    assert (found.verdict, found.record) == (Verdict.VIOLATED, 4)
    talk = Talk().ready().add(dir="backend", bytes="/w==").add(dir="backend", bytes="Cg==").shut().end()
    assert judged(talk)["trace/FRAME-02"].verdict is Verdict.VIOLATED


STORED = '{"event_id": "1", "event_type": "user_input", "payload": {"text": "Hi"}, "session_id": "s1"}\n'


@pytest.mark.parametrize(
    ("line", "clause"), [(STORED, "FRAME-10"), ('{"type": "text_delta", "text": "Hi"}\n', "FRAME-11")]
)
def test_objects_without_an_envelope_are_something_internal(line: str, clause: str) -> None:
    found = judged(Talk().ready().add(dir="backend", line=line).shut().end())
    one, other = (found[f"trace/{each}"].verdict for each in (clause, *{"FRAME-10", "FRAME-11"} - {clause}))
    assert (one, other) == (Verdict.VIOLATED, Verdict.HELD)


def test_an_answer_without_an_envelope_is_nothing_internal() -> None:
    found = judged(
        Talk().ready().ask("status", "s").add(dir="backend", line='{"id": "s", "result": {}}\n').shut().end()
    )
    assert {found["trace/FRAME-10"].verdict, found["trace/FRAME-11"].verdict} == {Verdict.HELD}


@pytest.mark.parametrize(("size", "verdict"), [(65_536, Verdict.HELD), (65_537, Verdict.VIOLATED)])
def test_the_bound_of_an_output_frame_counts_its_lf(size: int, verdict: Verdict) -> None:
    talk = Talk().ready().ask("status", "s").result(t.status(), "s")
    line = talk.records[-1]["line"]
    talk.records[-1]["line"] = line[:1] + " " * (size - len(line)) + line[1:]
    assert judged(talk.shut().end())["trace/BOUND-02"].verdict is verdict


def test_the_size_of_a_decoded_frame_is_not_known() -> None:
    found = {each.check: each for each in judge(recorded(_trace(lambda w: w.ready())), None, None)}
    assert found["trace/BOUND-02"].verdict is Verdict.NOT_EXERCISED


def test_garbage_pieces_and_oversize_lines_of_the_client_are_no_fault() -> None:
    talk = Talk().add(dir="client", line="{]\n{}\n").error("invalid_request", None).error("invalid_request", None)
    whole = ask("status", "s")["line"]
    talk.add(dir="client", line=whole[:10]).add(dir="client", line=whole[10:]).error("not_initialized", "s")
    talk.add(dir="client", bytes="/wo=").error("invalid_request", None)
    talk.add(dir="client", line="x" * 70000).error("frame_too_large", None).end()
    assert bad(judged(talk).values()) == {}


def test_a_number_of_thousands_of_digits_is_json() -> None:
    line = json.dumps({**ENVELOPE, "id": "a", "method": "status", "params": {"x": 0}}).replace("0}", "1" * 5000 + "}")
    for code in ("invalid_request", "not_initialized"):
        talk = Talk().add(dir="client", line=line + "\n").error(code).shut().end()
        assert bad(judged(talk).values()) == {}, code


def test_an_oversize_line_that_was_recorded_behind_its_refusal() -> None:
    talk = Talk().error("frame_too_large", None).add(dir="client", line="x" * 70000).close().end()
    assert bad(judged(talk).values()) == {}


def test_input_that_ends_inside_a_line() -> None:
    talk = Talk().ready().add(dir="client", line="{").close().error("incomplete_frame", None).end()
    assert bad(judged(talk).values()) == {}
    assert judged(talk)["trace/FRAME-17"].verdict is Verdict.HELD


def test_after_a_signal_only_the_frames_are_judged() -> None:
    talk = Talk().running().add(signal="SIGTERM")
    assert bad(judged(talk.end(-15)).values()) == {}
    assert set(bad(judged(Talk().running().add(signal="SIGTERM").say(type="x").end(-15)).values())) != set()


def test_a_recording_that_begins_in_the_middle() -> None:
    talk = Talk(header=False)
    talk.seq = 56
    talk.ask("session.list").result(
        {"sessions": [], "revision": "l-1", "complete": True, "notices": [], "next_cursor": None}
    )
    talk.event("diagnostic", code="c", summary="x")
    results = judged(talk)
    assert {each.verdict for each in results.values()} == {Verdict.HELD, Verdict.NOT_EXERCISED}
    assert results["trace/ENV-29"].verdict is Verdict.HELD
    assert results["trace/ENV-28"].verdict is Verdict.NOT_EXERCISED
    talk.seq = 3
    talk.event("diagnostic", code="c", summary="x")
    assert judged(talk)["trace/ENV-29"].verdict is Verdict.VIOLATED
    begun = Talk(header=False).say(type="event", event="diagnostic", data={})
    assert judged(begun)["process/no-output-before-input"].verdict is Verdict.VIOLATED


def test_each_child_has_an_observer_of_its_own() -> None:
    talk = Talk().ready().shut().end()
    talk.records.append(HEADER)
    talk.seq = 0
    assert bad(judged(talk.ready().shut().end()).values()) == {}


def test_a_backend_that_claims_less_is_not_held_to_the_rest() -> None:
    told = t.initialized()
    told["capabilities"] = [name for name in t.SIXTEEN if name != "model.catalog"]
    talk = Talk().ask("initialize", "init", required_capabilities=[]).result(told, "init")
    talk.ask("model.catalog", "m").error("unsupported_method", "m").shut().end()
    assert bad(judged(talk).values()) == {}
    assert judged(talk)["trace/NEG-02"].verdict is Verdict.NOT_CLAIMED
    assert judged(talk, caps=frozenset(t.SIXTEEN))["trace/NEG-02"].verdict is Verdict.VIOLATED
    told["capabilities"].remove("turn.start")
    talk = Talk().ask("initialize", "init", required_capabilities=[]).result(told, "init").shut().end()
    assert judged(talk)["trace/NEG-02"].verdict is Verdict.VIOLATED


def test_the_conclusion() -> None:
    def concluded(talk: Talk) -> str:
        return conclusion(judge(talk.transcript, None, None), talk.transcript)

    assert concluded(Talk().ready().shut().end()) == "conformant"
    assert concluded(Talk().ready().shut().end(1)) == "violations"
    assert concluded(Talk().ready().shut()) == "inconclusive"
    cut = Talk().ready().shut().end()
    cut.records.pop()
    assert concluded(cut) == "inconclusive"
    assert concluded(Talk(header=False).ready().shut().add(exit=0)) == "conformant"
    assert concluded(Talk(header=False).ready().shut()) == "inconclusive"
    damaged = transcript.read(transcript.to_bytes(Talk().ready().shut().end().transcript) + b"{]\n")
    assert conclusion(judge(damaged, None, None), damaged) == "inconclusive"
    assert conclusion((), Transcript(())) == "inconclusive"


def test_the_judge_is_pure() -> None:
    for path in Path(judge_module.__file__).parent.glob("judge*.py"):
        assert not set(EFFECTS) & {name.partition(".")[0] for name, _ in _imports(path)}, path.name


def test_what_is_advertised() -> None:
    assert advertised(Talk().transcript) is None
    assert advertised(Talk().ready().transcript) == frozenset(t.SIXTEEN)
    header = Talk()
    header.records[0] = {**HEADER, "capabilities": ["status"]}
    assert advertised(header.ready().transcript) == frozenset({"status"})
