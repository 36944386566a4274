"""What a client may choose: the caches of all providers and the admitted settings, resolved (CAT-12 to CAT-37).

A choice is the struct of the wire, :class:`localagent.protocol.results.Choice`. Everything that decides about it is
here: whether its model is enabled, its name safe, its provider ready, its efforts known. Pure: what was read and who
is ready comes in.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS
from localagent.protocol.measure import compact_bytes, utf8_bytes
from localagent.protocol.results import CatalogNotices, Choice, ProviderStatus
from localagent.sessions.errors import StoreError
from localagent.settings.snapshot import Authentication, Provider
from localagent.text.redact import shown_name

from .document import Entry, Judged
from .support import UNREADABLE, Capability, capability

_BRACKETS: Final = 2
_BUILT_IN: Final = {
    "anthropic": "Anthropic",
    "claude-subscription": "Claude subscription",
    "openai-codex": "OpenAI Codex",
}
"""Names for people of the providers that have no label of their own."""

Recovery = Literal["none", "configure_authentication", "refresh_catalog", "enable_models_and_restart"]


class Cached(NamedTuple):
    """A provider, what its cache holds, and whether it is ready; None where nobody looked (EXT-STATUS-26)."""

    provider: Provider
    judged: Judged
    authentication: Authentication | None


class Choices(NamedTuple):
    """The whole of what one scan found: what may be chosen, and what is to be said about the rest."""

    offered: tuple[Choice, ...]
    """Ascending by provider, then model, as UTF-8 bytes (CAT-21)."""
    sizes: tuple[int, ...]
    """The serialized bytes of each."""
    providers: tuple[ProviderStatus, ...]
    """Ascending by provider (EXT-OP-27)."""
    notices: CatalogNotices
    caches: tuple[Cached, ...]

    def find(self, provider: str, model: str) -> Choice | None:
        """The choice of exactly that name; None for an unknown, disabled or unsafe one (SEL-59)."""
        return next((each for each in self.offered if (each.provider, each.model) == (provider, model)), None)

    def capability(self, provider: str, model: str) -> Capability:
        """The effort controls of any model of a scanned provider, offered or not (CACHE-08)."""
        for cached in self.caches:
            if cached.provider.id == provider:
                entries = (each for each in cached.judged.entries if each.model == model)
                return capability(cached.provider, model, next(entries, None))
        return UNREADABLE


def scanned(providers: Iterable[Provider]) -> list[Provider]:
    """The providers that a scan covers, ascending (CAT-55).

    The embedded one has no cache and is no provider of the contract: it takes part only where the settings enable a
    model of it, so that a client can come back to it.
    """
    return sorted((each for each in providers if each.kind != "scripted" or each.enabled), key=lambda each: each.id)


def is_relevant(provider: Provider, selected: str | None) -> bool:
    """Tell whether an enabled model or the selection make this provider matter (CAT-31, EXT-STATUS-24)."""
    return bool(provider.enabled) or provider.id == selected


def embedded(provider: Provider) -> Judged:
    """What the embedded provider has for a cache: the models of it that are enabled. It knows no efforts (SEL-16)."""
    entries = (
        Entry(provider=provider.id, model=model, id=f"{provider.id}/{model}", supports_reasoning=False)
        for model in provider.enabled
    )
    return Judged("available", tuple(entries))


def resolve(caches: Sequence[Cached], selected: str | None) -> Choices:
    """Resolve the caches of :func:`scanned` providers, in that order; ``selected`` is the current provider.

    Raises StoreError: ``catalog_limit`` for an enabled name of over 256 bytes (CAT-36, BASE-OP-137) and for choices of
    over 1 MiB (CAT-59), ``catalog_unavailable`` for a choice that is there twice (CAT-22, CACHE-06).
    """
    offered: list[Choice] = []
    statuses: list[ProviderStatus] = []
    unavailable = omitted = False
    for cached in caches:
        provider = cached.provider
        relevant = is_relevant(provider, selected)
        unavailable = unavailable or (relevant and cached.judged.status != "available")
        if shown_name(provider.id) is None:
            omitted = True
            continue
        statuses.append(_status(cached, relevant))
        enabled = _enabled(cached)
        safe = [each for each in enabled if shown_name(each.model, whitespace=False) is not None]
        omitted = omitted or len(safe) < len(enabled)
        offered.extend(_choices(cached, safe))
    sizes = tuple(map(compact_bytes, offered))
    if sum(sizes) + max(len(sizes) - 1, 0) + _BRACKETS > LIMITS.catalog_snapshot_bytes:
        raise StoreError(Code.CATALOG_LIMIT, "choices")
    said: list[Literal["provider_catalog_unavailable", "catalog_entries_omitted_unsafe"]] = []
    if unavailable:
        said.append("provider_catalog_unavailable")
    if omitted:
        said.append("catalog_entries_omitted_unsafe")
    return Choices(tuple(offered), sizes, tuple(statuses), tuple(said), tuple(caches))


def _enabled(cached: Cached) -> list[Entry]:
    """The entries that the settings admit, ascending by model (CAT-23, CAT-24)."""
    admitted = frozenset(cached.provider.enabled)
    enabled = [each for each in cached.judged.entries if each.model in admitted]
    if len({each.model for each in enabled}) < len(enabled):
        raise StoreError(Code.CATALOG_UNAVAILABLE, f"a model of {cached.provider.id} stands there twice")
    if any(utf8_bytes(each.model) > LIMITS.catalog_string_bytes for each in enabled):
        raise StoreError(Code.CATALOG_LIMIT, f"an overlong model of {cached.provider.id}")
    return sorted(enabled, key=lambda each: each.model.encode())


def _choices(cached: Cached, entries: Iterable[Entry]) -> Iterator[Choice]:
    provider = cached.provider
    ready = cached.authentication == "ready"
    provider_name = name_of(provider)
    for entry in entries:
        support, permitted = capability(provider, entry.model, entry)
        yield Choice(
            availability="available" if ready else "authentication_unavailable",
            effort_support=support,
            model=entry.model,
            model_name=_shown(entry.display_name),
            permitted_efforts=permitted,
            provider=provider.id,
            provider_name=provider_name,
            selection_id=selection_id(provider.id, entry.model),
        )


def name_of(provider: Provider) -> str | None:
    """The name of a provider for people, None where it may not be shown (CAT-18, CAT-19)."""
    return _shown(provider.label or _BUILT_IN.get(provider.id))


def _shown(name: str | None) -> str | None:
    """A display name without the white space around it; None if it is missing, blank, unsafe or too long (CRED-13)."""
    return None if name is None else shown_name(name.strip())


def selection_id(provider: str, model: str) -> str:
    """The opaque name of a pair: 64 hex digits, the same in every child and store (CAT-15 to CAT-17)."""
    return hashlib.sha256(b"\0".join((b"localagent choice 1", provider.encode(), model.encode()))).hexdigest()


def _status(cached: Cached, relevant: bool) -> ProviderStatus:
    return ProviderStatus(
        authentication=cached.authentication or "not_checked",
        catalog_status=cached.judged.status,
        provider=cached.provider.id,
        recovery=_recovery(cached, relevant),
        relevant=relevant,
    )


def _recovery(cached: Cached, relevant: bool) -> Recovery:
    """What helps, first match wins (EXT-OP-26)."""
    if not relevant:
        return "enable_models_and_restart"
    if cached.authentication != "ready":
        return "configure_authentication"
    return "none" if cached.judged.status == "available" else "refresh_catalog"
