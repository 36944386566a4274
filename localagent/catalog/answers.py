"""What providers answer when asked for their models becomes the entries of a cache, and those a file.

Both kinds of provider answer with an object whose ``data`` lists objects with an ``id``. What else an answer says
about a model is taken where it has the names and types of CACHE-03, or ``name``, ``context_length`` and
``max_model_len``, which servers use for the same. What it does not say is taken from the cache before: facts about a
model do not become wrong because this server does not repeat them. Nothing is guessed from names (EXT-PICK-02).
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from localagent.protocol.ids import is_safe_name
from localagent.protocol.limits import LIMITS
from localagent.sessions import efforts
from localagent.settings.snapshot import Provider
from localagent.text.redact import shown_name

from .document import SCHEMA_VERSION, Document, Entry, Fingerprint, expected, judge
from .remote import RefreshFault

_MOST_TOKENS: Final = 2**53
_KEPT: Final = tuple(name for name in Entry.__struct_fields__ if name not in ("provider", "model", "id"))
_NS: Final = 1_000_000_000


class Answer(Struct, frozen=True):
    """One page of models. ``has_more`` and ``last_id`` belong to ``anthropic``."""

    data: tuple[dict[str, Any], ...]
    has_more: bool | None = None
    last_id: str | None = None


_decode: Final = msgspec.json.Decoder(Answer).decode


def page(body: bytes) -> Answer:
    """Decode an answer. Raises RefreshFault(``invalid_catalog``) for whatever is none, a page of HTML for one."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise RefreshFault("invalid_catalog") from None


def entries(models: Iterable[dict[str, Any]], provider: Provider, before: Mapping[str, Entry]) -> list[Entry]:
    """Make the entries of a cache: the models that were told, and ``extra_models`` of the settings; by name.

    ``before`` are the entries of the cache before, by model. Raises RefreshFault: ``catalog_limit`` for over 2,048,
    ``invalid_catalog`` for a name that is missing, repeated, over 256 bytes or with controls (EXT-OP-37),
    ``empty_catalog``. A name that looks like a secret is kept: the catalog leaves it out, and says so (CAT-35).
    """
    told = list(models)
    names = [each.get("id") for each in told]
    extra = [name for name in provider.extra_models if name not in names]
    if len(names) + len(extra) > LIMITS.refresh.models:
        raise RefreshFault("catalog_limit")
    made: dict[str, Entry] = {}
    for name, model in [*zip(names, told, strict=True), *((name, {}) for name in extra)]:
        if not isinstance(name, str) or not is_safe_name(name) or name in made:
            raise RefreshFault("invalid_catalog")
        made[name] = _merged(_entry(provider.id, name, model), before.get(name))
    if not made:
        raise RefreshFault("empty_catalog")
    return sorted(made.values(), key=lambda each: each.model.encode())


def _entry(provider: str, name: str, told: Mapping[str, Any]) -> Entry:
    return Entry(
        provider=provider,
        model=name,
        id=f"{provider}/{name}",
        display_name=_name(told.get("display_name")) or _name(told.get("name")),
        context_window=_first_count(told, "context_window", "context_length", "max_model_len"),
        max_output_tokens=_first_count(told, "max_output_tokens"),
        reasoning_efforts=_efforts(told.get("reasoning_efforts")),
        supports_reasoning=value if isinstance(value := told.get("supports_reasoning"), bool) else None,
    )


def _name(told: object) -> str | None:
    return shown_name(told.strip()) if isinstance(told, str) else None


def _first_count(told: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = told.get(name)
        if type(value) is int and 0 < value < _MOST_TOKENS:  # True is no count
            return value
    return None


def _efforts(told: object) -> tuple[str, ...] | None:
    """The words that files use, if all are known; an effort nobody knows makes the whole list worthless."""
    if not isinstance(told, list):
        return None
    words = [efforts.from_file(each) for each in told]
    return tuple(efforts.for_file(word) for word in words if word is not None) if None not in words else None


def _merged(entry: Entry, before: Entry | None) -> Entry:
    if before is None:
        return entry
    missing = {name: getattr(before, name) for name in _KEPT if getattr(entry, name) is None}
    if entry.supports_reasoning is not None:
        missing.pop("supports_reasoning_effort", None)
    return msgspec.structs.replace(entry, **missing)


def known(data: bytes | None, provider: Provider) -> dict[str, Entry]:
    """The entries of the cache before, by model; none where it was not made for this provider as it is configured.

    That ``extra_models`` has changed since does not matter.
    """
    if data is None:
        return {}
    try:
        document = msgspec.json.decode(data, type=Document)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return {}
    fingerprint = expected(provider)
    same = msgspec.structs.replace(document.cache_fingerprint, extra_models=fingerprint.extra_models)
    if document.schema_version != SCHEMA_VERSION or document.provider != provider.id or not same.fits(fingerprint):
        return {}
    return {each.model: each for each in document.entries}


class _Written(Struct, frozen=True):
    """A document in the order in which it is written (CACHE-02)."""

    schema_version: int
    provider: str
    fetched_at: datetime
    cache_fingerprint: Fingerprint
    entries: list[Entry]


def text(entries: list[Entry], provider: Provider, wall_ns: int) -> bytes:
    """Write a cache, pretty (CACHE-01). Raises RefreshFault.

    ``catalog_limit`` for over 1 MiB as written (EXT-OP-38), ``invalid_catalog`` for what would not be available when
    it is read back (EXT-REFRESH-25).
    """
    at = datetime.fromtimestamp(wall_ns // _NS, UTC)
    document = _Written(SCHEMA_VERSION, provider.id, at, expected(provider), entries)
    data = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
    if len(data) > LIMITS.refresh.cache_bytes:
        raise RefreshFault("catalog_limit")
    if judge(data, provider).status != "available":
        raise RefreshFault("invalid_catalog")
    return data
