"""The selection of one child, from startup to its end: what is selected now, and the three occasions that change it.

==========================  ==========================================================================
:meth:`Selector.attach`     a session was created or opened: what it saved, or the startup selection
:meth:`Selector.change`     ``selection.set``: two looks at the caches, one record, then memory
:meth:`Selector.observe`    a catalog was read, or a turn accepted: the controls of the model may differ
==========================  ==========================================================================

Called by one worker at a time. Whatever is refused or fails leaves :attr:`~Selector.current` as it was (SEL-93,
SEL-95); it is replaced in one assignment, after the record is on the disk (SEL-71).
"""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from localagent.protocol.codes import Code
from localagent.protocol.params import SelectionSetParams
from localagent.protocol.results import Choice, Effort, SelectionSaved
from localagent.sessions.clock import CancelCheck, never, proceed
from localagent.sessions.errors import AppendFailed, Outcome, StoreError
from localagent.sessions.facts import Preferences
from localagent.sessions.records import Draft

from .selection import Chosen, Notice, changed, reconciled, restored
from .support import Capability

SaveNotice = Literal["selection_normalized", "metadata_update_failed", "history_unavailable"]


class Caches(Protocol):
    """What a selection asks of the catalog: questions to files on this machine, no request (STATUS-20, CAT-70)."""

    def confirm(self, revision: str, provider: str, model: str, cancelled: CancelCheck) -> Choice | None:
        """Scan all caches, compare with the snapshot that ``revision`` names, and return this pair as it stands there.

        None if the pair is no choice. Raises Cancelled, or StoreError: ``stale_catalog`` for a snapshot that is gone or
        no longer what the caches say, ``catalog_limit`` and ``catalog_unavailable`` (SEL-58, SEL-66).
        """
        ...

    def choice(self, provider: str, model: str, cancelled: CancelCheck) -> Choice | None:
        """Return this pair as a choice, from the cache of its provider alone; None also where that cannot be read."""
        ...

    def controls(self, provider: str, model: str, cancelled: CancelCheck) -> Capability:
        """Return the controls of any pair, choice or not; of one that no cache tells of, what its name alone says."""
        ...


class Session(Protocol):
    """What a change needs of the attached session: :class:`localagent.sessions.handle.Handle`."""

    @property
    def session_id(self) -> str:
        """Its id."""
        ...

    def append(self, drafts: Sequence[Draft], cancelled: CancelCheck = never) -> object:
        """Append durably, all or nothing. Raises AppendFailed or Cancelled."""
        ...

    def refresh(self, cancelled: CancelCheck = never) -> str:
        """Project what is stored now; its fresh revision. Raises StoreError."""
        ...


class NotSaved(StoreError):  # noqa: N818 - says what happened
    """The record is not acknowledged: ``persistence_failed`` (SEL-92).

    ``uncertain``: it may be on the disk nevertheless, and only opening the session anew tells (BASE-OP-149).
    """

    def __init__(self, uncertain: bool, why: str) -> None:
        super().__init__(Code.PERSISTENCE_FAILED, why)
        self.uncertain = uncertain


class Changed(Struct, frozen=True):
    """A change that was saved: the answer, with the selection as it is shown from now on (SEL-78, SEL-81)."""

    result: SelectionSaved
    history_revision: str | None


class Selector:
    """Holds the selection of one child.

    ``startup`` and ``effort`` are what the settings chose (SET-05), ``revision`` is that of the startup selection.
    """

    def __init__(
        self, startup: tuple[str, str], effort: Effort, caches: Caches, fresh_id: Callable[[], str], revision: str
    ) -> None:
        self._pair, self._effort = startup, effort
        self._caches, self._fresh_id = caches, fresh_id
        self.current = self._startup(revision, never)

    def _startup(self, revision: str, cancelled: CancelCheck) -> Chosen:
        provider, model = self._pair
        controls = self._caches.controls(provider, model, cancelled)
        return Chosen(provider=provider, model=model, requested=self._effort, controls=controls, revision=revision)

    def attach(self, saved: Preferences | None, cancelled: CancelCheck = never) -> tuple[Chosen, Notice | None]:
        """Return the selection of a session that is being attached, and the notice that goes with it (SEL-21, REC-64).

        It is current once :attr:`current` is set to it, which is for the caller to do when nothing can fail any more.
        Raises Cancelled.
        """

        def look_up(provider: str, model: str) -> Choice | None:
            return self._caches.choice(provider, model, cancelled)

        return restored(saved, self._startup(self._fresh_id(), cancelled), look_up)

    def change(
        self,
        asked: SelectionSetParams,
        session: Session,
        verify: Callable[[], None],
        cancelled: CancelCheck = never,
    ) -> Changed:
        """Carry out ``selection.set`` on the attached ``session``, whose revisions were found current.

        The pair, its provider, the effort and the catalog are judged twice, the second time right before the append
        (SEL-65, SEL-66); in between ``verify`` judges the owned history and raises what opening it would (SEL-62,
        BASE-OP-148). From the append on the request is not cancelled any more (SEL-98).

        Raises Cancelled and StoreError, as :func:`.selection.changed` and :meth:`Caches.confirm`; :class:`NotSaved`.
        """
        self._judge(asked, cancelled)
        verify()
        chosen = self._judge(asked, cancelled)
        proceed(cancelled)
        try:
            session.append([Draft("session_preferences", chosen.record())], cancelled)
        except AppendFailed as fault:
            raise NotSaved(fault.outcome is Outcome.UNCERTAIN, str(fault)) from None
        self.current = chosen
        notices: tuple[SaveNotice, ...] = ()
        revision = None
        try:
            revision = session.refresh()
        except StoreError:  # durable, but not to be shown: that needs another open (SEL-89, SEL-90)
            notices = ("history_unavailable",)
        result = SelectionSaved(
            catalog_revision=asked.catalog_revision,
            history_revision=revision,
            notices=notices,
            selection=chosen.shown(),
            session_id=session.session_id,
        )
        return Changed(result, revision)

    def _judge(self, asked: SelectionSetParams, cancelled: CancelCheck) -> Chosen:
        choice = self._caches.confirm(asked.catalog_revision, asked.provider, asked.model, cancelled)
        return changed(asked, self.current.requested, choice, self._fresh_id())

    def observe(self, cancelled: CancelCheck = never) -> Chosen | None:
        """Look at the controls of the current model again; the new selection if they mean something else by now.

        A catalog request does so last, when it cannot fail any more (SEL-23, SEL-24); a turn before provider work, and
        fails with ``stale_selection`` if there is a new one (SEL-25, SEL-26). Raises Cancelled.
        """
        controls = self._caches.controls(self.current.provider, self.current.model, cancelled)
        seen = reconciled(self.current, controls, self._fresh_id)
        if seen is self.current:
            return None
        self.current = seen
        return seen
