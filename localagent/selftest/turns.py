"""Faults of turns: admission, cancellation, approvals, what is stored."""

from typing import Any

from .mutant import fault
from .tools import around, bounds, instead_of, put, put_item


@fault
def prompt_bound_below() -> None:
    """A prompt of 16,384 bytes is too long."""
    from localagent.protocol import params

    bounds(params, prompt_bytes=16_383)


@fault
def prompt_bound_above() -> None:
    """A prompt of 16,385 bytes is not too long."""
    from localagent.protocol import params

    bounds(params, prompt_bytes=16_385)


@fault
def prompt_bound_in_characters() -> None:
    """The bound of a prompt counts characters."""
    from localagent.protocol import params

    put(params, "utf8_bytes", len)


@fault
def blank_prompt_accepted() -> None:
    """A prompt of white space is accepted."""
    from localagent.protocol import ids

    put(ids, "is_blank", lambda text: not text)


@fault
def ids_of_runs_repeated() -> None:
    """Every run has the same id."""
    from localagent.core import effects

    @around(effects, "admit")
    def admit(original: Any, accepted: Any, facts: Any, job: int, fresh_id: Any) -> Any:
        return original(accepted, facts, job, lambda: "5f0f8e0a-9f3c-4f5e-8d2b-7a6c5b4a3f2e")


@fault
def revision_unchanged_after_a_run() -> None:
    """run.finished has the revision that the history had before."""
    from msgspec.structs import replace

    from localagent.core.connection import Connection
    from localagent.protocol.events import RunFinished

    known = [None]

    @around(Connection, "_send")
    def send(original: Any, self: Any, filled: Any, now: float) -> None:
        if isinstance(filled, RunFinished):
            filled = replace(filled, revision=known[0])
        else:
            known[0] = self.facts.revisions.get("history", known[0])
        original(self, filled, now)


@fault
def revision_of_no_history() -> None:
    """run.finished names a revision that no history has."""
    from msgspec.structs import replace

    from localagent.core.connection import Connection
    from localagent.protocol.events import RunFinished

    @around(Connection, "_send")
    def send(original: Any, self: Any, filled: Any, now: float) -> None:
        made_up = "0" * 32
        original(self, replace(filled, revision=made_up) if isinstance(filled, RunFinished) else filled, now)


@fault
def cancel_ignored() -> None:
    """A cancelled run goes on."""
    from localagent.shell.workers import Workers

    @around(Workers, "cancel")
    def cancel(original: Any, self: Any, command: Any) -> None:
        if self._turn is None or self._turn.job != command.job:
            original(self, command)


@fault
def cancel_reported_as_failure() -> None:
    """A cancelled run is reported as failed."""
    from localagent.core.fill import FILL
    from statemachines.rows import Emit

    put_item(FILL, Emit.RUN_CANCELLED, FILL[Emit.RUN_FAILED])


@fault
def failure_reported_as_success() -> None:
    """A failed run is reported as completed."""
    from localagent.core.fill import FILL
    from statemachines.rows import Emit

    put_item(FILL, Emit.RUN_FAILED, FILL[Emit.RUN_COMPLETED])


@fault
def failure_without_a_code() -> None:
    """A failed run has no error code."""
    from msgspec.structs import replace

    from localagent.core.connection import Connection
    from localagent.protocol.events import RunFinished

    @around(Connection, "_send")
    def send(original: Any, self: Any, filled: Any, now: float) -> None:
        original(self, replace(filled, error_code=None) if isinstance(filled, RunFinished) else filled, now)


@fault
def text_lost_at_cancel() -> None:
    """What was said before a cancellation is not stored."""

    from localagent.runner.scribe import Scribe

    @around(Scribe, "close")
    def close(original: Any, self: Any, draft: Any) -> None:
        if draft.payload.get("status") == "cancelled":
            self._text, self._chunks = [], []
            draft = type(draft)(draft.kind, {**draft.payload, "assistant_text": ""})
        original(self, draft)

    around(Scribe, "end_segment")(lambda original, self: None if self._text == [] else original(self))


