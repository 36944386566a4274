"""`localagent models`: what a client could choose here, what is missing and what to do about it; and refreshing.

Nothing here needs a backend. Listing only reads and asks nobody; ``refresh`` asks the provider that was named, and
replaces its cache. Settings are those of the working directory, as a child that is started there would admit them.
"""

import os
import unicodedata
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    import argparse

    from localagent.catalog.catalog import Catalog
    from localagent.catalog.choices import Cached, Choices
    from localagent.catalog.document import Entry
    from localagent.catalog.keys import Keys
    from localagent.sessions.paths import Root
    from localagent.settings.snapshot import Provider

_CACHES: Final[Mapping[str, str]] = {
    "missing_cache": "none yet",
    "empty_cache": "empty",
    "invalid_format": "damaged",
    "invalid_schema": "of another version",
    "incompatible_fingerprint": "made for other settings",
}
_KEYS: Final[Mapping[str, str]] = {
    "ready": "ready",
    "authentication_unavailable": "missing",
    "not_checked": "not asked for",
}
_REASONS: Final[Mapping[str, str]] = {
    "authentication_unavailable": "there is no key for it",
    "authentication_rejected": "it did not accept the key",
    "configuration_invalid": "its base_url is no address",
    "remote_unavailable": "it could not be reached, or did not answer as it should",
    "remote_timeout": "it did not answer in time",
    "rate_limited": "it wants to be asked less often; try again later",
    "empty_catalog": "it has no models",
    "invalid_catalog": "its answer is no list of models",
    "catalog_limit": "its answer is too large",
    "cache_write_failed": "the cache could not be written; whether it was changed, the list of models tells",
}
_NAMED: Final = 10
"""So many new or lost models are named."""


class Unusable(Exception):  # noqa: N818 - says what is wrong
    """Wrong usage, settings that no child would start with, or caches that cannot be read: exit status 2."""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", execute: Callable[[Namespace], int]) -> None:
    """Add the command to the parser; nothing heavy is loaded for that."""
    models = commands.add_parser("models", help="list the models a client may choose here; refresh those of a provider")
    models.add_argument("--all", action="store_true", help="cached models that are not enabled, too")
    models.add_argument("--json", action="store_true", help="one JSON document instead of text")
    models.set_defaults(run=execute, action="list")
    actions = models.add_subparsers(metavar="ACTION")
    refresh = actions.add_parser("refresh", help="ask a provider for its models, and keep the answer")
    refresh.add_argument("provider", metavar="PROVIDER", help="a provider that is configured or built in")
    refresh.add_argument("--json", action="store_true", help="one JSON document instead of text")
    refresh.set_defaults(run=execute, action="refresh")


def run(options: Namespace, out: TextIO, err: TextIO) -> int:
    """Carry out ``models`` or ``models refresh``; the exit status.

    0 all is well; 1 a provider that matters needs something, or the refresh failed. Raises Unusable, and
    KeyboardInterrupt when a refresh was interrupted: the cache is then the old one, or wholly the new one.
    """
    from localagent.sessions.errors import StoreError

    desk = _desk(prepare=False)
    try:
        if options.action == "list":
            return _list(desk, options, out)
        known = {name for name, each in desk.providers.items() if each.kind != "scripted"}
        if options.provider not in known:
            raise Unusable(f"no provider {_cell(options.provider)!r}; there are {', '.join(sorted(known))}")
        return _refresh(_desk(prepare=True), options, out, err)
    except StoreError as fault:
        raise Unusable(_cell(str(fault))) from None


@dataclass(frozen=True)
class _Desk:
    """What a child in this directory would work with."""

    root: "Root"
    providers: "Mapping[str, Provider]"
    selected: str | None
    """The provider that is selected at startup, if one is."""
    keys: "Keys"
    catalog: "Catalog"


def _desk(*, prepare: bool) -> _Desk:
    """Read the settings as a startup would; a provider that is not ready is no obstacle here but a subject."""
    from localagent.catalog.catalog import Catalog
    from localagent.catalog.keys import Keys
    from localagent.runner import MODEL, PROVIDER
    from localagent.sessions import paths
    from localagent.sessions.errors import StoreError
    from localagent.sessions.paths import Root
    from localagent.settings import credentials, load, providers
    from localagent.settings.faults import Inadmissible

    try:
        path = paths.locate(os.environ)
        root = paths.prepare(path) if prepare else Root(paths.canonical(path) if os.path.isdir(path) else path)
        settings = load.settings(root, paths.canonical(os.getcwd()), os.environ)
        embedded = providers.Embedded(PROVIDER, MODEL)
        known = providers.admitted(settings, credentials.look(root, os.environ), embedded)
    except Inadmissible as fault:
        raise Unusable(_cell("; ".join(map(str, fault.faults)))) from None
    except StoreError as fault:
        raise Unusable(_cell(str(fault))) from None
    except OSError as fault:
        raise Unusable(_cell(f"{fault.filename or 'the store'}: {fault.strerror}")) from None
    try:
        choice: Any = providers.chosen(settings, os.environ, known, embedded)
    except Inadmissible as fault:
        choice = fault.choice
    keys = Keys(root, os.environ)
    catalog = Catalog(root, known.values(), keys.authentication, lambda: "here")
    return _Desk(root, known, choice.provider if choice is not None else None, keys, catalog)


