"""The catalog requests: ``model.catalog``, ``model.catalog.status``, ``model.refresh``, as a session worker does them.

What each leaves of the catalog snapshot goes along as its trace: a fresh catalog that fails drops the one before, of a
continuation only a change does (BASE-OP-127), and a refresh has dropped it already, when it was admitted (EXT-OP-35).
"""

from typing import cast

from localagent.catalog.refresh import Refresher
from localagent.core import worker
from localagent.core.commands import StartWorker
from localagent.core.worker import Effect, Traced
from localagent.protocol.params import ModelRefreshParams, PageParams
from localagent.sessions.clock import CancelCheck
from localagent.sessions.errors import Cancelled, StoreError
from localagent.settings.snapshot import Snapshot

from .models import Models


def page(models: Models, command: StartWorker, cancelled: CancelCheck) -> worker.LastWord:
    """A page of either catalog method; what it shows about the current model's efforts goes along (SEL-23, SEL-24)."""
    params, catalog = cast(PageParams, command.params), models.catalog
    ask = catalog.status if command.method == "model.catalog.status" else catalog.page
    fresh = params.revision is None
    dropped = Traced("catalog", Effect.DROPPED) if fresh else None
    try:
        result = ask(params.revision, params.cursor, params.limit, models.provider, cancelled)
        selection = models.observed(cancelled)
    except StoreError as fault:
        lost = not fresh and catalog.revision is None
        return worker.OperationFailed(fault.code, Traced("catalog", Effect.CHANGED) if lost else dropped)
    except Cancelled:
        return worker.OperationCancelled(dropped)
    last = result.next_cursor is None
    effect = (Effect.FRESH_LAST if last else Effect.FRESH) if fresh else Effect.LAST_PAGE if last else Effect.PAGE
    return worker.Read(result, Traced("catalog", effect, result.revision), selection)


def refresh(models: Models, snapshot: Snapshot, command: StartWorker, cancelled: CancelCheck) -> worker.Read:
    """A refresh; its outcome is a result, whatever it is. The selection stays as it is, efforts too (EXT-REFRESH-51).

    Raises Cancelled, and StoreError(``invalid_params``) for what is no configured provider (EXT-REFRESH-04).
    """
    provider = cast(ModelRefreshParams, command.params).provider
    refresher = Refresher(snapshot.root, snapshot.providers, models.keys, models.catalog)
    result = refresher.refresh(provider, models.provider, cancelled)
    revision = result.catalog_revision
    return worker.Read(result, Traced("catalog", Effect.REVISED, revision) if revision is not None else None)
