"""The store against a simple model: two children and an editor of files, in any order (Hypothesis, stateful).

The model of a session is the list of its records; what a history must show follows by the reference projection. A
revision is good exactly as long as nobody has touched the file since it was given out.
"""

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from localagent.protocol.codes import Code
from localagent.sessions.disk import Step
from localagent.sessions.errors import AppendFailed, Outcome
from localagent.sessions.handle import Handle
from localagent.sessions.records import Draft
from localagent.sessions.store import Store
from tests.kit.profiles import examples
from tests.sessions import reference_projection
from tests.sessions.kit import House, failing, is_complete, refusal, shown

TEXTS = st.sampled_from(["", "a", "ab", "\u65e5\n", "long", "quotes"]).map(
    lambda name: {"long": "x" * 20_000, "quotes": '"' * 9_000}.get(name, name)
)
RESULT = {"tool_name": "bash", "success": True, "content": "", "metadata": {}}
BATCHES = st.lists(
    st.one_of(
        st.builds(lambda text: ("user_input", {"origin": "user", "text": text}), TEXTS),
        st.builds(lambda text: ("assistant_chunk", {"text": text}), TEXTS),
        st.builds(lambda text: ("assistant_output", {"text": text, "usage": None}), TEXTS),
        st.builds(lambda call: ("tool_call", {"id": call, "name": "bash", "arguments": {}}), st.sampled_from("cd")),
        st.builds(lambda call: ("tool_result", {"call_id": call, "result": RESULT}), st.sampled_from("cd")),
        st.builds(lambda word: ("turn_status", {"status": word}), st.sampled_from(["failed", "cancelled"])),
        st.just(("diagnostic", {"message": "m"})),
    ),
    min_size=1,
    max_size=4,
)
CHILDREN = st.sampled_from([0, 1])
FAULTS = st.sampled_from([None, None, None, Step.SESSION_WRITE, Step.SESSION_SYNC])
EDITS = st.sampled_from(["grow", "tear", "mend", "touch", "remove", "swap"])
ANY = st.integers(0, 99)


@dataclass
class Session:
    """What the file is thought to hold. ``None``: there is no file. ``torn``: it ends in half a record."""

    records: list[tuple[str, Any]] | None = None
    torn: bool = False
    touched: int = 0  # how often it was


@dataclass
class Attached:
    handle: Handle
    session_id: str
    revision: str | None
    touched: int


@dataclass
class Process:
    store: Store
    attached: Attached | None = None


