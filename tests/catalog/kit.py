"""Tools of the catalog tests: a root with caches, providers as settings would admit them, and a catalog over both."""

import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from localagent.catalog.catalog import Catalog
from localagent.catalog.keys import Keys
from localagent.catalog.refresh import Refresher
from localagent.catalog.remote import Bounds
from localagent.protocol.codes import Code
from localagent.protocol.results import CatalogPage, Choice, ProviderStatus
from localagent.sessions import paths
from localagent.sessions.clock import SYSTEM, CancelCheck, Clock, never
from localagent.sessions.errors import StoreError
from localagent.settings.snapshot import Provider

BUILT_IN = (
    Provider(id="openai-codex", kind="unsupported"),
    Provider(id="anthropic", kind="anthropic"),
    Provider(id="claude-subscription", kind="unsupported"),
)


def custom(name: str = "bench", *enabled: str, **more: Any) -> Provider:
    """A custom provider that needs no key, unless told otherwise."""
    facts = {"label": name.title(), "base_url": "http://127.0.0.1:9/v1", "models_dev_provider": name} | more
    return Provider(id=name, kind="openai_compatible", enabled=enabled, **facts)


def entry(provider: str, model: str, **more: Any) -> dict[str, Any]:
    return {"provider": provider, "model": model, "id": f"{provider}/{model}"} | more


def document(
    provider: str = "bench", models: Iterable[str | dict[str, Any]] = ("tiny",), /, **more: Any
) -> dict[str, Any]:
    """A sound cache of a custom provider; ``more`` replaces members or, with ``...``, removes them."""
    whole = {
        "schema_version": 9,
        "provider": provider,
        "fetched_at": "2026-03-01T00:00:00Z",
        "cache_fingerprint": {"enrichment_version": 3, "models_dev_provider": provider},
        "entries": [entry(provider, each) if isinstance(each, str) else each for each in models],
    } | more
    return {name: value for name, value in whole.items() if value is not ...}


class House:
    """A prepared root and what its caches hold."""

    def __init__(self, base: Path) -> None:
        self.root = paths.prepare(str(base / "home"))
        self.path = Path(self.root.path)
        self.folder = self.path / "cache" / "model-catalog"
        self.folder.mkdir(mode=0o700)

    def file(self, provider: str = "bench") -> Path:
        return self.folder / f"{provider}.json"

    def put(self, provider: str = "bench", models: Iterable[str | dict[str, Any]] = ("tiny",), /, **more: Any) -> Path:
        return self.put_bytes(json.dumps(document(provider, models, **more)).encode(), provider)

    def put_bytes(self, data: bytes, provider: str = "bench") -> Path:
        self.file(provider).write_bytes(data)
        return self.file(provider)

    def tree(self) -> dict[str, tuple[int, bytes]]:
        """Every file below the root, with its mode and bytes."""
        files = (each for each in self.path.rglob("*") if each.is_file() and not each.is_symlink())
        return {str(each): (each.stat().st_mode, each.read_bytes()) for each in files}


class Desk:
    """A catalog and a refresher over a house, as one child has them."""

    def __init__(
        self,
        house: House,
        *providers: Provider,
        clock: Clock = SYSTEM,
        environ: Mapping[str, str] | None = None,
        selected: str | None = None,
        bounds: Bounds = Bounds(),  # noqa: B008 - immutable
        **more: Any,
    ) -> None:
        numbers = itertools.count(1)
        every = {each.id: each for each in (*BUILT_IN, *providers)}
        keys = Keys(house.root, environ or {})
        self.asked: list[str] = []

        def readiness(provider: Provider) -> Any:
            self.asked.append(provider.id)
            return keys.authentication(provider)

        self.catalog = Catalog(house.root, every.values(), readiness, lambda: f"rev-{next(numbers)}", clock)
        self.refresher = Refresher(house.root, every, keys, self.catalog, clock, bounds, **more)
        self.selected = selected
        self.cancelled: CancelCheck = never

    def page(self, after: CatalogPage | None = None, limit: int = 100) -> CatalogPage:
        revision, cursor = (None, None) if after is None else (after.revision, after.next_cursor)
        return self.catalog.page(revision, cursor, limit, self.selected, self.cancelled)

    def pages(self, limit: int = 100) -> list[CatalogPage]:
        found = [self.page(limit=limit)]
        while found[-1].next_cursor is not None:
            found.append(self.page(found[-1], limit))
        return found

    def choices(self, limit: int = 100) -> list[Choice]:
        return [each for page in self.pages(limit) for each in page.choices]

    def models(self) -> list[str]:
        return [each.model for each in self.choices()]

    def statuses(self) -> dict[str, ProviderStatus]:
        page = self.catalog.status(None, None, 100, self.selected, self.cancelled)
        return {each.provider: each for each in page.providers}


def refusal(work: Callable[[], object]) -> Code:
    """The code that ``work`` is refused with."""
    with pytest.raises(StoreError) as caught:
        work()
    return caught.value.code


def padded(data: bytes, length: int) -> bytes:
    """JSON made ``length`` bytes long by white space at its end."""
    assert len(data) <= length
    return data + b" " * (length - len(data))


def rewrite(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a cache in place."""
    value = json.loads(path.read_bytes())
    change(value)
    path.write_bytes(json.dumps(value).encode())


IS_ROOT = os.geteuid() == 0
