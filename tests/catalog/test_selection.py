"""The rules of a selection, one by one: efforts, deliberate changes, restoring, observing."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.catalog.selection import EMBEDDED, Chosen, changed, reconciled, restored, wanted
from localagent.catalog.support import UNREADABLE, Capability
from localagent.protocol.codes import Code
from localagent.protocol.params import DefaultEffort, KeepEffort, SelectionSetParams, SetEffort
from localagent.protocol.results import Choice, Effort
from localagent.sessions.errors import StoreError
from localagent.sessions.facts import Preferences, preferences

EFFORTS: tuple[Effort, ...] = get_args(Effort)
SOME = Capability("supported", ("default", "low", "high", "xhigh"))
STARTUP = Chosen(provider="scripted", model="demo", requested="medium", controls=EMBEDDED, revision="r0")


def asked(effort: Any = None, provider: str = "bench", model: str = "tiny") -> SelectionSetParams:
    more = {} if effort is None else {"effort": effort}
    return SelectionSetParams(
        session_id="s", selection_revision="r0", catalog_revision="c", provider=provider, model=model, **more
    )


def choice(ready: bool, controls: Capability) -> Choice:
    return Choice(
        availability="available" if ready else "authentication_unavailable",
        effort_support=controls.support,
        model="tiny",
        model_name=None,
        permitted_efforts=controls.permitted,
        provider="bench",
        provider_name=None,
        selection_id="0" * 64,
    )


def refusal(params: SelectionSetParams, kept: Effort, offered: Choice | None) -> Code:
    with pytest.raises(StoreError) as caught:
        changed(params, kept, offered, "r1")
    return caught.value.code


def test_the_three_modes() -> None:
    """SEL-35, SEL-36, SEL-38, SEL-39."""
    assert asked().effort == KeepEffort()
    assert wanted(KeepEffort(), "max") == "max"
    assert wanted(DefaultEffort(), "max") == "default"
    assert wanted(SetEffort(value="low"), "max") == "low"


def test_a_change_takes_the_pair_as_it_was_asked_for() -> None:
    chosen = changed(asked(SetEffort(value="xhigh")), "low", choice(True, SOME), "r1")
    assert chosen == Chosen(provider="bench", model="tiny", requested="xhigh", controls=SOME, revision="r1")


@pytest.mark.parametrize("kept", EFFORTS)
def test_keep_is_refused_where_the_kept_effort_does_not_fit(kept: Effort) -> None:
    """SEL-37: no default is guessed in its place (SEL-36)."""
    if kept in ("default", "low", "high", "xhigh"):
        assert changed(asked(KeepEffort()), kept, choice(True, SOME), "r1").requested == kept
    else:
        assert refusal(asked(KeepEffort()), kept, choice(True, SOME)) is Code.EFFORT_UNSUPPORTED


@pytest.mark.parametrize("controls", [EMBEDDED, UNREADABLE])
def test_without_controls_nothing_explicit_can_be_set(controls: Capability) -> None:
    """SEL-17, SEL-20."""
    assert refusal(asked(SetEffort(value="low")), "default", choice(True, controls)) is Code.EFFORT_UNSUPPORTED
    assert changed(asked(DefaultEffort()), "high", choice(True, controls), "r1").requested == "default"


def test_the_order_of_the_refusals() -> None:
    """D30: selection_invalid, provider_unavailable, effort_unsupported."""
    unfit = asked(SetEffort(value="max"))
    assert refusal(unfit, "low", None) is Code.SELECTION_INVALID
    assert refusal(unfit, "low", choice(False, SOME)) is Code.PROVIDER_UNAVAILABLE
    assert refusal(unfit, "low", choice(True, SOME)) is Code.EFFORT_UNSUPPORTED


@pytest.mark.parametrize("name", ["sk-abc", "token=abc", "ghp_" + "a" * 36, "A" * 48])
def test_a_name_that_would_not_be_saved_as_it_is_is_no_choice(name: str) -> None:
    """CRED-13, REC-08: what redaction changes is never saved under another name."""
    assert refusal(asked(provider=name), "default", choice(True, SOME)) is Code.SELECTION_INVALID
    assert refusal(asked(model=name), "default", choice(True, SOME)) is Code.SELECTION_INVALID


@pytest.mark.parametrize("requested", EFFORTS)
def test_a_record_is_read_back_as_it_was_written(requested: Effort) -> None:
    """SET-12: files say x_high, the wire says xhigh."""
    chosen = msgspec.structs.replace(STARTUP, requested=requested)
    assert set(chosen.record()) == {"provider", "model", "requested_thinking"}
    assert chosen.record()["requested_thinking"] == {"xhigh": "x_high"}.get(requested, requested)
    assert preferences(chosen.record()) == Preferences("scripted", "demo", requested)


def test_names_that_may_not_be_shown_are_null() -> None:
    """BASE-OP-91, STATUS-09."""
    shown = msgspec.structs.replace(STARTUP, provider="sk-abc", model="a model").shown()
    assert (shown.provider, shown.model) == (None, None)
    assert STARTUP.shown().provider == "scripted"


# restoring

SAVED = Preferences("bench", "tiny", "xhigh")


def nothing(provider: str, model: str) -> Choice | None:
    return None


def test_without_a_saved_selection_it_is_the_startup_selection() -> None:
    """SEL-21, BASE-OP-99."""
    assert restored(None, STARTUP, nothing) == (STARTUP, None)


def test_a_saved_selection_that_is_a_ready_choice_is_restored() -> None:
    """SESS-36, SEL-76."""
    looked: list[tuple[str, str]] = []

    def look_up(provider: str, model: str) -> Choice | None:
        looked.append((provider, model))
        return choice(True, SOME)

    chosen, notice = restored(SAVED, STARTUP, look_up)
    assert looked == [("bench", "tiny")]
    assert notice is None
    assert chosen == Chosen(provider="bench", model="tiny", requested="xhigh", controls=SOME, revision="r0")


@pytest.mark.parametrize("offered", [None, choice(False, SOME)])
def test_else_the_startup_selection_stays_with_the_saved_effort(offered: Choice | None) -> None:
    """SESS-38 to SESS-40, REC-64."""
    chosen, notice = restored(SAVED, STARTUP, lambda provider, model: offered)
    assert notice == "saved_selection_unavailable"
    assert chosen == msgspec.structs.replace(STARTUP, requested="xhigh")


def test_a_saved_effort_that_no_longer_applies_stays_requested() -> None:
    """SEL-09, SEL-19, SESS-41."""
    offered = choice(True, Capability("supported", ("default", "low")))
    chosen, notice = restored(SAVED, STARTUP, lambda provider, model: offered)
    assert notice == "saved_selection_notice"
    assert (chosen.requested, chosen.shown().effective_effort) == ("xhigh", "default")


# observing


@given(
    st.sampled_from([SOME, EMBEDDED, UNREADABLE, Capability("supported", ("default", "low"))]),
    st.sampled_from([SOME, EMBEDDED, UNREADABLE, Capability("supported", ("default", "low"))]),
    st.sampled_from(EFFORTS),
)
def test_the_revision_rotates_when_the_meaning_changes_and_only_then(
    before: Capability, after: Capability, requested: Effort
) -> None:
    """SEL-23, SEL-24."""
    chosen = Chosen(provider="bench", model="tiny", requested=requested, controls=before, revision="r1")
    seen = reconciled(chosen, after, lambda: "r2")
    old, new = chosen.shown(), seen.shown()
    same = (old.effort_support, old.permitted_efforts, old.effective_effort) == (
        new.effort_support,
        new.permitted_efforts,
        new.effective_effort,
    )
    assert (new.revision == old.revision) == same
    assert (new.provider, new.model, new.requested_effort) == (old.provider, old.model, old.requested_effort)
