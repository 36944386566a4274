"""``selection.set`` when it cannot write, meets a damaged history, or loses its process."""

from pathlib import Path

import pytest

from tests.catalog.homes import Home

from .selecting import FULL, KILL, code, gated, picker, set_to


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


# cannot write


@pytest.mark.parametrize(
    ("step", "stored"),
    [
        ("SESSION_CREATE", False),
        ("SESSION_WRITE", False),
        ("SESSION_SYNC", False),
        ("SESSION_SYNC_DIRECTORY", False),
        ("SESSION_WRITE", True),
        ("SESSION_SYNC", True),
    ],
)
def test_a_failed_append_leaves_the_selection(home: Home, step: str, stored: bool) -> None:
    """SEL-91 to SEL-93, REC-32: persistence_failed, and everything is as it was, the history revision too."""
    program, armed = gated(home.path.parent, step, FULL)
    with picker(home, program) as child:
        child.begin()
        if stored:
            child.history = child.select("bench/embed")["result"]["history_revision"]
        with child.unchanged():
            params = child.asking("bench/chat", set_to("high"))
            armed.touch()
            assert code(child.call("selection.set", **params)) == "persistence_failed"
            assert not armed.exists()
        assert child.call("selection.set", **params)["result"]["selection"]["requested_effort"] == "high"


def test_when_nobody_knows_what_was_written_only_opening_anew_tells(home: Home) -> None:
    """BASE-OP-149, REC-32: write and roll-back fail; the old revision is stale, nothing more is appended."""
    program, armed = gated(home.path.parent, "SESSION_SYNC", f"disk.watch = lost; {FULL}")
    program = program.replace("disk.watch = watch\n", f"{LOST}disk.watch = watch\n")
    with picker(home, program) as child:
        child.begin()
        child.history = child.select("bench/embed")["result"]["history_revision"]
        before, params = child.status(), child.asking("bench/chat", set_to("high"))
        armed.touch()
        assert code(child.call("selection.set", **params)) == "persistence_failed"
        assert child.status() == before
        assert child.entries(child.history) == "stale_revision"
        assert code(child.call("selection.set", **params)) == "persistence_failed"
        found = home.saved(child.session)[-1]["model"]
        child.open(child.session)
        assert child.selection()["model"] == found
        assert code(child.select("bench/chat")) == "persistence_failed"  # not in this child any more
    with picker(home) as later:
        later.initialize()
        later.open(child.session)
        assert later.selection()["model"] == found


def test_a_history_that_cannot_be_shown_any_more_is_said(home: Home) -> None:
    """SEL-89, SEL-90: the selection is durable nevertheless."""
    program, armed = gated(home.path.parent, "SESSION_STAMP", LOOSEN.format(str(home.path)), done=True)
    with picker(home, program) as child:
        child.begin()
        child.history = child.select("bench/embed")["result"]["history_revision"]
        params = child.asking("bench/chat")
        armed.touch()
        result = child.call("selection.set", **params)["result"]
        assert (result["durable"], result["history_revision"]) == (True, None)
        assert result["notices"] == ["history_unavailable"]
        assert child.selection() == result["selection"]
        assert child.entries(child.history) == "stale_revision"
        assert [each["model"] for each in home.saved(child.session)] == ["embed", "chat"]


LOOSEN = "import glob; [os.chmod(each, 0o644) for each in glob.glob({!r} + '/sessions/*.jsonl')]"


LOST = """
def lost(step, done):
    if step.name == "SESSION_TRUNCATE":
        raise OSError(5, "io")

"""


@pytest.mark.parametrize(
    ("damage", "expected"),
    [("gone", "session_missing"), ("torn", "session_invalid"), ("loose", "session_invalid"), ("moved", "cwd_mismatch")],
)
def test_a_damaged_history_answers_as_opening_would(home: Home, damage: str, expected: str) -> None:
    """SEL-62, BASE-OP-148."""
    with picker(home) as child:
        child.begin()
        child.select("bench/embed")
        path = home.session(child.session)
        if damage == "gone":
            path.unlink()
        elif damage == "torn":
            path.write_bytes(path.read_bytes()[:-9])
        elif damage == "loose":
            path.chmod(0o644)
        else:
            path.write_bytes(path.read_bytes().replace(str(home.path.parent).encode(), b"/nowhere"))
        before = child.status()
        kept = path.read_bytes() if path.exists() else None
        assert code(child.select("bench/chat")) == expected
        assert child.status() == before
        assert (path.read_bytes() if path.exists() else None) == kept


def test_records_of_somebody_else_do_not_hinder(home: Home) -> None:
    """BASE-OP-123, BASE-OP-148: what opening would accept is accepted; the history has what was added."""
    with picker(home) as child:
        child.begin()
        child.select("bench/embed")
        path = home.session(child.session)
        record = path.read_text()
        extra = record.replace("session_preferences", "user_input").replace('"model":"embed"', '"text":"hello"')
        path.write_text(record + extra)
        result = child.select("bench/chat")["result"]
        entries = child.entries(result["history_revision"])
        assert [entry["text"] for entry in entries if isinstance(entry, dict) and entry["kind"] == "user"] == ["hello"]


# the process dies


@pytest.mark.parametrize(
    ("step", "done"),
    [
        ("SESSION_CREATE", True),
        ("SESSION_WRITE", False),
        ("SESSION_WRITE", True),
        ("SESSION_SYNC", True),
        ("SESSION_SYNC_DIRECTORY", True),
    ],
)
def test_killed_around_the_append_the_old_selection_or_the_new_one_is_found(home: Home, step: str, done: bool) -> None:
    """SEL-91, SEL-98: nothing was acknowledged, so either may be there, whole."""
    program, armed = gated(home.path.parent, step, KILL, done)
    with picker(home, program) as child:
        child.begin()
        params = child.asking("bench/chat", set_to("high"))
        armed.touch()
        child.ask("selection.set", **params)
        assert child.rest() == b""
        assert child.wait() == -9
    _is_old_or_new(home, child.session)


def test_killed_right_after_the_acknowledgement_the_new_selection_is_found(home: Home) -> None:
    """SEL-91, SESS-27."""
    with picker(home) as child:
        child.begin()
        child.select("bench/chat", set_to("high"))
        child.process.kill()
        child.wait()
    with picker(home) as later:
        later.initialize()
        assert later.open(child.session)["durable"] is True
        assert later.selection()["requested_effort"] == "high"


def _is_old_or_new(home: Home, session: str) -> None:
    with picker(home) as later:
        later.initialize()
        answer = later.call("session.open", session_id=session)
        saved = home.saved(session)
        if "error" in answer:
            assert code(answer) == "session_missing"
            assert not home.session(session).exists()
        else:
            assert later.selection()["requested_effort"] == ("high" if saved else "default")
