"""What a selection asks of the caches on this machine: the child's snapshot, or the cache of one provider alone."""

from collections.abc import Mapping

from localagent.protocol.results import Choice
from localagent.sessions.clock import SYSTEM, CancelCheck, Clock
from localagent.sessions.errors import StoreError
from localagent.sessions.paths import Root
from localagent.settings.snapshot import UNAVAILABLE, Authentication, Provider

from .catalog import Catalog
from .choices import Choices
from .scan import Readiness, scan
from .selection import EMBEDDED
from .support import UNREADABLE, Capability


class LocalCaches:
    """Implements :class:`.selector.Caches` for the admitted providers, by their ids."""

    def __init__(
        self,
        root: Root,
        providers: Mapping[str, Provider],
        readiness: Readiness,
        catalog: Catalog,
        clock: Clock = SYSTEM,
    ) -> None:
        self._root, self._providers, self._readiness = root, providers, readiness
        self._catalog, self._clock = catalog, clock

    def confirm(self, revision: str, provider: str, model: str, cancelled: CancelCheck) -> Choice | None:
        """A scan of all caches, compared with the snapshot (SEL-58, SEL-66); the choice of exactly this pair."""
        return self._catalog.verify(revision, cancelled).find(provider, model)

    def choice(self, provider: str, model: str, cancelled: CancelCheck) -> Choice | None:
        """The pair as a choice, its provider asked whether it is ready; None where its cache does not say (REC-64)."""
        choices = self._one(provider, self._readiness, cancelled)
        return choices.find(provider, model) if choices is not None else None

    def controls(self, provider: str, model: str, cancelled: CancelCheck) -> Capability:
        """The controls of any pair (CACHE-08). Whether the provider is ready does not matter, and is not asked."""
        known = self._providers.get(provider)
        if known is not None and known.kind == "scripted":
            return EMBEDDED
        choices = self._one(provider, _not_asked, cancelled)
        return choices.capability(provider, model) if choices is not None else UNREADABLE

    def _one(self, provider: str, readiness: Readiness, cancelled: CancelCheck) -> Choices | None:
        """A scan of one provider; None if it is not configured, or its cache unsafe, too large or contradictory."""
        known = self._providers.get(provider)
        if known is None:
            return None
        try:
            return scan(self._root, (known,), None, readiness, self._clock, cancelled).choices
        except StoreError:
            return None


def _not_asked(provider: Provider) -> Authentication:
    return UNAVAILABLE
