"""What one child knows of models: its catalog, its keys and its selection; and ``selection.set``, step by step.

Made when it is first needed, as its imports take longer than everything else that a child with the embedded provider
does to become ready.
"""

import os
from collections.abc import Callable
from typing import Any

from localagent.catalog.caches import LocalCaches
from localagent.catalog.catalog import Catalog
from localagent.catalog.keys import Keys
from localagent.catalog.selector import NotSaved, Selector
from localagent.core import worker
from localagent.core.worker import Effect, Traced
from localagent.protocol.codes import Code
from localagent.protocol.params import SelectionSetParams
from localagent.protocol.results import Selection
from localagent.sessions.clock import CancelCheck
from localagent.sessions.errors import Cancelled, StoreError
from localagent.sessions.handle import Handle
from localagent.sessions.store import Store
from localagent.settings.snapshot import Snapshot


class Models:
    """Used by one worker at a time. ``revision`` is the one that the startup selection was shown under."""

    def __init__(self, snapshot: Snapshot, fresh_id: Callable[[], str], revision: str) -> None:
        root, choice = snapshot.root, snapshot.choice
        self.keys = Keys(root, os.environ)
        self.catalog = Catalog(root, snapshot.providers.values(), self.keys.authentication, fresh_id)
        caches = LocalCaches(root, snapshot.providers, self.keys.authentication, self.catalog)
        self.selector = Selector((choice.provider, choice.model), choice.effort, caches, fresh_id, revision)
        self._providers = snapshot.providers

    @property
    def provider(self) -> str:
        """The provider of the current selection, by its true name."""
        return self.selector.current.provider

    @property
    def is_embedded(self) -> bool:
        """Whether the current provider is the embedded one."""
        return self._providers[self.provider].kind == "scripted"

    def observed(self, cancelled: CancelCheck) -> Selection | None:
        """What a catalog request has to tell about the selection; None while nothing changed (SEL-23, SEL-24).

        To be asked last, when the request cannot fail any more. Raises Cancelled; then nothing has changed.
        """
        seen = self.selector.observe(cancelled)
        return seen.shown() if seen is not None else None

    def stale(self, handle: Handle, cancelled: CancelCheck) -> worker.TurnEnded | None:
        """The end of a turn that must not begin: its selection is not the one that the client knows (SEL-25, SEL-26).

        No input is stored, and the refreshed selection shows with the terminal event (SEL-27, SEL-28).
        """
        try:
            seen = self.observed(cancelled)
        except Cancelled:
            return worker.TurnEnded("stopped", None, _fresh_revision(handle))
        if seen is None:
            return None
        return worker.TurnEnded("failed", Code.STALE_SELECTION, _fresh_revision(handle), seen)

    def attach(self, handle: Handle, cancelled: CancelCheck) -> tuple[Selection, tuple[Any, ...]]:
        """Take over what a session saved; the selection and all notices of the attachment (REC-64, BASE-OP-102).

        Raises Cancelled; then nothing has changed.
        """
        chosen, notice = self.selector.attach(handle.preferences, cancelled)
        self.selector.current = chosen
        return chosen.shown(), (*handle.notices, notice) if notice is not None else handle.notices

    def select(
        self, asked: SelectionSetParams, handle: Handle, store: Store, cancelled: CancelCheck
    ) -> worker.Selected | worker.OperationFailed:
        """``selection.set``. A catalog that was found changed is stale for good, and so is a history of which nobody
        knows what was written to it (SEL-58, BASE-OP-149). Raises Cancelled."""
        try:
            done = self.selector.change(asked, handle, lambda: _verify(handle, store, cancelled), cancelled)
        except NotSaved as fault:
            return worker.OperationFailed(fault.code, Traced("history", Effect.CHANGED) if fault.uncertain else None)
        except StoreError as fault:
            stale = fault.code is Code.STALE_CATALOG
            return worker.OperationFailed(fault.code, Traced("catalog", Effect.CHANGED) if stale else None)
        return worker.Selected(done.result, done.result.selection, done.history_revision)


def _fresh_revision(handle: Handle) -> str | None:
    try:
        return handle.refresh()
    except StoreError:  # no projection, no revision (EVT-53)
        return None


def _verify(handle: Handle, store: Store, cancelled: CancelCheck) -> None:
    """Judge the history of the attached session as ``session.open`` would (SEL-62, BASE-OP-148).

    A file that is as it was left was judged then. Raises StoreError and Cancelled.
    """
    if handle.revision is not None:
        try:
            handle.page(handle.revision, None, cancelled)
            return
        except StoreError:  # changed, which alone is no fault
            pass
    store.open(handle.session_id, cancelled).release()
