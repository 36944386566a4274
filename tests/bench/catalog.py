"""``model.catalog`` over 32 caches and 2,048 models, beside a bare read and decode of the same files in the same run.

*Again* is a fresh catalog over files that were judged before: they are read and hashed, and not judged anew. *Anew*
means that every cache was written since. Both are the child's time, from sending the request to having its answer.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.kit.child import Child

CUSTOM = 29
"""Providers of our own, beside the two that are built in and the embedded one: 32."""
MODELS = 2048
ROUNDS = 9
TRIES = 200


def _entries(provider: str, count: int, generation: int) -> list[dict[str, Any]]:
    return [
        {
            "provider": provider,
            "model": f"model-{number}",
            "id": f"{provider}/model-{number}",
            "display_name": f"Model {number}",
            "description": "What this model is good for. " * 5 + str(generation),
            "context_window": 200_000,
            "reasoning_efforts": ["low", "high", "x_high"],
            "modalities": {"input": ["text"], "output": ["text"]},
        }
        for number in range(count)
    ]


def _write(home: Path, generation: int) -> None:
    """Every cache, as a whole."""
    folder = home / "cache" / "model-catalog"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number in range(CUSTOM):
        provider = f"p{number:02d}"
        count = MODELS // CUSTOM + (number < MODELS % CUSTOM)
        document = {
            "schema_version": 9,
            "provider": provider,
            "fetched_at": "2026-03-01T00:00:00Z",
            "cache_fingerprint": {"enrichment_version": 3, "models_dev_provider": provider},
            "entries": _entries(provider, count, generation),
        }
        (folder / f"{provider}.json").write_text(json.dumps(document))


@contextmanager
def _home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="localagent-bench-") as base:
        home = Path(base).resolve() / "home"
        home.mkdir(mode=0o700)
        names = [f"p{number:02d}" for number in range(CUSTOM)]
        custom = {
            name: {"label": name, "base_url": "http://127.0.0.1:9/v1", "models_dev_provider": name} for name in names
        }
        enabled = [f"{name}/model-{number}" for name in names for number in range(MODELS // CUSTOM)]
        providers = {"custom": custom, "catalog": {"enabled": enabled}}
        (home / "settings.json").write_text(json.dumps({"schema_version": 2, "providers": providers}))
        _write(home, 0)
        yield home


def _timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1000


def _bare(home: Path) -> None:
    for file in sorted((home / "cache" / "model-catalog").iterdir()):
        msgspec.json.decode(file.read_bytes())


def report() -> None:
    """Print the figures."""
    with _home() as home, Child(home) as child:
        child.initialize("model.catalog")
        bare = statistics.median(_timed(lambda: _bare(home)) for _ in range(ROUNDS))
        first = _timed(lambda: child.call("model.catalog"))
        again = statistics.median(_timed(lambda: child.call("model.catalog")) for _ in range(ROUNDS))
        anew = []
        for generation in range(1, ROUNDS + 1):
            _write(home, generation)
            anew.append(_timed(lambda: child.call("model.catalog")["result"]))
        late = _statuses(child, home)
    print(
        f"catalog, 2,048      bare {bare:7.1f} ms   again {again:5.1f} ms   x{again / bare:.2f}   (goal: 3)   "
        f"anew {statistics.median(anew):.1f} ms   first {first:.1f} ms"
    )
    print(f"status in a scan    p99 {statistics.quantiles(late, n=100)[98]:6.1f} ms of {TRIES}   (goal: 50)")


def _statuses(child: Child, home: Path) -> list[float]:
    """How long ``status`` takes right behind a ``model.catalog`` that has to judge everything anew."""
    late = []
    for number in range(TRIES):
        if number % 20 == 0:
            _write(home, 100 + number)
        scan = child.ask("model.catalog")
        begin = time.perf_counter()
        status = child.ask("status")
        wanted = {scan, status}
        while wanted:
            name = child.frame().get("id")
            if name == status:
                late.append((time.perf_counter() - begin) * 1000)
            wanted.discard(name)
    return late