# list


def _list(desk: _Desk, options: Namespace, out: TextIO) -> int:
    choices = desk.catalog.observe(desk.selected)
    rest = list(_not_enabled(choices)) if options.all else []
    if options.json:
        _write_json(out, _listed(desk, choices, rest))
    else:
        _write_models(choices, rest, out)
        _write_providers(desk, choices, out)
    return int(any(each.relevant and each.recovery != "none" for each in choices.providers))


def _not_enabled(choices: "Choices") -> "Iterator[tuple[Cached, Entry]]":
    """Cached models that could be enabled: those with safe names (CAT-35)."""
    from localagent.text.redact import shown_name

    for cached in choices.caches:
        for entry in sorted(cached.judged.entries, key=lambda each: each.model.encode()):
            if entry.model not in cached.provider.enabled and shown_name(entry.model, whitespace=False) is not None:
                yield cached, entry


def _listed(desk: _Desk, choices: "Choices", rest: "Sequence[tuple[Cached, Entry]]") -> dict[str, Any]:
    import msgspec

    told: dict[str, Any] = msgspec.to_builtins(
        {"selected": desk.selected, "choices": choices.offered, "notices": choices.notices}
    )
    told["providers"] = [
        msgspec.to_builtins(each) | {"models": _count(choices, each.provider), "advice": _advice(desk, each) or None}
        for each in choices.providers
    ]
    if rest:
        told["not_enabled"] = [{"provider": cached.provider.id, "model": entry.model} for cached, entry in rest]
    return told


def _write_models(choices: "Choices", rest: "Sequence[tuple[Cached, Entry]]", out: TextIO) -> None:
    rows = [
        (
            each.provider,
            each.model,
            each.model_name or "-",
            _efforts(each.effort_support, each.permitted_efforts),
            "available" if each.availability == "available" else "no key",
        )
        for each in choices.offered
    ]
    for cached, entry in rest:
        support, permitted = choices.capability(cached.provider.id, entry.model)
        name = entry.display_name or "-"
        rows.append((cached.provider.id, entry.model, _safe(name), _efforts(support, permitted), "not enabled"))
    if rows:
        out.writelines(_table([("PROVIDER", "MODEL", "NAME", "EFFORTS", "STATUS"), *rows]))
        out.write("\n")
    else:
        out.write("no model may be chosen\n\n")
    if "catalog_entries_omitted_unsafe" in choices.notices:
        out.write("some models are left out: their names look like secrets, or hold what a terminal obeys\n\n")


def _efforts(support: str, permitted: Sequence[str]) -> str:
    return " ".join(permitted) if support == "supported" else "none" if support == "unsupported" else "not known"


def _safe(name: str) -> str:
    from localagent.text.redact import shown_name

    return shown_name(name.strip()) or "-"


def _write_providers(desk: _Desk, choices: "Choices", out: TextIO) -> None:
    rows = []
    for each in choices.providers:
        count = _count(choices, each.provider)
        cache = f"{count:,} model{'' if count == 1 else 's'}" if count else _CACHES[each.catalog_status]
        used = "selected" if each.provider == desk.selected else "enabled" if each.relevant else "not used"
        rows.append((each.provider, used, cache, _KEYS[each.authentication], _advice(desk, each) or "-"))
    out.writelines(_table([("PROVIDER", "USE", "CACHE", "KEY", "WHAT TO DO"), *rows]))


def _count(choices: "Choices", provider: str) -> int:
    return next(len(each.judged.entries) for each in choices.caches if each.provider.id == provider)


