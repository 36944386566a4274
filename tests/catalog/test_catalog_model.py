"""Caches, keys, pages, guards and refreshes in any order, against a model that knows bytes and revisions only.

The model never judges a cache: what should be shown of each of its few contents is typed by hand. A revision is good
exactly as long as nobody asked for another one, no refresh was admitted, and no look found anything changed.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from localagent.catalog import remote
from localagent.catalog.remote import RefreshFault
from localagent.protocol.codes import Code
from localagent.sessions.errors import StoreError
from tests.kit.profiles import examples

from .kit import Desk, House, custom, document
from .server import models

T = TypeVar("T")
NAMES = ("a", "b")
ENABLED = ("m", "n")


def _bytes(name: str, *listed: str, **more: Any) -> bytes:
    return json.dumps(document(name, listed, **more)).encode()


CONTENTS: dict[str, tuple[list[str] | None, str]] = {
    "nothing": ([], "missing_cache"),
    "one": (["m"], "available"),
    "both": (["m", "n"], "available"),
    "half": ([], "invalid_format"),
    "old": ([], "invalid_schema"),
    "empty": ([], "empty_cache"),
    "link": (None, ""),
}
"""Content -> the models it offers, None for what makes any catalog fail, and the status."""


def _tried(work: Callable[[], T]) -> tuple[T | None, Code | None]:
    try:
        return work(), None
    except StoreError as fault:
        return None, fault.code


class Catalogs(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="catalog-")
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(remote, "get", self._get)
        self.house = House(Path(self.folder.name))
        self.environ = {"KEY_A": "k", "KEY_B": "k"}
        providers = [custom(name, *ENABLED, api_key_env_var=f"KEY_{name.upper()}") for name in NAMES]
        self.desk = Desk(self.house, *providers, environ=self.environ)
        self.contents = dict.fromkeys(NAMES, "nothing")
        self.count = 0
        self.written = dict.fromkeys(NAMES, 0)
        """By which refresh: no two write the same bytes."""
        self.revision: str | None = None
        self.shown: tuple[Any, ...] = ()
        self.cursors: set[str] = set()
        self.dead: list[tuple[str, str]] = []
        self.answer: bytes | RefreshFault = b""

    def teardown(self) -> None:
        if hasattr(self, "patch"):
            self.patch.undo()
            self.folder.cleanup()

    def _get(self, *_: object) -> bytes:
        if isinstance(self.answer, RefreshFault):
            raise self.answer
        return self.answer

    # what the model says

    def _facts(self) -> tuple[Any, ...]:
        return tuple((name, self.contents[name], f"KEY_{name.upper()}" in self.environ) for name in NAMES)

    def _now(self) -> tuple[Any, ...]:
        """All that a look at the caches may see."""
        return *self._facts(), *self.written.values()

    def _fails(self) -> bool:
        return "link" in self.contents.values()

    def _expected(self) -> list[tuple[str, str, bool]]:
        return [(name, model, ready) for name, what, ready in self._facts() for model in CONTENTS[what][0] or ()]

    def _lose(self) -> None:
        if self.revision is not None:
            self.dead.append((self.revision, f"{self.revision}.0001"))
            self.dead.extend((self.revision, each) for each in self.cursors)
        self.revision, self.cursors = None, set()

    # the world

    @rule(name=st.sampled_from(NAMES), what=st.sampled_from(sorted(CONTENTS)))
    def put(self, name: str, what: str) -> None:
        file = self.house.file(name)
        file.unlink(missing_ok=True)
        self.contents[name], self.written[name] = what, 0
        if what == "link":
            file.symlink_to("nowhere")
        elif what != "nothing":
            data = {
                "one": _bytes(name, "m", "x"),
                "both": _bytes(name, "n", "m"),
                "half": _bytes(name, "m")[:-2],
                "old": _bytes(name, "m", schema_version=8),
                "empty": _bytes(name),
            }
            file.write_bytes(data[what])

    @rule(name=st.sampled_from(NAMES))
    def turn_key(self, name: str) -> None:
        key = f"KEY_{name.upper()}"
        if self.environ.pop(key, None) is None:
            self.environ[key] = "k"

    # requests

    @rule(limit=st.integers(1, 5), status=st.booleans())
    def fresh(self, limit: int, status: bool) -> None:
        self._lose()
        ask = self.desk.catalog.status if status else self.desk.catalog.page
        page, code = _tried(lambda: ask(None, None, limit, None))
        assert code is (Code.CATALOG_UNAVAILABLE if self._fails() else None)
        if page is None:
            return
        self.revision, self.shown = page.revision, self._now()
        assert page.revision not in {revision for revision, _ in self.dead}
        self._judge(page, 0, limit)
        if status:
            told = {each.provider: each for each in page.providers}  # type: ignore[union-attr]
            for name, what, ready in self._facts():
                recovery = "configure_authentication" if not ready else "refresh_catalog"
                if ready and CONTENTS[what][1] == "available":
                    recovery = "none"
                assert (told[name].catalog_status, told[name].recovery) == (CONTENTS[what][1], recovery)

    def _judge(self, page: Any, start: int, limit: int) -> None:
        expected = self._expected()
        shown = [(each.provider, each.model, each.availability == "available") for each in page.choices]
        assert shown == expected[start : start + limit]
        assert page.complete == (start + limit >= len(expected)) == (page.next_cursor is None)
        missing = any(CONTENTS[what][1] != "available" for what in self.contents.values())
        assert page.notices == (("provider_catalog_unavailable",) if missing else ())
        if page.next_cursor is not None:
            self.cursors.add(page.next_cursor)

    @precondition(lambda self: self.revision is not None and self.cursors)
    @rule(data=st.data(), limit=st.integers(1, 5), status=st.booleans())
    def go_on(self, data: st.DataObject, limit: int, status: bool) -> None:
        cursor = data.draw(st.sampled_from(sorted(self.cursors)))
        ask = self.desk.catalog.status if status else self.desk.catalog.page
        page, code = _tried(lambda: ask(self.revision, cursor, limit, None))
        self._held(code)
        if page is not None:
            self._judge(page, int(cursor.rpartition(".")[2]), limit)

    def _held(self, code: Code | None) -> None:
        """A look at the snapshot: nothing may have changed, or it is stale from now on."""
        assert code is (None if self._now() == self.shown else Code.STALE_CATALOG)
        if code is not None:
            self._lose()

    @precondition(lambda self: self.revision is not None)
    @rule()
    def guard(self) -> None:
        choices, code = _tried(lambda: self.desk.catalog.verify(str(self.revision)))
        self._held(code)
        if choices is not None:
            assert [(each.provider, each.model) for each in choices.offered] == [each[:2] for each in self._expected()]

    @precondition(lambda self: self.dead)
    @rule(data=st.data())
    def come_back(self, data: st.DataObject) -> None:
        """Whatever was lost once never works again."""
        revision, cursor = data.draw(st.sampled_from(self.dead))
        assert _tried(lambda: self.desk.catalog.page(revision, cursor, 1, None)) == (None, Code.STALE_CATALOG)
        assert _tried(lambda: self.desk.catalog.verify(revision)) == (None, Code.STALE_CATALOG)
        assert self.desk.catalog.revision == self.revision

    @rule(name=st.sampled_from(NAMES), what=st.sampled_from(["one", "both", "rate_limited", "garbage"]))
    def refresh(self, name: str, what: str) -> None:
        answers: dict[str, bytes | RefreshFault] = {
            "one": models("m", "x"),
            "both": models("m", "n"),
            "rate_limited": RefreshFault("rate_limited"),
            "garbage": b"<html>",
        }
        self.answer = answers[what]
        self._lose()
        told = self.desk.refresher.refresh(name, None)
        ready = f"KEY_{name.upper()}" in self.environ
        reason = {"rate_limited": "rate_limited", "garbage": "invalid_catalog"}.get(what)
        assert told.reason == (reason if ready else "authentication_unavailable")
        if told.outcome == "refreshed":
            self.count += 1
            self.contents[name], self.written[name] = what, self.count
        assert (told.catalog_error is None) == (not self._fails()) == (told.catalog_revision is not None)
        self.revision, self.shown = told.catalog_revision, self._now()


TestCatalogs = Catalogs.TestCase
TestCatalogs.settings = settings(max_examples=examples(40, 1_000), stateful_step_count=30, deadline=None)
