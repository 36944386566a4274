"""What must hold on every transition of a run and of the machines that live as long as a run.

The properties restate the contract, not the tables: none of them looks a row up.
"""

from collections.abc import Iterator
from typing import Final

from statemachines.activity import CARD_FINISHED
from statemachines.activity import ActivityState as Activity
from statemachines.activity import CardState as Card
from statemachines.approval import ApprovalState as Approval
from statemachines.attachment import HELD
from statemachines.channel import ChannelState as Channel
from statemachines.client_call import ClientCallState as Call
from statemachines.connection import LIVE
from statemachines.explore import Always, Model, Step, count
from statemachines.message import MessageState as Message
from statemachines.output import OutputState
from statemachines.persistence import PersistenceState as Persistence
from statemachines.rows import KINDS, TERMINALS, Emit, Kind
from statemachines.run import ACTIVE, CANCELLABLE, OVER, RunState
from statemachines.run import CANCELLING as RUN_CANCELLING

_EVENTS: Final = frozenset(emit for emit in Emit if KINDS[emit] is Kind.EVENT)
_REPORTS: Final = frozenset({Emit.MESSAGE_DELTA, Emit.MESSAGE_RECONCILE, Emit.ACTIVITY, Emit.TOOL_CARD})
_ASKS: Final = frozenset({Emit.APPROVAL_REQUESTED, Emit.CLIENT_TOOL_CALL})


def _fresh(s: Step) -> bool:
    return Emit.TURN_START_RESULT in s.emits


def run(m: Model) -> Iterator[Always]:
    """The run, its terminal, its persistence."""
    at, stored, attached = m.at("run"), m.at("persistence"), m.at("attachment")
    over, active = m.code("run", *OVER), m.code("run", *ACTIVE)
    finished, executing = m.code("run", RunState.FINISHED), m.code("run", RunState.EXECUTING)
    cancellable, cancelling = m.code("run", *CANCELLABLE), m.code("run", *RUN_CANCELLING)
    unstored = m.code("persistence", Persistence.UNSTORED)
    degraded = m.code("persistence", Persistence.DEGRADED)
    held, output = m.code("attachment", *HELD), m.at("output")
    drained = m.code("output", OutputState.DRAINED)
    decided = m.code("run", RunState.FINISHING_COMPLETED, RunState.FINISHING_FAILED, RunState.FINISHING_CANCELLED)
    given_up = m.code("run", RunState.CANCELLING_UNDELIVERABLE, RunState.FINISHING_UNDELIVERABLE)

    def started(s: Step) -> bool:
        return Emit.TURN_START_RESULT in s.emits

    yield (
        "exactly one terminal, when the run ends",
        lambda s: count(s, frozenset(TERMINALS)) == int(s.after[at] in finished and (s.before[at] in active)),
    )
    yield (
        "a run's events come while it is active, the terminal last",
        lambda s: (
            not count(s, _EVENTS)
            or (s.before[at] in active and not any(e in _EVENTS for e in _after_terminal(s.emits)))
        ),
    )
    yield (
        "a run begins with its answer, attached, and with nothing of an earlier one",
        lambda s: (
            started(s) == (Emit.START_TURN in s.emits)
            and started(s) == (s.before[at] in over and s.after[at] in active)
            and (not started(s) or (s.before[attached] in held and s.after[stored] in unstored))
        ),
    )
    yield (
        "input.persisted is said once, when the input is stored",
        lambda s: (
            count(s, frozenset({Emit.INPUT_PERSISTED}))
            == int(s.before[stored] in unstored and s.after[stored] not in unstored and not started(s))
        ),
    )
    yield (
        "nothing of the provider's before the input is stored",
        lambda s: s.before[stored] not in unstored or not count(s, _REPORTS | _ASKS),
    )
    yield (
        "persistence never claims more than what was stored",
        lambda s: (
            started(s)
            or not (
                (s.before[stored] in degraded and s.after[stored] not in degraded)
                or (s.before[stored] not in unstored and s.after[stored] in unstored)
            )
        ),
    )
    yield (
        "completed and not_started never meet",
        lambda s: Emit.RUN_COMPLETED not in s.emits or s.after[stored] not in unstored,
    )
    yield "executing means stored", lambda s: s.after[at] not in executing or s.after[stored] not in unstored
    yield (
        "a cancelled run's worker is told once",
        lambda s: (
            count(s, frozenset({Emit.CANCEL_TURN})) == int(s.before[at] in cancellable and (s.after[at] in cancelling))
        ),
    )
    yield (
        "the runner's last word stands",
        lambda s: (
            s.before[at] not in decided
            or s.after[at] in finished | given_up
            or s.after[at] == s.before[at]
            or started(s)
        ),
    )
    yield (
        "an undeliverable run ends cancelled and reconciles nothing more",
        lambda s: (
            s.before[at] not in given_up
            or not (Emit.RUN_COMPLETED in s.emits or Emit.RUN_FAILED in s.emits or count(s, _REPORTS))
        ),
    )
    yield (
        "a runner that stops unasked has failed",
        lambda s: (
            s.before[at] not in cancellable
            or s.choice.label != "run WORKER_STOPPED"
            or s.after[at] in m.code("run", RunState.FINISHING_FAILED)
        ),
    )
    yield "a run never goes back", lambda s: started(s) or _rank(m, s.before[at]) <= _rank(m, s.after[at])
    yield (
        "turn.cancel answers an active run",
        lambda s: Emit.TURN_CANCEL_RESULT not in s.emits or s.before[at] in active,
    )
    yield "drained leaves no run behind", lambda s: s.after[output] not in drained or s.after[at] in over
    conn, live = m.at("connection"), m.code("connection", *LIVE)
    yield (
        "a stopped connection leaves no run uncancelled",
        lambda s: s.after[conn] in live or s.after[at] not in cancellable,
    )
    yield (
        "who asks when asking is over is denied",
        lambda s: (
            not (s.choice.label.startswith("run WORKER_ASK") and s.before[at] in active - executing)
            or Emit.DENY in s.emits
        ),
    )


