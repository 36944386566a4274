"""One store, two real children and an editor of files, in any order, against a model of what each may see.

The model knows who holds what, which files were touched since a revision was given out, and what the editor did to
each. What a history shows is read from the file by the reference projection, which shares no code with the store.
"""

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.kit.child import PATIENCE, Child
from tests.kit.profiles import examples
from tests.sessions import kit, reference_projection

CHILDREN = st.sampled_from([0, 1])
PROMPTS = st.sampled_from(["hello", "BROKEN TOOL", "THINK", "FAIL"])
EDITS = st.sampled_from(["grow", "tear", "mend", "touch", "remove", "open to others", "close to others", "move away"])
ANY = st.integers(0, 99)


@dataclass
class Session:
    """What is known of a session file, or of one that is to come. ``touched`` counts what was done to it."""

    exists: bool = False
    torn: bool = False
    unsafe: bool = False
    foreign: bool = False
    touched: int = 0
    abandoned: bool = False
    """A child was killed that held it: lock files may stay until somebody opens it."""


@dataclass
class Place:
    """A child's attachment. ``revision`` is None when no page can be had without opening again."""

    child: Child
    session_id: str | None = None
    revision: str | None = None
    touched: int = 0


class Stores(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="localagent-model-")
        self.house = kit.House(Path(self.folder.name))
        self.elsewhere = self.house.base / "elsewhere"
        self.elsewhere.mkdir()
        self.places = [Place(self.start()), Place(self.start())]
        self.sessions: dict[str, Session] = {}

    def start(self) -> Child:
        child = Child(Path(self.house.root.path), cwd=Path(self.house.cwd))
        child.__enter__()
        child.initialize()
        return child

    def teardown(self) -> None:
        for place in self.places:
            place.child.close_input()
            assert place.child.wait() == 0
            place.child.__exit__(None, None, None)
        left = {name for name in self.house.names() if name.endswith((".lock", ".tmp", ".recovery"))}
        abandoned = [name for name, session in self.sessions.items() if session.abandoned]
        assert not [name for name in left if not any(each in name for each in abandoned)]
        self.folder.cleanup()

    # the children

    @initialize(number=CHILDREN)
    def begin(self, number: int) -> None:
        self.create(number)
        self.turn(number, "hello")

    @rule(number=CHILDREN)
    def create(self, number: int) -> None:
        place = self.places[number]
        answer = place.child.call("session.create")["result"]
        self.sessions[answer["session_id"]] = Session()
        self.attached(place, answer)

    @rule(number=CHILDREN, pick=ANY)
    def open(self, number: int, pick: int) -> None:
        place = self.places[number]
        session_id = list(self.sessions)[pick % len(self.sessions)]
        answer = place.child.call("session.open", session_id=session_id)
        expected = self.why_not(place, session_id)
        if expected is not None:
            assert answer["error"] == {"code": expected}
        else:
            assert answer["result"]["durable"] == self.sessions[session_id].exists
            self.attached(place, answer["result"])
            self.sessions[session_id].abandoned = False

    def attached(self, place: Place, answer: dict[str, Any]) -> None:
        before, place.session_id, place.revision = place.session_id, answer["session_id"], answer["revision"]
        place.touched = self.sessions[answer["session_id"]].touched
        if before not in (None, place.session_id):  # a child lets go of its last session after it has answered
            self.await_that(
                lambda: not [name for name in self.house.names() if f"{before}." in name and ".lock" in name]
            )

    def await_that(self, holds: Callable[[], bool]) -> None:
        for place in self.places * 200:
            if holds():
                return
            place.child.call("status")
        raise AssertionError(f"still not after {PATIENCE} s")

    def why_not(self, place: Place, session_id: str) -> str | None:
        session = self.sessions[session_id]
        holders = [each for each in self.places if each.session_id == session_id]
        if not session.exists and not (holders == [place] and not self.was_stored(place)):
            return "session_missing"
        if holders not in ([], [place]):
            return "session_busy"
        if session.torn or session.unsafe:
            return "session_invalid"
        return "cwd_mismatch" if session.foreign else None

    def was_stored(self, place: Place) -> bool:
        """Whether the session that a child holds had a file at any time."""
        assert place.session_id is not None
        return self.sessions[place.session_id].touched > 0

    @rule(number=CHILDREN, prompt=PROMPTS)
    def turn(self, number: int, prompt: str) -> None:
        place = self.places[number]
        if place.session_id is None:
            return
        session = self.sessions[place.session_id]
        frames = place.child.turn(place.session_id, prompt)
        stored = [frame for frame in frames if frame.get("event") == "input.persisted"]
        last = frames[-1]["data"]
        refused = session.torn or session.unsafe or (not session.exists and self.was_stored(place))
        if refused:
            assert not stored
            assert (last["outcome"], last["error_code"]) == ("failed", "persistence_failed")
        else:
            assert len(stored) == 1
            assert last["persistence"] == "durable"
            session.exists = True
            session.touched += 1
        place.revision, place.touched = last["revision"], session.touched
        assert (place.revision is None) == (refused or session.foreign)

    @rule(number=CHILDREN)
    def kill(self, number: int) -> None:
        place = self.places[number]
        place.child.process.kill()
        place.child.wait()
        place.child.__exit__(None, None, None)
        if place.session_id is not None:
            self.sessions[place.session_id].abandoned = True
        self.places[number] = Place(self.start())

    @rule(number=CHILDREN, limit=st.sampled_from([1, 2, 100]))
    def list(self, number: int, limit: int) -> None:
        """A whole listing, page by page; nobody touches the store meanwhile."""
        place = self.places[number]
        found: dict[str, Any] = {}
        page = place.child.call("session.list", limit=limit)["result"]
        first = page
        while True:
            found |= {each["session_id"]: each for each in page["sessions"]}
            if page["next_cursor"] is None:
                break
            place_of_page = {"revision": page["revision"], "cursor": page["next_cursor"], "limit": limit}
            page = place.child.call("session.list", **place_of_page)["result"]
        assert list(found) == sorted(self.listed())
        for session_id, entry in found.items():
            other = [each for each in self.places if each is not place and each.session_id == session_id]
            allowed = {"busy"} if other else {"available"}
            if self.sessions[session_id].abandoned and place.session_id != session_id:
                allowed = {"available", "busy"}  # LIST-43
            assert entry["eligibility"] in allowed
        assert ("sessions_omitted_invalid" in first["notices"]) == any(
            each.exists and (each.unsafe or (each.torn and not each.foreign))  # what is elsewhere is read no further
            for each in self.sessions.values()
        )

    def listed(self) -> set[str]:
        kept = {name for name, each in self.sessions.items() if each.exists and not (each.torn or each.unsafe)}
        return {name for name in kept if not self.sessions[name].foreign}

    # the editor

    @rule(pick=ANY, how=EDITS)
    def edit(self, pick: int, how: str) -> None:
        stored = [name for name, each in self.sessions.items() if each.exists]
        if not stored:
            return
        session_id = stored[pick % len(stored)]
        session, path = self.sessions[session_id], self.house.file(session_id)
        data = path.read_bytes()
        if how == "grow" and not session.torn:
            path.write_bytes(data + self.house.line(session_id, "diagnostic", {"message": "from outside"}) + b"\n")
        elif how == "move away" and not session.torn:
            fields = {"cwd": str(self.elsewhere)}
            path.write_bytes(data + self.house.line(session_id, "diagnostic", {}, **fields) + b"\n")
            session.foreign = True
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
            session.exists = session.torn = session.unsafe = session.foreign = False
        elif how in ("open to others", "close to others"):
            session.unsafe = how == "open to others"
            path.chmod(0o640 if session.unsafe else 0o600)
        else:
            return
        session.touched += 1
        if session.exists:  # a time of its own, however coarse the kernel's clock
            os.utime(path, ns=(session.touched, session.touched))

    @rule(text=st.sampled_from(["", "by another program"]))
    def arrive(self, text: str) -> None:
        """Another program of the same format leaves a session of its own."""
        session_id = f"other-{len(self.sessions)}"
        self.house.put(session_id, self.house.line(session_id, "user_input", {"text": text}))
        self.sessions[session_id] = Session(exists=True, touched=1)

    # what must always hold

    @invariant()
    def a_revision_is_good_until_the_file_is_touched(self) -> None:
        for place in self.places:
            if place.session_id is None or place.revision is None:
                continue
            session = self.sessions[place.session_id]
            if session.touched != place.touched:
                answer = self.page(place, None)
                assert answer["error"] == {"code": "stale_revision"}
                assert self.page(place, None)["error"] == {"code": "stale_revision"}
                place.revision = None
            else:
                self.check_history(place)

    def page(self, place: Place, cursor: str | None) -> dict[str, Any]:
        return place.child.call("history.page", session_id=place.session_id, revision=place.revision, cursor=cursor)

    def check_history(self, place: Place) -> None:
        shown: list[tuple[str, str, bool]] = []
        cursor, complete = None, False
        while True:
            page = self.page(place, cursor)["result"]
            shown += [(each["kind"], each["text"], each["partial"]) for each in page["entries"]]
            cursor, complete = page["next_cursor"], page["complete"]
            if cursor is None:
                break
        assert place.session_id is not None
        path = self.house.file(place.session_id)
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        records = [json.loads(line) for line in lines]
        expected = reference_projection.project([(each["event_type"], each["payload"]) for each in records])
        assert (shown, complete) == expected

    @invariant()
    def each_child_stays_attached(self) -> None:
        for place in self.places:
            status = place.child.call("status")["result"]
            assert (status["session_id"], status["state"]) == (place.session_id, "idle")


Stores.TestCase.settings = settings(
    max_examples=examples(10, 300), stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
TestStores = Stores.TestCase
