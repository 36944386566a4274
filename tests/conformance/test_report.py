"""Reports: the stream is the source, everything else is made of it, and consumers that are not ours can read it."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import junitparser
import pytest

from localagent.conformance import choose, report
from localagent.conformance.model import Blame, CaseResult, CheckResult, Record, Transcript, Verdict
from localagent.conformance.report import diagram, junit, markdown, page, people, tally
from localagent.conformance.report.tally import Report, Status
from localagent.conformance.suite import probe
from statemachines.registry import MACHINES

from .fakes import case, line, result, talk

NASTY = "bad \x00\x1b[31m\x7f\x85\ufffe\ud800 <b>&amp;</b> ]]> `code` | *star*\r\nnext"
EVENT = {"event": "message.delta", "data": {"text": NASTY + "x" * 900}}
HEADER: dict[str, Any] = {
    "argv": ["./my backend", "serve"],
    "options": ["--home", "/x y"],
    "started": "2026-01-01T00:00:00+00:00",
    "platform": NASTY,
    "profile": "base",
    "select": [],
    "strict": False,
    "universe": list(choose.universe("base")),
    "reasons": {"FRAME-25": "not-observable"},
}


def conversation() -> Transcript:
    """A conversation with an event, with a line that is not UTF-8, and with one that lacks its LF."""
    known = talk().records
    more = (
        line(6, "backend", EVENT, 120.5),
        Record(7, "backend", 121.0, b"\xc3\x28\n"),
        Record(8, "backend", 121.5, b'{"half": '),
        Record(9, "stderr", 122.0, value=NASTY.replace("\ud800", "")),
    )
    return Transcript((*known[:5], *more, *(replace(each, number=each.number + 4) for each in known[5:])))


def bad(name: str, machine: str) -> CaseResult:
    checks = (
        CheckResult("trace/EVT-45", ("EVT-45",), Verdict.VIOLATED, NASTY, Blame.WRONG, 6, machine=machine),
        CheckResult(f"{name}/e1", ("TURN-14", "D40"), Verdict.VIOLATED, "twice", Blame.LATE, 8),
        CheckResult(f"{name}/e2", ("EVT-20",), Verdict.HELD),
    )
    return CaseResult(case(name, "EVT-20"), conversation(), checks, 0.5, 2)


CASES = (
    result(probe("first")),
    result(case("frame.one", "FRAME-03", "FRAME-04")),
    result(case("frame.two", "FRAME-06"), Verdict.DEVIATION, blame=Blame.WRONG, what=NASTY, record=5),
    CaseResult(
        case("turn.three", "TURN-01"),
        Transcript(()),
        (CheckResult("turn.three/e1", ("TURN-01",), Verdict.NOT_EXERCISED, reason="needs-model"),),
    ),
    bad("evt.one", "run:1234 finished"),
    bad("evt.two", "run:1234 finished"),
    bad("evt.three", "message:12 reconciled"),
    CaseResult(
        case("env.fault", "ENV-01"),
        Transcript(()),
        (CheckResult("env.fault/e1", ("ENV-01",), Verdict.HARNESS_FAULT, NASTY, Blame.HARNESS),),
    ),
)


def written(place: Path, cases: tuple[CaseResult, ...] = CASES, end: Any = "complete") -> Report:
    stream = report.Stream(place, HEADER)
    stream.target(frozenset({"status", "initialize"}), {"round_trip": 1.0, "start": 90.0, "lag": 0.5})
    for each in cases:
        stream.case(each)
    stream.close(Report(HEADER, cases, end, tuple(HEADER["universe"])))
    return report.load(place)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("conf-suite")
    written(place)
    report.derive(place)
    return place


@pytest.fixture(scope="module")
def loaded(place: Path) -> Report:
    return report.load(place)


# the stream


def test_what_is_read_is_what_was_written(loaded: Report) -> None:
    assert [each.case.id for each in loaded.cases] == [each.case.id for each in CASES]
    for found, given in zip(loaded.cases, CASES, strict=True):
        assert found.results == given.results
        assert found.transcript == given.transcript
        assert (found.case.title, found.case.clauses, found.attempts) == (
            given.case.title,
            given.case.clauses,
            given.attempts,
        )
    assert loaded.end == "complete"
    assert loaded.header["capabilities"] == ["initialize", "status"]
    assert loaded.reasons == HEADER["reasons"]
    assert report.status(loaded) is Status.VIOLATION


def test_every_prefix_of_the_stream_is_a_report(tmp_path: Path) -> None:
    written(tmp_path)
    file = tmp_path / "report.ndjson"
    lines = file.read_bytes().split(b"\n")[:-1]
    assert json.loads(lines[0])["event"] == "header"
    assert json.loads(lines[-1]) == {"event": "footer", "end": "complete", "cases": len(CASES), "status": 1}
    for count in range(1, len(lines)):
        file.write_bytes(b"\n".join([*lines[:count], lines[count][: len(lines[count]) // 2]]))  # killed in a line
        found = report.load(tmp_path)
        assert found.end == "cut"
        assert len(found.cases) == max(0, count - 2)
        report.derive(tmp_path)


def test_an_earlier_report_leaves_nothing_behind(tmp_path: Path) -> None:
    written(tmp_path)
    report.derive(tmp_path)
    written(tmp_path, CASES[:2])
    assert len(list((tmp_path / "transcripts").iterdir())) == 2
    assert {each.name for each in tmp_path.iterdir()} == {"report.ndjson", "transcripts"}


def test_what_was_put_to_the_test_is_known_from_the_stream_too(tmp_path: Path) -> None:
    beside = CheckResult("trace/FRAME-03", ("FRAME-03",), Verdict.HELD)
    unreached = CheckResult("frame.one/e1", ("FRAME-04",), Verdict.NOT_EXERCISED, reason="not-reached")
    one = CaseResult(case("frame.one", "FRAME-04"), talk(), (unreached, beside))
    for found in (Report({}, (one,), "complete"), written(tmp_path, (one,))):
        assert found.cases[0].verdict is Verdict.NOT_EXERCISED
        assert report.status(found) is Status.INCONCLUSIVE


@pytest.mark.parametrize("content", [b"", b"{}\n", b"[]\n", b"no json\n", b'{"event": "header"}\n'])
def test_what_is_no_report_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "report.ndjson").write_bytes(content)
    with pytest.raises(report.UnreadableError):
        report.load(tmp_path)


@pytest.mark.parametrize("name", ["../secret", "transcripts/../../secret", "/etc/passwd"])
def test_a_report_names_no_file_outside_of_its_directory(tmp_path: Path, name: str) -> None:
    written(tmp_path, CASES[:1])
    file = tmp_path / "report.ndjson"
    file.write_text(file.read_text().replace("transcripts/sanity.first.ndjson", name))
    assert report.load(tmp_path).cases[0].transcript.records == ()


# the verdicts


def test_a_clause_has_the_worst_verdict_of_its_checks(loaded: Report) -> None:
    found = tally.clauses(loaded)
    assert found["EVT-45"].verdict is Verdict.VIOLATED
    assert len(found["EVT-45"].decisive) == 3
    assert found["FRAME-06"].verdict is Verdict.DEVIATION
    assert found["EVT-20"].verdict is Verdict.HELD
    assert (found["TURN-01"].verdict, found["TURN-01"].reason) == (Verdict.NOT_EXERCISED, "needs-model")
    assert found["FRAME-25"].reason == "not-observable"
    assert found["FRAME-31"].reason == "not-seen"
    counts = tally.families(found)
    assert counts["FRAME"][Verdict.HELD] == 2
    assert list(counts)[:2] == ["FRAME", "ENV"]
    assert list(counts)[-1] == "D"


def test_the_shortest_conversation_tells_of_a_fault_of_many() -> None:
    short = CaseResult(case("evt.short", "EVT-20"), talk(), bad("evt.short", "").results[:1])
    groups = tally.grouped(Report({}, (bad("evt.one", ""), short)), [Verdict.VIOLATED])
    assert [each.case.case.id for each in groups[0]] == ["evt.short", "evt.one"]


def test_what_can_be_repeated_is_a_command(loaded: Report) -> None:
    command = tally.repeat(loaded, "evt.one")
    assert command == "localagent conform --select evt.one --home '/x y' -- './my backend' serve"


# for people


def test_the_summary_says_what_a_person_needs(loaded: Report) -> None:
    text = people.render(loaded)
    assert "Violations: 4" in text
    assert tally.sentence("EVT-45")[:60] in text
    assert "also in evt.two, evt.three" in text
    assert ">>    6" in text
    assert "again: localagent conform --select evt.one" in text
    assert text.rstrip().endswith("not conformant")
    assert all(each.isprintable() or each == "\n" for each in text)
    assert "\033[31m" in people.render(loaded, people.coloured)


@pytest.mark.parametrize(
    ("cases", "end", "words"),
    [
        (CASES[:2], "complete", "conformant"),
        (CASES[:2], "cut", "inconclusive: the run was cut off"),
        (CASES[:1], "complete", "inconclusive: nothing was exercised"),
        (CASES[:1], "insane", "inconclusive: the target did not answer"),
        (CASES, "cut", "not conformant, as far as it got"),
        (CASES[-1:], "complete", "the suite failed"),
        ((result(probe("first"), Verdict.HARNESS_FAULT),), "insane", "the suite failed"),
    ],
)
def test_the_headline(cases: tuple[CaseResult, ...], end: Any, words: str) -> None:
    assert tally.headline(Report({}, cases, end)).startswith(words)


def test_markdown_shows_what_a_backend_sends_as_text(loaded: Report) -> None:
    text = markdown.render(loaded)
    assert text.startswith("# Conformance: not conformant\n")
    assert "### EVT-45" in text
    assert "\\<b\\>" in text
    assert all(each.isprintable() or each == "\n" for each in text)
    rows = [row for row in text.split("\n") if row.startswith("| FRAME")]
    assert rows == ["| FRAME | 2 |  | 1 |  | 29 |"]


# JUnit


def test_junit_is_read_by_somebody_else(place: Path, loaded: Report) -> None:
    suites = junitparser.JUnitXml.fromfile(str(place / "junit.xml"))
    found = {test.name: test for suite in suites for test in suite}
    assert set(found) == {each.case.id for each in CASES}
    assert (suites.tests, suites.failures, suites.errors, suites.skipped) == (8, 3, 1, 1)
    assert suites.time == pytest.approx(sum(each.seconds for each in CASES), abs=0.01)
    assert found["evt.one"].is_failure
    assert found["env.fault"].is_error
    assert found["turn.three"].is_skipped
    assert found["frame.one"].is_passed
    told = found["evt.one"].result[0]
    assert "trace/EVT-45" in told.message
    assert "\\x1b[31m" in told.text
    assert ">>" in told.text
    strict = junitparser.JUnitXml.fromstring(junit.render(replace(loaded, header={**loaded.header, "strict": True})))
    assert strict.failures == 4


@pytest.mark.parametrize(
    ("cases", "end", "errors"),
    [
        (CASES[:2], "complete", 0),
        (CASES[:2], "cut", 1),
        (CASES[:1], "complete", 1),
        (CASES[:1], "insane", 1),
        (CASES[-1:], "complete", 1),
    ],
)
def test_junit_is_red_for_whatever_is_not_conformant(cases: tuple[CaseResult, ...], end: Any, errors: int) -> None:
    found = Report({}, cases, end)
    suites = junitparser.JUnitXml.fromstring(junit.render(found))
    red = [test for suite in suites for test in suite if test.is_error]
    assert (suites.failures, suites.errors, len(red)) == (0, errors, errors)
    assert suites.tests == sum(len(list(suite)) for suite in suites)
    if tally.status(found) is Status.INCONCLUSIVE:
        assert red[0].result[0].message == tally.headline(found)


@pytest.mark.parametrize("code", [*range(0x20), 0x7F, 0xD800, 0xFFFE, 0xFFFF, 0x1F600])
def test_junit_holds_any_character(code: int) -> None:
    text = f"a{chr(code)}b"
    one = result(case("x.y", "FRAME-03", title=text), Verdict.VIOLATED, what=text, record=2)
    document = junit.render(Report({}, (one,), "complete"))
    assert Xml.fromstring(document.encode("utf-8")).find(".//failure") is not None


# the page


class Reader(HTMLParser):
    """Checks that elements are closed in order, ids unique, and links lead somewhere."""

    EMPTY = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [found["href"] or ""] if tag == "a" and "href" in found else []
        self.sources += [value or "" for name, value in attrs if name in ("src", "xlink:href")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.EMPTY:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def read(place: Path) -> Reader:
    reader = Reader()
    reader.feed((place / "index.html").read_text(encoding="utf-8"))
    reader.close()
    return reader


def test_the_page_is_well_formed_and_stands_alone(read: Reader) -> None:
    assert read.open == []
    assert len(set(read.ids)) == len(read.ids)
    assert [each for each in read.links if each[0] != "#" or each[1:] not in read.ids] == []
    assert read.sources == []
    assert "script" not in read.open


def test_the_page_has_every_clause_and_every_case(read: Reader, loaded: Report) -> None:
    ids = set(read.ids)
    assert set(HEADER["universe"]) <= ids
    assert set(tally.clauses(loaded)) <= ids
    assert {f"case-{each.case.id}" for each in CASES} <= ids


def test_the_page_marks_evidence_and_shows_a_picture_once(place: Path, read: Reader) -> None:
    text = (place / "index.html").read_text()
    assert text.count('class="offending"') == 1  # three cases, one fault
    assert text.count('class="here"') == 5  # that fault once, one more of each case, a deviation
    assert "<b>banner" not in text
    assert text.count("\u2717 message.delta") == 1


def states() -> Iterator[tuple[str, str]]:
    for name, spec in MACHINES.items():
        yield from ((name, state.value) for state in spec.states)


def test_every_state_of_a_picture_can_be_marked() -> None:
    found = {(machine, state): diagram.marked(f"{machine}:12 {state}", "message.delta") for machine, state in states()}
    missing = [where for where, svg in found.items() if not svg]
    assert missing == []
    for svg in found.values():
        root = Xml.fromstring(svg)
        (mark,) = [each for each in root.iter() if each.get("class") == "offending"]
        assert "".join(mark.itertext()) == "\u2717 message.delta"
        assert not any("id" in each.attrib for each in root.iter())


def test_the_edges_where_a_frame_belongs_are_marked_too() -> None:
    assert diagram.RIGHT in diagram.marked("run:a finished", "run.finished")
    assert diagram.marked("frame", "result") == ""
    assert diagram.marked("run nowhere", "result") == ""


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (line(1, "backend", {"event": "activity"}, 0), "activity"),
        (line(1, "backend", {"result": {}}, 0), "result"),
        (line(1, "backend", {"error": {"code": "busy"}}, 0), "error.busy"),
        (Record(1, "backend", data=b"junk\n"), "no frame"),
        (Record(1, "exit", value=3), "exit"),
        (None, "nothing"),
    ],
)
def test_what_a_frame_is_called(record: Record | None, words: str) -> None:
    assert diagram.label(record) == words


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.mark.deep
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_a_browser_draws_the_page(place: Path, tmp_path: Path) -> None:
    shot = tmp_path / "page.png"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    command = [str(CHROMIUM), *flags, "--window-size=1200,3000", f"--screenshot={shot}", f"file://{place}/index.html"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    data = shot.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")) == (1200, 3000)
    dump = subprocess.run(
        [str(CHROMIUM), *flags, "--dump-dom", f"file://{place}/index.html"],
        check=True,
        capture_output=True,
        timeout=60,
    ).stdout.decode()
    assert dump.count('class="offending"') == 1
    assert 'id="EVT-45"' in dump


def test_the_page_of_a_run_without_anything() -> None:
    assert "inconclusive" in page.render(Report({}, ()))
