"""A storage root with settings and model caches, as the store contract spells them, for tests of selections.

Providers: ``bench`` needs no key and is ready, ``gated`` wants one that nobody sets. Models of ``bench``:

===============  =======================================================================
``chat``         efforts default, low, high and xhigh
``embed``        no effort controls, explicitly
``plain``        nothing is known about its effort controls
``hidden``       in the cache, but not enabled
``gone``         enabled, but not in the cache
===============  =======================================================================
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Entry = Mapping[str, Any]

CHAT: Entry = {"reasoning_efforts": ["low", "high", "x_high"]}
EMBED: Entry = {"supports_reasoning": False}
BENCH: Mapping[str, Entry] = {"chat": CHAT, "embed": EMBED, "plain": {}, "hidden": CHAT}
GATED: Mapping[str, Entry] = {"vault": CHAT}
ENABLED = ("bench/chat", "bench/embed", "bench/plain", "bench/gone", "gated/vault", "scripted/demo")


class Home:
    """Files below ``base / "home"``; what a child leaves there is read through it too."""

    def __init__(self, base: Path) -> None:
        self.path = base / "home"
        self.path.mkdir(mode=0o700)
        self.settings()
        self.cache("bench", BENCH)
        self.cache("gated", GATED)

    def settings(self, model: Mapping[str, str] | None = None, enabled: tuple[str, ...] = ENABLED) -> None:
        """Write ``settings.json``; ``model`` is ``agent.model``."""
        custom = {
            "bench": {"label": "Bench", "base_url": "http://127.0.0.1:9/v1"},
            "gated": {"label": "Gated", "base_url": "http://127.0.0.1:9/v1", "api_key_env_var": "LOCALAGENT_NO_KEY"},
        }
        document: dict[str, Any] = {
            "schema_version": 2,
            "providers": {"custom": custom, "catalog": {"enabled": list(enabled)}},
        }
        if model is not None:
            document["agent"] = {"model": dict(model)}
        (self.path / "settings.json").write_text(json.dumps(document))

    def cache(self, provider: str, models: Mapping[str, Entry]) -> None:
        """Replace the cache of a provider, as a whole."""
        document = {
            "schema_version": 9,
            "provider": provider,
            "fetched_at": "2026-03-01T00:00:00Z",
            "cache_fingerprint": {"enrichment_version": 3, "models_dev_provider": provider},
            "entries": [
                {"provider": provider, "model": model, "id": f"{provider}/{model}", **entry}
                for model, entry in models.items()
            ],
        }
        self.replace(provider, json.dumps(document).encode())

    def replace(self, provider: str, data: bytes) -> None:
        """Replace a cache by any bytes."""
        path = self.cache_file(provider)
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.write_bytes(data)
        os.replace(new, path)

    def cache_file(self, provider: str) -> Path:
        return self.path / "cache" / "model-catalog" / f"{provider}.json"

    def session(self, session_id: str) -> Path:
        return self.path / "sessions" / f"{session_id}.jsonl"

    def records(self, session_id: str) -> list[dict[str, Any]]:
        """What is stored of a session; nothing if it is not."""
        path = self.session(session_id)
        return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []

    def saved(self, session_id: str) -> list[dict[str, Any]]:
        """Its saved selections, oldest first."""
        records = self.records(session_id)
        return [each["payload"] for each in records if each["event_type"] == "session_preferences"]

    def put(self, session_id: str, *lines: tuple[str, Any]) -> None:
        """Write a session by hand; of each record the kind and the payload are given."""
        sessions = self.path / "sessions"
        sessions.mkdir(mode=0o700, exist_ok=True)
        path = self.session(session_id)
        with path.open("w") as file:
            for number, (kind, payload) in enumerate(lines):
                record = {
                    "event_id": f"f{number:03x}",
                    "event_type": kind,
                    "timestamp": "2026-03-02T08:00:01Z",
                    "session_id": session_id,
                    "payload": payload,
                }
                file.write(json.dumps(record, separators=(",", ":")) + "\n")
        path.chmod(0o600)