def _advice(desk: _Desk, status: Any) -> str:
    """What helps, in words; nothing where nothing is amiss (EXT-STATUS-31)."""
    provider = desk.providers[status.provider]
    if provider.kind == "unsupported":
        return "this backend cannot use it" if status.relevant else ""
    refresh = f"localagent models refresh {provider.id}"
    enable = f'enable "{provider.id}/MODEL" in providers.catalog.enabled of settings.json'
    if status.recovery == "configure_authentication":
        return f"set {provider.api_key_env_var or 'ANTHROPIC_API_KEY'}"
    if status.recovery == "refresh_catalog":
        return refresh
    if status.recovery == "enable_models_and_restart":
        return f"to use it: {enable}" if status.catalog_status == "available" else f"to use it: {refresh}"
    if not provider.enabled:  # it is the selected one
        return enable
    return ""


# refresh


def _refresh(desk: _Desk, options: Namespace, out: TextIO, err: TextIO) -> int:
    from localagent.catalog.refresh import Refresher
    from localagent.sessions.errors import Cancelled

    before = _models(desk, options.provider)
    progress = _Progress(options.provider, err)
    refresher = Refresher(desk.root, desk.providers, desk.keys, desk.catalog)
    with _Interrupted() as interrupted:
        try:
            told = refresher.refresh(options.provider, desk.selected, interrupted, progress.tell)
        except Cancelled:
            raise KeyboardInterrupt from None
        finally:
            progress.end()
    now = _models(desk, options.provider)
    if options.json:
        names = {"models": len(now), "new": sorted(now - before), "gone": sorted(before - now)}
        outcome = {"provider": told.provider, "outcome": told.outcome, "reason": told.reason}
        _write_json(out, outcome | {"catalog_error": told.catalog_error} | names)
    elif told.reason is not None:
        out.write(f"{told.provider}: not refreshed: {_REASONS[told.reason]}\n")
    else:
        out.writelines(_changes(desk.providers[told.provider], before, now))
    return int(told.reason is not None)


def _models(desk: _Desk, provider: str) -> set[str]:
    """The cached models of a provider; none where its cache, or another one, cannot be read."""
    from localagent.sessions.errors import StoreError

    try:
        caches = desk.catalog.observe(desk.selected).caches
    except StoreError:
        return set()
    return {entry.model for each in caches if each.provider.id == provider for entry in each.judged.entries}


def _changes(provider: "Provider", before: set[str], now: set[str]) -> Iterator[str]:
    enabled = len(now.intersection(provider.enabled))
    yield f"{provider.id}: {len(now):,} model{'' if len(now) == 1 else 's'}, {enabled} of them enabled\n"
    for word, names in (("new", now - before), ("gone", before - now)):
        if names:
            shown = sorted(names)[:_NAMED]
            more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
            yield f"    {word}: {', '.join(map(_cell, shown))}{more}\n"
    missing = [each for each in provider.enabled if each not in now]
    if missing:
        yield f"    enabled, but not there: {', '.join(map(_cell, missing[:_NAMED]))}\n"
    if not enabled:
        yield f'    to choose one, enable "{provider.id}/MODEL" in providers.catalog.enabled of settings.json\n'


class _Progress:
    """Says on stderr what is being done: on one line of a terminal, else a line for each phase."""

    def __init__(self, provider: str, err: TextIO) -> None:
        self._provider, self._err, self._live = provider, err, err.isatty()
        self._phase = ""
        self._open = False

    def tell(self, phase: str, count: int) -> None:
        if not self._live and phase == self._phase:
            return
        self._phase = phase
        text = f"{_cell(self._provider)}: {phase}{f', {count:,} bytes' if count and self._live else ''}"
        self._err.write(f"\r{text}\x1b[K" if self._live else f"{text}\n")
        self._err.flush()
        self._open = self._live

    def end(self) -> None:
        if self._open:
            self._err.write("\r\x1b[K")
            self._err.flush()


class _Interrupted:
    """While it is entered, Ctrl-C asks the refresh to stop where it may, instead of breaking in anywhere."""

    def __init__(self) -> None:
        self._asked = False
        self._before: Any = None

    def __enter__(self) -> Callable[[], bool]:
        import signal

        def ask(_number: int, _frame: object) -> None:
            self._asked = True

        self._before = signal.signal(signal.SIGINT, ask)
        return lambda: self._asked

    def __exit__(self, *_: object) -> None:
        import signal

        signal.signal(signal.SIGINT, self._before)


# text


def _cell(text: str) -> str:
    """A name on one line; spelt out where a terminal might obey or hide it."""
    from localagent.sessions_cli import visible

    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    cells = [[_cell(each) for each in row] for row in rows]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(padded).rstrip() + "\n"


def _width(text: str) -> int:
    """Columns that a terminal needs."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def _write_json(out: TextIO, value: object) -> None:
    import json

    from localagent.sessions_cli import visible

    out.write(visible(json.dumps(value, ensure_ascii=False, indent=1)) + "\n")
