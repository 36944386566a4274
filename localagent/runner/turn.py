"""One turn, from a prompt to its last word: what the turn worker's thread does.

The input is stored first; nothing is shown, and no provider asked, before that (EVT-11, EVT-12). Then the runner has
the stage, until it returns, fails, is stopped, or nobody can be told anything any more. Whatever it was, the turn is
then brought to its end: open calls get a result, every segment its reconciliation, the store its last record. No
exception leaves :func:`run_turn`.
"""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from localagent.protocol.codes import Code
from localagent.sessions.records import Draft

from .provider import Runner, TurnFailure
from .recorder import Recorder
from .scribe import Handle, Later, Receipt
from .sink import Cancelled, Sink, Undeliverable
from .stage import TurnStage


class Ended(Struct, frozen=True):
    """How a turn ended. ``code`` says why it did not complete, if there is a code for it (BASE-OP-155).

    ``revision`` is the fresh one of the history, None when there is none. Without ``input_stored`` no event has left
    the turn: if it failed, the required input could not be appended (TURN-26).
    """

    word: Literal["completed", "failed", "stopped"]
    code: Code | None
    revision: str | None
    input_stored: bool = True


class _Ending(Struct, frozen=True):
    """An ending on its way; ``why`` is for the user."""

    word: Literal["completed", "failed", "stopped"]
    code: Code | None = None
    why: str = ""


def run_turn(
    prompt: str,
    handle: Handle,
    sink: Sink,
    runner: Runner,
    new_id: Callable[[], str],
    clock: Callable[[], float],
    later: Later | None = None,
) -> Ended:
    """Run a turn and say how it ended.

    ``new_id`` makes UUIDs, ``clock`` tells milliseconds. ``later`` appends chunk records without making the stream wait
    (see :data:`.scribe.Later`); without it they are appended in place.
    """
    if sink.cancelled():
        return Ended("stopped", None, _fresh_revision(handle), input_stored=False)
    try:
        receipt = handle.append([Draft("user_input", {"origin": "user", "text": prompt})])
    except Exception:  # whatever it is, nothing may be acknowledged
        return Ended("failed", Code.PERSISTENCE_FAILED, _fresh_revision(handle), input_stored=False)
    recorder = Recorder(handle, sink, new_id, clock, later)
    try:
        ending = _finish(recorder, _answer(prompt, receipt, sink, runner, recorder))
    except Exception as fault:  # of ours, or of the sink
        ending = _fault("backend", fault)
    return Ended(ending.word, ending.code, _fresh_revision(handle))


def _answer(prompt: str, receipt: Receipt, sink: Sink, runner: Runner, recorder: Recorder) -> _Ending:
    """Acknowledge the input, from its receipt alone, and let the runner answer."""
    stage = TurnStage(recorder, sink)
    try:
        sink.input_appended(receipt.message_id, receipt.revision)
        stage.check()
        runner.run(prompt, stage)
    except Cancelled:
        return _Ending("stopped")
    except Undeliverable:
        recorder.lost = True
        return _Ending("stopped")
    except TurnFailure as failure:
        return _Ending("failed", failure.code, failure.summary)
    except BaseException as fault:  # even SystemExit: what a library raises in here is no reason to lose the turn
        return _fault("runner", fault)
    return _Ending("completed")


def _finish(recorder: Recorder, ending: _Ending) -> _Ending:
    """Bring the turn to its end. Showing comes before storing, so that the last record says what became of the run."""
    text = recorder.end_text()
    recorder.interrupt()
    if recorder.failure is not None:
        ending = _Ending("failed", recorder.failure.code, recorder.failure.summary)
    if ending.code is not None and ending.why:
        recorder.diagnose(ending.code, ending.why)
    recorder.reconcile_all(partial=ending.word != "completed")
    if recorder.lost:
        ending = _Ending("stopped", Code.OUTPUT_UNAVAILABLE)
    if ending.word == "completed":
        recorder.complete(text)
    else:
        recorder.give_up("failed" if ending.word == "failed" else "cancelled", text, ending.why)
    return ending


def _fault(whose: str, fault: BaseException) -> _Ending:
    """An exception that nobody foresaw. Its text may hold anything, so only its kind is told (CRED-14)."""
    return _Ending("failed", Code.EXECUTION_FAILED, f"The {whose} failed: {type(fault).__name__}.")


def _fresh_revision(handle: Handle) -> str | None:
    try:
        return handle.refresh()
    except Exception:  # no projection, no revision (EVT-53)
        return None
