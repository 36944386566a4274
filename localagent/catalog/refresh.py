"""``model.refresh``: ask one provider for its models, judge the answer, replace its cache (EXT-REFRESH).

Only what was validated and is not empty is written, whole and atomically (ROOT-10): each of its steps is one of
:class:`localagent.sessions.disk.Step`, ``REPLACE_...``. Whatever fails before leaves the cache as it is, byte for byte
(EXT-REFRESH-29); a failed write is reported as such and may have succeeded (EXT-REFRESH-31). Settings, preferences and
the selection are never touched (EXT-REFRESH-33 to EXT-REFRESH-38). Two children that refresh the same provider replace
one whole cache by another.

Nobody but the provider is asked: there is no enrichment from a third party.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import Any, Final, Literal
from urllib.parse import quote, urlsplit

from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS
from localagent.protocol.results import Refreshed, RefreshReason
from localagent.sessions import disk, files
from localagent.sessions.clock import SYSTEM, CancelCheck, Clock, never, proceed
from localagent.sessions.disk import Step
from localagent.sessions.errors import StoreError
from localagent.sessions.paths import Root
from localagent.settings.snapshot import Provider
from localagent.text.redact import shown_name

from . import answers, remote
from .catalog import Catalog
from .document import Entry, file_of
from .keys import Keys
from .remote import Bounds, RefreshFault, Watch
from .scan import CACHE, FOLDER, open_folder, read

Phase = Literal["asking", "receiving", "writing", "reading back"]
Told = Callable[[Phase, int], None]
"""Told what is being done, with the bytes that it is done to so far."""

ANTHROPIC: Final = "https://api.anthropic.com/v1"
_ANTHROPIC_VERSION: Final = "2023-06-01"
_ANTHROPIC_PAGE: Final = 1000
_FIRST_VISIBLE: Final = "!"
_LAST_VISIBLE: Final = "~"


def _silent(_phase: Phase, _count: int) -> None:
    """Nobody listens."""


class Refresher:
    """Refreshes the providers of one child, one at a time."""

    def __init__(
        self,
        root: Root,
        providers: Mapping[str, Provider],
        keys: Keys,
        catalog: Catalog,
        clock: Clock = SYSTEM,
        bounds: Bounds = Bounds(),  # noqa: B008 - immutable
        anthropic: str = ANTHROPIC,
    ) -> None:
        """Take a prepared root, the admitted providers by id, and the snapshot that a refresh invalidates."""
        self._root, self._providers, self._keys, self._catalog = root, providers, keys, catalog
        self._clock, self._bounds, self._anthropic = clock, bounds, anthropic

    def refresh(
        self, provider_id: str, selected: str | None, cancelled: CancelCheck = never, told: Told = _silent
    ) -> Refreshed:
        """Refresh the cache of one provider, and scan anew; a failure is a result too (EXT-REFRESH-14 to -21).

        ``selected`` is the provider of the current selection. Raises Cancelled, and StoreError(``invalid_params``)
        for what is no configured provider with a safe name, before anything is invalidated (EXT-REFRESH-02 to -04,
        EXT-OP-35).
        """
        provider = self._providers.get(provider_id)
        if provider is None or provider.kind == "scripted" or shown_name(provider_id) is None:
            raise StoreError(Code.INVALID_PARAMS, "no configured provider")
        self._catalog.abandon()
        reason: RefreshReason | None = None
        try:
            self._replace(provider, cancelled, told)
        except RefreshFault as fault:
            reason = fault.reason
        told("reading back", 0)
        revision: str | None = None
        error: Literal["catalog_limit", "catalog_unavailable"] | None = None
        try:
            revision = self._catalog.renew(selected, cancelled)
        except StoreError as fault:
            error = "catalog_limit" if fault.code is Code.CATALOG_LIMIT else "catalog_unavailable"
        return Refreshed(
            catalog_error=error,
            catalog_revision=revision,
            outcome="refreshed" if reason is None else "failed",
            provider=provider_id,
            reason=reason,
        )

    def _replace(self, provider: Provider, cancelled: CancelCheck, told: Told) -> None:
        """Raises Cancelled or RefreshFault. The token is looked at between all steps (EXT-REFRESH-63, -65)."""
        watch = Watch(self._bounds, self._clock, cancelled)
        watch.look()
        headers = self._headers(provider)
        watch.look()
        models = self._models(provider, headers, watch, told)
        watch.look()
        entries = answers.entries(models, provider, self._before(provider))
        data = answers.text(entries, provider, self._clock.wall())
        told("writing", len(data))
        try:
            self._write(file_of(provider.id), data, cancelled)
        except OSError:
            raise RefreshFault("cache_write_failed") from None

    def _headers(self, provider: Provider) -> dict[str, str]:
        """The headers that authenticate. Raises RefreshFault(``authentication_unavailable``) without a usable key."""
        if provider.kind == "unsupported":
            raise RefreshFault("authentication_unavailable")  # CRED-03
        if provider.kind == "openai_compatible" and provider.api_key_env_var is None:
            return {}
        credential = self._keys.of(provider)
        key = "" if credential is None else credential.reveal()
        if not key or not all(_FIRST_VISIBLE <= each <= _LAST_VISIBLE for each in key):
            raise RefreshFault("authentication_unavailable")
        if provider.kind == "anthropic":
            return {"x-api-key": key, "anthropic-version": _ANTHROPIC_VERSION}
        return {"Authorization": f"Bearer {key}"}

    def _models(self, provider: Provider, headers: Mapping[str, str], watch: Watch, told: Told) -> list[dict[str, Any]]:
        """All models the provider tells, page by page; no more than just over the bound."""

        def received(count: int) -> None:
            told("receiving", count)

        url = self._url(provider)
        told("asking", 0)
        if provider.kind != "anthropic":
            return list(answers.page(remote.get(url, headers, watch, received)).data)
        models: list[dict[str, Any]] = []
        after, seen = "", set[str]()
        while len(models) <= LIMITS.refresh.models:
            answer = answers.page(remote.get(f"{url}?limit={_ANTHROPIC_PAGE}{after}", headers, watch, received))
            models.extend(answer.data)
            if not answer.has_more:
                break
            if not answer.data or not answer.last_id or answer.last_id in seen:
                raise RefreshFault("invalid_catalog")  # it would have us ask for ever
            seen.add(answer.last_id)
            after = f"&after_id={quote(answer.last_id, safe='')}"
        return models

    def _url(self, provider: Provider) -> str:
        base = self._anthropic if provider.kind == "anthropic" else provider.base_url
        if not _is_address(base):
            raise RefreshFault("configuration_invalid")
        return f"{base}/models"

    def _before(self, provider: Provider) -> dict[str, Entry]:
        """The entries of the cache that is to be replaced; one that cannot be read is nothing to keep facts from."""
        data = None
        with ExitStack() as stack, suppress(StoreError):
            folder = open_folder(self._root, stack)
            data = None if folder is None else read(file_of(provider.id), folder, LIMITS.provider_cache_bytes)
        return answers.known(data, provider)

    def _write(self, name: str, data: bytes, cancelled: CancelCheck) -> None:
        """Replace a cache file. Raises OSError, or Cancelled: once that was seen nothing is written any more."""
        with ExitStack() as stack:
            directory = stack.enter_context(self._root.directory())
            for folder in (CACHE, FOLDER):
                proceed(cancelled)
                disk.make_directory(Step.MAKE_DIRECTORY, folder, directory)
                directory = stack.enter_context(files.opened(folder, directory))
            proceed(cancelled)
            files.replace(name, data, directory, self._clock)


def _is_address(base: str | None) -> bool:
    """Tell whether a request can be made at all; settings that are valid may still name a port that is none."""
    try:
        parts = urlsplit(base or "")
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