def _rank(m: Model, code: int) -> int:
    state = m.states[m.at("run")][code]
    order = (OVER[:1], CANCELLABLE[:1], CANCELLABLE[1:], RUN_CANCELLING, ACTIVE, OVER)
    return next(i for i, group in enumerate(order) if state in group)


def _after_terminal(emits: tuple[Emit, ...]) -> tuple[Emit, ...]:
    for i, emit in enumerate(emits):
        if emit in TERMINALS:
            return emits[i + 1 :]
    return ()


def approvals(m: Model) -> Iterator[Always]:
    """Approvals: granted at most once, never after expiry, cancellation or the end."""
    run, executing = m.at("run"), m.code("run", RunState.EXECUTING)
    requested, allowed = m.code("approval", Approval.REQUESTED), m.code("approval", Approval.ALLOWED)
    none = m.code("approval", Approval.NONE)
    for at in m.of("approval"):
        label = m.instances[at]

        def asked(s: Step, at: int = at) -> bool:
            return s.before[at] in none and s.after[at] in requested

        def settles(s: Step, at: int = at) -> bool:
            return s.before[at] in requested and s.after[at] not in requested

        yield (
            f"{label}: allowed only from requested, while executing",
            lambda s, at=at: (  # type: ignore[misc]
                s.after[at] not in allowed
                or s.before[at] in allowed
                or (s.before[at] in requested and s.before[run] in executing and Emit.ALLOW in s.emits)
            ),
        )
        yield (
            f"{label}: pending only while executing",
            lambda s, at=at: (  # type: ignore[misc]
                s.after[at] not in requested or s.after[run] in executing
            ),
        )
        yield (
            f"{label}: once settled, settled",
            lambda s, at=at: (  # type: ignore[misc]
                s.before[at] in none | requested or s.after[at] == s.before[at] or Emit.TURN_START_RESULT in s.emits
            ),
        )
        yield (
            f"{label}: asking is announced",
            lambda s, asked=asked: (  # type: ignore[misc]
                not asked(s) or Emit.APPROVAL_REQUESTED in s.emits
            ),
        )
        yield (
            f"{label}: settling tells the asker",
            lambda s, settles=settles, at=at: (  # type: ignore[misc]
                not settles(s) or (Emit.ALLOW if s.after[at] in allowed else Emit.DENY) in s.emits
            ),
        )
    where = m.of("approval")
    yield (
        "each permission is granted once",
        lambda s: s.emits.count(Emit.ALLOW) == sum(s.before[i] in requested and s.after[i] in allowed for i in where),
    )
    yield (
        "each answer is recorded once",
        lambda s: s.emits.count(Emit.APPROVAL_ANSWER_RESULT) == int(s.choice.label.startswith("approval.answer")),
    )
    yield (
        "each request is announced once",
        lambda s: (
            s.emits.count(Emit.APPROVAL_REQUESTED)
            == sum(s.before[i] in none and s.after[i] in requested for i in where)
        ),
    )


