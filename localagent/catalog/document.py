"""One cache file: ``cache/model-catalog/<provider>.json``, its form, its fingerprint and its status.

Decoding is the check of form: a member that is required and missing, a wrong type or an unknown effort word make
``invalid_format``. Optional members may be null, which is as good as absent; unknown ones are ignored (CACHE-02).
Of a member that stands twice the last counts.
"""

from datetime import datetime
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct

from localagent.protocol.results import Effort
from localagent.sessions import efforts
from localagent.settings.snapshot import Provider

SCHEMA_VERSION: Final = 9
CODEX_CLIENT_VERSION: Final = "0.162.0"
_ENRICHMENT: Final = {"anthropic": 4, "claude-subscription": 4}
_ENRICHMENT_OF_OTHERS: Final = 3

Status = Literal[
    "available", "missing_cache", "empty_cache", "invalid_format", "invalid_schema", "incompatible_fingerprint"
]
"""The words of EXT-STATUS-16."""

_Count = Annotated[int, Meta(ge=0)]


class ServiceTier(Struct, frozen=True, omit_defaults=True):
    """One of ``service_tiers`` (CACHE-03)."""

    id: str | None = None
    name: str | None = None
    description: str | None = None


class Entry(Struct, frozen=True, omit_defaults=True):
    """One model of a cache (CACHE-03); counts are tokens."""

    provider: str
    model: str
    id: str
    display_name: str | None = None
    description: str | None = None
    context_window: _Count | None = None
    max_context_window: _Count | None = None
    max_output_tokens: _Count | None = None
    reasoning_efforts: tuple[str, ...] | None = None
    """Words of files, as they stand there; :attr:`efforts` has those of the wire."""
    supports_reasoning: bool | None = None
    supports_reasoning_effort: bool | None = None
    input_cost: str | None = None
    output_cost: str | None = None
    modalities: Any = None
    service_tiers: tuple[ServiceTier, ...] | None = None

    def __post_init__(self) -> None:
        for word in self.reasoning_efforts or ():
            if efforts.from_file(word) is None:
                raise ValueError("an unknown effort")

    @property
    def reasons(self) -> bool | None:
        """``supports_reasoning``, or the older name of it where that is absent."""
        return self.supports_reasoning_effort if self.supports_reasoning is None else self.supports_reasoning

    @property
    def efforts(self) -> tuple[Effort, ...]:
        """``reasoning_efforts`` in the words of the wire, as listed (SET-12)."""
        words = map(efforts.from_file, self.reasoning_efforts or ())
        return tuple(word for word in words if word is not None)


class Fingerprint(Struct, frozen=True, omit_defaults=True):
    """What a cache was made for. Absent, null and an empty list are equal, the order of a list counts (CACHE-04)."""

    enrichment_version: int | None = None
    codex_client_version: str | None = None
    models_dev_provider: str | None = None
    extra_models: tuple[str, ...] | None = None

    def fits(self, expected: "Fingerprint") -> bool:
        """Tell whether it is the expected one."""
        return self._comparable() == expected._comparable()

    def _comparable(self) -> tuple[object, ...]:
        return self.enrichment_version, self.codex_client_version, self.models_dev_provider, self.extra_models or None


class Document(Struct, frozen=True):
    """The whole file (CACHE-02)."""

    schema_version: int
    provider: str
    fetched_at: Annotated[datetime, Meta(tz=True)]
    cache_fingerprint: Fingerprint
    entries: tuple[Entry, ...]


class Judged(NamedTuple):
    """The status of a cache, and its entries in their order; only an available one yields any (CACHE-05)."""

    status: Status
    entries: tuple[Entry, ...] = ()


MISSING: Final = Judged("missing_cache")

_decode: Final = msgspec.json.Decoder(Document).decode


def file_of(provider: str) -> str:
    """The name of a provider's cache (CACHE-01)."""
    return f"{provider}.json"


def expected(provider: Provider) -> Fingerprint:
    """The fingerprint that a cache of ``provider`` must have (CACHE-04)."""
    version = _ENRICHMENT.get(provider.id, _ENRICHMENT_OF_OTHERS)
    if provider.kind == "openai_compatible":
        return Fingerprint(
            enrichment_version=version,
            models_dev_provider=provider.models_dev_provider or provider.id,
            extra_models=provider.extra_models or None,
        )
    client = CODEX_CLIENT_VERSION if provider.id == "openai-codex" else None
    return Fingerprint(enrichment_version=version, codex_client_version=client)


def judge(data: bytes, provider: Provider) -> Judged:
    """Judge the bytes of a cache: the first check that fails gives its status (CACHE-05, EXT-STATUS-18, EXT-OP-28)."""
    try:
        document = _decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return Judged("invalid_format")
    if document.schema_version != SCHEMA_VERSION or document.provider != provider.id:
        return Judged("invalid_schema")
    if not document.cache_fingerprint.fits(expected(provider)):
        return Judged("incompatible_fingerprint")
    if not document.entries:
        return Judged("empty_cache")
    if not all(_is_named(entry, provider.id) for entry in document.entries):
        return Judged("invalid_format")
    return Judged("available", document.entries)


def _is_named(entry: Entry, provider: str) -> bool:
    return entry.provider == provider and entry.model != "" and entry.id == f"{provider}/{entry.model}"