@fault
def acknowledgement_before_the_append() -> None:
    """input.persisted comes while the input waits for the next append."""
    from localagent.runner import turn

    class Late:
        """Holds the input back, and stores it with whatever is stored next."""

        def __init__(self, handle: Any) -> None:
            self._handle, self._held = handle, list[Any]()
            self.message_id, self.revision = "m1", "not-yet-stored"

        def append(self, drafts: Any) -> Any:
            if drafts[0].kind == "user_input":
                self._held = list(drafts)
                return self
            held, self._held = self._held, []
            return self._handle.append([*held, *drafts])

        def refresh(self) -> Any:
            return self._handle.refresh()

    @around(turn, "run_turn")
    def run_turn(original: Any, prompt: str, handle: Any, sink: Any, runner: Any, *rest: Any) -> Any:
        return original(prompt, Late(handle), sink, runner, *rest[:2])


@fault
def reply_not_stored() -> None:
    """The reply of a completed run is not stored."""
    from localagent.runner.scribe import Scribe

    @around(Scribe, "close")
    def close(original: Any, self: Any, draft: Any) -> None:
        if draft.kind != "assistant_output":
            original(self, draft)

    put(Scribe, "say", lambda self, text: None)


# approvals


def _granted(when: str) -> None:
    """Let an approval that ends by this input be taken for granted."""
    from localagent.core import fill
    from localagent.core.commands import ResolveApproval
    from statemachines.rows import Emit

    deny = fill.FILL[Emit.DENY]

    def told(moment: Any, move: Any) -> Any:
        said = deny(moment, move)
        if isinstance(said, ResolveApproval) and move.row.input.name == when:
            return ResolveApproval(said.job, said.approval_id, True)
        return said

    put_item(fill.FILL, Emit.DENY, told)


@fault
def expired_approval_granted() -> None:
    """An approval that nobody answered is granted."""
    _granted("TIMER_EXPIRED")


@fault
def denied_approval_granted() -> None:
    """An approval that was denied is granted."""
    _granted("RECV_DENY")


@fault
def approval_by_default() -> None:
    """A tool runs while its approval is pending."""
    from localagent.shell.turn import Turn

    @around(Turn, "approval")
    def approval(original: Any, self: Any, summary: str) -> Any:
        original(self, summary)
        return lambda: True


@fault
def approval_never_expires() -> None:
    """An approval that nobody answers stays open."""
    from localagent.core import effects

    bounds(effects, approval_ms=3_600_000)


@fault
def expired_approval_answered() -> None:
    """An answer to an approval that is over is recorded."""
    from localagent.protocol.results import ApprovalRecorded

    def answer(self: Any, request: Any) -> Any:
        expired = request.params.get("approval_id") in self.facts.run.approvals
        return ApprovalRecorded() if expired else None

    instead_of("stale_approval", answer)


@fault
def unknown_approval_answered() -> None:
    """An answer to an approval that never was is recorded."""
    from localagent.protocol.results import ApprovalRecorded

    def answer(self: Any, request: Any) -> Any:
        known = request.params.get("approval_id") in self.facts.run.approvals
        return None if known else ApprovalRecorded()

    instead_of("stale_approval", answer)


@fault
def approval_of_another_run_taken() -> None:
    """An answer is taken by its approval id alone."""
    from localagent.core import routes
    from statemachines import admission

    put_item(
        routes.PREDICATES,
        admission.SAME_APPROVAL,
        lambda asked, facts: asked.params.approval_id in facts.run.approvals,
    )


@fault
def approval_time_wrong() -> None:
    """An approval is said to last two minutes."""
    from msgspec.structs import replace

    from localagent.core.connection import Connection
    from localagent.protocol.events import ApprovalRequested

    @around(Connection, "_send")
    def send(original: Any, self: Any, filled: Any, now: float) -> None:
        longer = isinstance(filled, ApprovalRequested)
        original(self, replace(filled, expires_in_ms=120_000) if longer else filled, now)


@fault
def approvals_share_an_id() -> None:
    """Two approvals that are pending together have one id."""
    from localagent.shell.turn import Turn

    @around(Turn, "approval")
    def approval(original: Any, self: Any, summary: str) -> Any:
        self._fresh_id = lambda: "11111111-2222-4333-8444-555555555555"
        return original(self, summary)