class Stores(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        for name in ("fsync", "fdatasync"):
            self.patch.setattr(os, name, lambda _: None, raising=False)
        self.folder = tempfile.TemporaryDirectory()
        self.house = House(Path(self.folder.name))
        self.processes = [Process(self.house.store()) for _ in range(2)]
        self.sessions: dict[str, Session] = {}

    def teardown(self) -> None:
        self.patch.undo()
        for process in self.processes:
            if process.attached is not None:
                process.attached.handle.release()
        assert not [name for name in self.house.names() if name.endswith((".lock", ".tmp", ".recovery"))]
        self.folder.cleanup()

    # the children

    @initialize(number=CHILDREN)
    def start(self, number: int) -> None:
        self.create(number)

    @rule(number=CHILDREN)
    def create(self, number: int) -> None:
        process = self.processes[number]
        self.attach(process, process.store.create())

    @rule(number=CHILDREN, pick=ANY)
    def open(self, number: int, pick: int) -> None:
        process = self.processes[number]
        session_id = list(self.sessions)[pick % len(self.sessions)]  # in order of creation
        expected = self.why_not(process, session_id)
        if expected is not None:
            assert refusal(lambda: process.store.open(session_id)) is expected
        else:
            self.attach(process, process.store.open(session_id))

    def attach(self, process: Process, handle: Handle) -> None:
        if process.attached is not None:
            process.attached.handle.release()
        session = self.sessions.setdefault(handle.session_id, Session())
        process.attached = Attached(handle, handle.session_id, handle.revision, session.touched)

    def why_not(self, process: Process, session_id: str) -> Code | None:
        session = self.sessions[session_id]
        holders = [each for each in self.processes if each.attached and each.attached.session_id == session_id]
        lazy = holders == [process] and process.attached is not None and not process.attached.handle.durable
        if session.records is None and not lazy:
            return Code.SESSION_MISSING
        if holders not in ([], [process]):
            return Code.SESSION_BUSY
        return Code.SESSION_INVALID if session.torn else None

    @rule(number=CHILDREN)
    def release(self, number: int) -> None:
        process = self.processes[number]
        if process.attached is not None:
            process.attached.handle.release()
            process.attached = None

    @rule(number=CHILDREN, batch=BATCHES, fault=FAULTS)
    def append(self, number: int, batch: list[tuple[str, Any]], fault: Step | None) -> None:
        attached = self.processes[number].attached
        if attached is None:
            return
        session = self.sessions[attached.session_id]
        expected = Outcome.ROLLED_BACK if fault else None
        if session.torn or (session.records is None and attached.handle.durable):
            expected = Outcome.REFUSED
        outcome = None
        with failing([fault] if fault else [], OSError(28, "No space left on device")):
            try:
                receipt = attached.handle.append([Draft(kind, payload) for kind, payload in batch])
            except AppendFailed as failure:
                outcome = failure.outcome
            else:
                assert len(receipt.event_ids) == len(batch)
                session.records = [*(session.records or []), *batch]
                session.touched += 1
                attached.revision = None
        assert outcome is expected

    @rule(number=CHILDREN)
    def refresh(self, number: int) -> None:
        attached = self.processes[number].attached
        if attached is None:
            return
        session = self.sessions[attached.session_id]
        attached.revision = None
        if session.torn:
            assert refusal(attached.handle.refresh) is Code.SESSION_INVALID
        elif session.records is None and attached.handle.durable:
            assert refusal(attached.handle.refresh) is Code.SESSION_MISSING
        else:
            attached.revision = attached.handle.refresh()
            attached.touched = session.touched

    # the editor

    @precondition(lambda self: any(each.records is not None for each in self.sessions.values()))
    @rule(pick=ANY, how=EDITS)
    def edit(self, pick: int, how: str) -> None:
        stored = [name for name, each in self.sessions.items() if each.records is not None]
        session_id = stored[pick % len(stored)]
        session = self.sessions[session_id]
        path = self.house.file(session_id)
        data = path.read_bytes()
        assert session.records is not None
        if how == "grow" and not session.torn:
            record = ("diagnostic", {"message": "from outside"})
            path.write_bytes(data + self.house.line(session_id, *record) + b"\n")
            session.records.append(record)
        elif how == "tear" and not session.torn:
            path.write_bytes(data + b'{"event_id":"')
            session.torn = True
        elif how == "mend" and session.torn:
            path.write_bytes(data[: data.rindex(b"\n") + 1])
            session.torn = False
        elif how == "touch":
            path.touch()
        elif how == "remove":
            path.unlink()
            session.records, session.torn = None, False
        elif how == "swap":
            path.unlink()
            self.house.put_bytes(session_id, data)
        else:
            return
        session.touched += 1
        if session.records is not None:  # a time of its own, however coarse the kernel's clock
            os.utime(path, ns=(session.touched, session.touched))

    # what must always hold

    @invariant()
    def a_revision_is_good_until_the_file_is_touched(self) -> None:
        for attached in (process.attached for process in self.processes if process.attached is not None):
            session, handle, revision = self.sessions[attached.session_id], attached.handle, attached.revision
            if revision is not None and session.touched != attached.touched:
                assert self.is_refused(handle, revision)
                attached.revision = None
            assert handle.revision == attached.revision
            if attached.revision is not None:
                assert (shown(handle), is_complete(handle)) == reference_projection.project(session.records or [])

    def is_refused(self, handle: Handle, revision: str) -> bool:
        return refusal(lambda: handle.page(revision, None)) is Code.STALE_REVISION

    @invariant()
    def event_ids_are_unique(self) -> None:
        files = [path.read_bytes().split(b"\n") for path in self.house.sessions.glob("*.jsonl")]
        ours = [line for lines in files for line in lines if line.endswith(b"}") and b"from outside" not in line]
        ids = [json.loads(line)["event_id"] for line in ours]
        assert len(ids) == len(set(ids))


Stores.TestCase.settings = settings(
    max_examples=examples(60, 1_500), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestStores = Stores.TestCase