def channel(m: Model) -> Iterator[Always]:
    """The worker channel: giving up is for the rest of the run."""
    at, given_up = m.at("channel"), m.code("channel", Channel.GIVEN_UP)
    yield (
        "after giving up nothing is reconciled and the run is cancelled",
        lambda s: (
            s.before[at] not in given_up
            or _fresh(s)
            or not (count(s, _REPORTS) or Emit.RUN_COMPLETED in s.emits or Emit.RUN_FAILED in s.emits)
        ),
    )
    yield (
        "giving up is for the rest of the run",
        lambda s: s.before[at] not in given_up or s.after[at] in given_up or _fresh(s),
    )
    run, undeliverable = m.at("run"), m.code("run", RunState.CANCELLING_UNDELIVERABLE)
    yield (
        "a run is undeliverable only after giving up",
        lambda s: s.after[run] not in undeliverable or s.after[at] in given_up,
    )


def calls(m: Model) -> Iterator[Always]:
    """Client tool calls: published once, ended once."""
    run, executing = m.at("run"), m.code("run", RunState.EXECUTING)
    at = m.of("client_call")[0]
    none, published = m.code("client_call", Call.NONE), m.code("client_call", Call.PUBLISHED)
    accepted = m.code("client_call", Call.ACCEPTED)
    yield "a call is pending only while executing", lambda s: s.after[at] not in published or s.after[run] in executing
    yield (
        "a call ends once, by result or by notice",
        lambda s: (
            count(s, frozenset({Emit.CLIENT_TOOL_RESULT_RESULT, Emit.CLIENT_TOOL_CANCEL}))
            == int(s.before[at] in published and s.after[at] not in published)
            == count(s, frozenset({Emit.RETURN_CALL, Emit.FAIL_CALL}))
        ),
    )
    yield (
        "a call is accepted by its result",
        lambda s: (Emit.RETURN_CALL in s.emits) == (s.before[at] in published and s.after[at] in accepted),
    )
    yield (
        "a call is published once",
        lambda s: (
            (Emit.CLIENT_TOOL_CALL in s.emits) == (s.after[at] in published and s.before[at] in none)
            and (s.before[at] == s.after[at] or s.before[at] in published or s.after[at] in published or _fresh(s))
        ),
    )


def segments(m: Model) -> Iterator[Always]:
    """Segments: reconciled as a whole, abandoned only with their run."""
    message = m.of("message")[0]
    reconciling, reconciled = m.code("message", Message.RECONCILING), m.code("message", Message.RECONCILED)
    abandoned, streaming = m.code("message", Message.ABANDONED), m.code("message", Message.STREAMING)
    yield (
        "a part leads to reconciling, the last one to reconciled, a delta to streaming",
        lambda s: (
            (Emit.MESSAGE_RECONCILE not in s.emits or s.after[message] in reconciling | reconciled)
            and (Emit.MESSAGE_DELTA not in s.emits or s.after[message] in streaming)
            and (
                s.before[message] == s.after[message]
                or _fresh(s)
                or bool(count(s, _REPORTS))
                or s.after[message] in abandoned
            )
        ),
    )
    yield (
        "an abandoned segment is silent",
        lambda s: s.before[message] not in abandoned or _fresh(s) or s.after[message] in abandoned,
    )
    yield (
        "a reconciled segment is not abandoned",
        lambda s: s.before[message] not in reconciled or s.after[message] not in abandoned,
    )
    yield (
        "a segment is abandoned only with its run",
        lambda s: (
            s.before[message] in abandoned or s.after[message] not in abandoned or bool(count(s, frozenset(TERMINALS)))
        ),
    )
    yield (
        "no segment is left open by a run that ended",
        lambda s: not count(s, frozenset(TERMINALS)) or s.after[message] not in streaming | reconciling,
    )


def cards(m: Model) -> Iterator[Always]:
    """Activities end at most once; cards follow them and keep their outcome."""
    activity, card = m.of("activity")[0], m.of("card")[0]
    finished, absent = m.code("card", *CARD_FINISHED), m.code("card", Card.ABSENT)
    unstarted, started = m.code("activity", Activity.NONE), m.code("activity", Activity.STARTED)
    yield (
        "an activity says each of its changes once",
        lambda s: _fresh(s) or (Emit.ACTIVITY in s.emits) == (s.before[activity] != s.after[activity]),
    )
    yield (
        "an activity ends at most once, after its start",
        lambda s: (
            _fresh(s)
            or s.before[activity] == s.after[activity]
            or s.after[activity] in started
            or (s.before[activity] in started and s.after[activity] not in unstarted)
        ),
    )
    yield "a card follows its activity's start", lambda s: s.after[card] in absent or s.after[activity] not in unstarted
    yield (
        "a finished card keeps its outcome, and a card begins by running",
        lambda s: (
            _fresh(s)
            or (
                (s.before[card] not in finished or s.after[card] == s.before[card])
                and not (s.before[card] in absent and s.after[card] in finished)
            )
        ),
    )
    yield "a card's change is sent", lambda s: _fresh(s) or s.before[card] == s.after[card] or Emit.TOOL_CARD in s.emits
