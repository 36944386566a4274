"""Selections against a model of them: caches change, sessions come and go, appends fail, and revisions must tell."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast, get_args

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from localagent.catalog.caches import LocalCaches
from localagent.catalog.catalog import Catalog
from localagent.catalog.selector import Changed, Selector
from localagent.protocol.params import DefaultEffort, KeepEffort, SelectionSetParams, SetEffort
from localagent.protocol.results import Effort
from localagent.sessions import paths
from localagent.sessions.disk import Step
from localagent.sessions.errors import StoreError
from localagent.sessions.handle import Handle
from localagent.sessions.store import Store
from localagent.settings.snapshot import Authentication, Provider
from tests.kit.profiles import examples
from tests.sessions.kit import failing, user

from .homes import BENCH, CHAT, EMBED, Entry, Home

EFFORTS: tuple[Effort, ...] = get_args(Effort)
SHAPES: Mapping[str, tuple[Entry, tuple[str, tuple[str, ...]]]] = {
    "some": (CHAT, ("supported", ("default", "low", "high", "xhigh"))),
    "other": ({"reasoning_efforts": ["max"]}, ("supported", ("default", "max"))),
    "named": ({**CHAT, "display_name": "Chat"}, ("supported", ("default", "low", "high", "xhigh"))),
    "none": (EMBED, ("unsupported", ("default",))),
    "silent": ({}, ("unknown", ("default",))),
}
"""What a cache may say of ``bench/chat``, and what that means (CACHE-07, CACHE-08)."""
PAIRS = (("bench", "chat"), ("bench", "embed"), ("bench", "hidden"), ("bench", "gone"), ("gated", "vault"))
STARTUP, STARTUP_EFFORT = ("bench", "embed"), "low"
NO_CONTROLS = ("unsupported", ("default",))

Expected = tuple[str, str, str, str, tuple[str, ...]]


class Selections(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="localagent-selection-")
        self.home = Home(Path(self.folder.name))
        root = paths.prepare(str(self.home.path))
        providers = (
            Provider(id="bench", kind="openai_compatible", enabled=("chat", "embed", "gone"), authentication="ready"),
            Provider(id="gated", kind="openai_compatible", enabled=("vault",)),
        )

        def readiness(provider: Provider) -> Authentication:
            return provider.authentication

        self.count = 0
        self.catalog = Catalog(root, providers, readiness, self.fresh)
        caches = LocalCaches(root, {each.id: each for each in providers}, readiness, self.catalog)
        self.selector = Selector(STARTUP, cast(Effort, STARTUP_EFFORT), caches, self.fresh, "r0")
        self.store = Store(root, paths.canonical(self.folder.name))
        self.handle: Handle | None = None
        self.shape = "some"
        self.saved: dict[str, tuple[str, str, str]] = {}
        self.stored: set[str] = set()
        self.expected: Expected = (*STARTUP, STARTUP_EFFORT, *NO_CONTROLS)
        self.revision = self.selector.current.revision
        self.revisions = {self.revision}
        self.guard: tuple[str, str] | None = None
        """The revision of the catalog, and the shape it saw; None when it was found stale, which is for good."""

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            if self.handle is not None:
                self.handle.release()
            self.folder.cleanup()

    def fresh(self) -> str:
        self.count += 1
        return f"r{self.count}"

    # the model

    def controls(self, provider: str, model: str) -> tuple[str, tuple[str, ...]]:
        if (provider, model) == ("bench", "chat"):
            return SHAPES[self.shape][1]
        return NO_CONTROLS if model == "embed" else SHAPES["some"][1]

    def chosen(self, provider: str, model: str, effort: str) -> Expected:
        return (provider, model, effort, *self.controls(provider, model))

    def moved(self, expected: Expected) -> None:
        """The selection is this one now, under a revision that was never seen before."""
        self.expected = expected
        self.revision = self.selector.current.revision
        assert self.revision not in self.revisions
        self.revisions.add(self.revision)

    @invariant()
    def it_is_as_expected(self) -> None:
        if not hasattr(self, "selector"):
            return
        shown = self.selector.current.shown()
        provider, model, effort, support, permitted = self.expected
        assert (shown.provider, shown.model, shown.requested_effort) == (provider, model, effort)
        assert (shown.effort_support, shown.permitted_efforts) == (support, permitted)
        wanted = effort if effort in permitted else "default"
        assert shown.effective_effort == (wanted if support == "supported" else None)
        assert shown.revision == self.revision

    # what happens

    def _attach(self, handle: Handle) -> None:
        old, self.handle = self.handle, handle
        if old is not None:
            old.release()
        self.selector.current, notice = self.selector.attach(handle.preferences)
        saved = self.saved.get(handle.session_id)
        if saved is None:
            assert notice is None
            self.moved(self.chosen(*STARTUP, STARTUP_EFFORT))
            return
        provider, model, effort = saved
        self.moved(self.chosen(provider, model, effort))
        fits = effort in self.controls(provider, model)[1]
        assert notice == (None if fits else "saved_selection_notice")

    @rule()
    def create(self) -> None:
        self._attach(self.store.create())

    @precondition(lambda self: self.stored)
    @rule(data=st.data())
    def reopen(self, data: st.DataObject) -> None:
        self._attach(self.store.open(data.draw(st.sampled_from(sorted(self.stored)))))

    @rule(shape=st.sampled_from(sorted(SHAPES)))
    def rewrite_the_cache(self, shape: str) -> None:
        self.shape = shape
        self.home.cache("bench", {**BENCH, "chat": SHAPES[shape][0]})

    @rule()
    def read_the_catalog(self) -> None:
        page = self.catalog.page(None, None, 100, self.selector.current.provider)
        self.guard = page.revision, self.shape
        self._observed(self.selector.observe() is not None)

    def _observed(self, changed: bool) -> None:
        now = self.chosen(*self.expected[:3])
        assert changed == (now != self.expected)
        if changed:
            self.moved(now)

    @precondition(lambda self: self.handle is not None)
    @rule()
    def take_a_turn(self) -> None:
        assert self.handle is not None
        stale = self.selector.observe() is not None
        self._observed(stale)
        if not stale:
            self.handle.append([user("hello")])
            self.handle.refresh()
            self.stored.add(self.handle.session_id)

    @precondition(lambda self: self.handle is not None)
    @rule(
        pair=st.sampled_from([*PAIRS[:1] * 5, *PAIRS[1:2] * 2, *PAIRS[2:]]),
        effort=st.sampled_from([None, None, "default", *EFFORTS]),
        fresh=st.sampled_from([True, True, True, False]),
        failing_step=st.sampled_from([None] * 6 + [Step.SESSION_WRITE, Step.SESSION_SYNC]),
    )
    def select(self, pair: tuple[str, str], effort: Effort | None, fresh: bool, failing_step: Step | None) -> None:
        assert self.handle is not None
        if fresh:
            self.read_the_catalog()
        handle, before = self.handle, self._file()
        refusal = self._refusal(pair, effort) or ("persistence_failed" if failing_step else None)
        with failing([failing_step] if failing_step else [], OSError("no space")):
            done = self._change(self._asked(pair, effort, handle.session_id))
        if isinstance(done, StoreError):
            assert done.code == refusal
            assert self._file() == before
            if refusal == "stale_catalog":
                self.guard = None
            return
        assert refusal is None
        wanted = self.expected[2] if effort is None else effort
        self.saved[handle.session_id] = (*pair, wanted)
        self.stored.add(handle.session_id)
        self.moved(self.chosen(*pair, wanted))
        assert done.result.selection == self.selector.current.shown()
        assert done.result.history_revision == handle.revision
        assert self.home.saved(handle.session_id)[-1]["model"] == pair[1]
        assert len(self._file()) > len(before)

    def _change(self, asked: SelectionSetParams) -> Changed | StoreError:
        assert self.handle is not None
        try:
            return self.selector.change(asked, self.handle, lambda: None)
        except StoreError as fault:
            return fault

    def _file(self) -> bytes:
        assert self.handle is not None
        path = self.home.session(self.handle.session_id)
        return path.read_bytes() if path.exists() else b""

    def _asked(self, pair: tuple[str, str], effort: Effort | None, session_id: str) -> SelectionSetParams:
        request: Any = KeepEffort() if effort is None else DefaultEffort()
        if effort not in (None, "default"):
            request = SetEffort(value=cast(Any, effort))
        return SelectionSetParams(
            session_id=session_id,
            selection_revision=self.revision,
            catalog_revision=self.guard[0] if self.guard else "never",
            provider=pair[0],
            model=pair[1],
            effort=request,
        )

    def _refusal(self, pair: tuple[str, str], effort: Effort | None) -> str | None:
        """The order of D30."""
        if self.guard is None or self.guard[1] != self.shape:
            return "stale_catalog"
        if pair[1] in ("hidden", "gone"):
            return "selection_invalid"
        if pair[0] == "gated":
            return "provider_unavailable"
        wanted = self.expected[2] if effort is None else effort
        return None if wanted in self.controls(*pair)[1] else "effort_unsupported"


TestSelections = Selections.TestCase
TestSelections.settings = settings(max_examples=examples(60, 1_000), stateful_step_count=30)
