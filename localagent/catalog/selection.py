"""What a session works with: provider, model, effort, and what becomes of them. Pure.

Three things move a selection: a deliberate change (``selection.set``), an attachment (startup selection, or what the
session saved), and a cache that says something new about the effort controls of the model. The first two bring a
revision always, the last only if the meaning changed (SEL-21 to SEL-24). Nothing here reads a file: what the caches
say comes in as choices and capabilities.

The requested effort is retained, whether it applies or not (SEL-09); what becomes of it is for
:meth:`.support.Capability.effective` to say. On the wire it is spelt ``xhigh``, in files ``x_high`` (SET-12).
"""

from collections.abc import Callable
from typing import Final, Literal

import msgspec
from msgspec import Struct

from localagent.protocol.codes import Code
from localagent.protocol.params import DefaultEffort, EffortRequest, SelectionSetParams, SetEffort
from localagent.protocol.results import Choice, Effort, Selection
from localagent.sessions import efforts
from localagent.sessions.errors import StoreError
from localagent.sessions.facts import Preferences
from localagent.text.redact import shown_name

from .support import Capability

EMBEDDED: Final = Capability("unsupported", ("default",))
"""The embedded provider knows no efforts, explicitly (SEL-14, SEL-18)."""


class Chosen(Struct, frozen=True, kw_only=True):
    """A selection. ``provider`` and ``model`` are the true names; what may be shown of them is :meth:`shown`'s."""

    provider: str
    model: str
    requested: Effort
    controls: Capability
    revision: str

    def shown(self) -> Selection:
        """The selection object of the wire; names that may not be shown are null (SEL-04, BASE-OP-91)."""
        return Selection(
            effective_effort=self.controls.effective(self.requested),
            effort_support=self.controls.support,
            model=shown_name(self.model, whitespace=False),
            permitted_efforts=self.controls.permitted,
            provider=shown_name(self.provider),
            requested_effort=self.requested,
            revision=self.revision,
        )

    def record(self) -> dict[str, str]:
        """The payload of ``session_preferences``; the effort as files spell it (REC section 2.3, SET-12)."""
        return {
            "model": self.model,
            "provider": self.provider,
            "requested_thinking": efforts.for_file(self.requested),
        }


def wanted(request: EffortRequest, kept: Effort) -> Effort:
    """Return the effort that a request asks for, ``kept`` being the one requested before (SEL-35 to SEL-39)."""
    if isinstance(request, SetEffort):
        return request.value
    return "default" if isinstance(request, DefaultEffort) else kept


def changed(asked: SelectionSetParams, kept: Effort, choice: Choice | None, revision: str) -> Chosen:
    """Return the selection that ``selection.set`` asks for; ``choice`` is that of exactly the pair, if there is one.

    Raises StoreError, the first that applies (D30): ``selection_invalid`` for a pair that is no choice (SEL-59,
    SEL-63, SEL-64) or that could not be saved as it is, ``provider_unavailable`` for a choice whose provider is not
    ready (SEL-60), ``effort_unsupported`` (SEL-20, SEL-37, SEL-61; ``default`` fits always, BASE-OP-146).
    """
    if choice is None or not _savable(asked.provider, asked.model):
        raise StoreError(Code.SELECTION_INVALID)
    if choice.availability != "available":
        raise StoreError(Code.PROVIDER_UNAVAILABLE)
    requested, controls = wanted(asked.effort, kept), controls_of(choice)
    if not controls.permits(requested):
        raise StoreError(Code.EFFORT_UNSUPPORTED)
    return Chosen(
        provider=choice.provider, model=choice.model, requested=requested, controls=controls, revision=revision
    )


def controls_of(choice: Choice) -> Capability:
    """The effort controls of a choice."""
    return Capability(choice.effort_support, choice.permitted_efforts)


def _savable(provider: str, model: str) -> bool:
    """Tell whether redaction leaves both names as they are: what is saved must be what was chosen (REC-08)."""
    return shown_name(provider) is not None and shown_name(model, whitespace=False) is not None


Notice = Literal["saved_selection_unavailable", "saved_selection_notice"]


def restored(
    saved: Preferences | None, startup: Chosen, look_up: Callable[[str, str], Choice | None]
) -> tuple[Chosen, Notice | None]:
    """Return the selection of a session that is being attached, and what there is to say of it (REC-64, SESS-36).

    ``startup`` is the startup selection with the controls and the revision of this moment; without a saved one it is
    that (BASE-OP-99). ``look_up`` gives a pair as a choice of the catalog, or None. A saved pair that is no choice, or
    whose provider is not ready, leaves the startup selection, with the saved effort retained as requested:
    ``saved_selection_unavailable`` (SESS-38 to SESS-40). A saved effort that no longer applies stays requested
    (SEL-19): ``saved_selection_notice`` (SESS-41).
    """
    if saved is None:
        return startup, None
    choice = look_up(saved.provider, saved.model)
    if choice is None or choice.availability != "available":
        return msgspec.structs.replace(startup, requested=saved.requested_effort), "saved_selection_unavailable"
    chosen = Chosen(
        provider=choice.provider,
        model=choice.model,
        requested=saved.requested_effort,
        controls=controls_of(choice),
        revision=startup.revision,
    )
    return chosen, None if chosen.controls.permits(chosen.requested) else "saved_selection_notice"


def reconciled(chosen: Chosen, controls: Capability, fresh_id: Callable[[], str]) -> Chosen:
    """Return the selection with what was observed; the same object if it means the same (SEL-23, SEL-24).

    Support and permitted efforts are all of the meaning: the effective effort follows from them.
    """
    if controls == chosen.controls:
        return chosen
    return msgspec.structs.replace(chosen, controls=controls, revision=fresh_id())
