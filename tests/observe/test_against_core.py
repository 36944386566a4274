"""The observer beside the core's own random walk: what the core says has rows, however wildly it is driven.

The walk's workers say what they like, so contents are not judged here (findings of machine ``frame``), nor what hangs
on revisions, which they give to the core and to the frames unlike, nor what no backend could mend: a runner that
completes without its reconciliations, a worker that ends with a code of another method. Everything else must be
explained, the exit included, with nothing known but the frames.
"""

import json
from typing import Any
from unittest.mock import patch

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from localagent.observe import decode
from statemachines.observe import Explanation, Finding, Line, Observer
from tests.core import test_campaign
from tests.kit import core_driver, profiles
from tests.kit.transcript_steps import Ended, NextLine, Sent


def _the_core_s_own(finding: Finding) -> bool:
    return finding.machine != "frame" and finding.clause != "EVT-47" and not any(each in finding.what for each in _WALK)


_WALK = (
    "no outcome",
    "is no answer to",
    "busy, although",
    "cancelled, although",
    "revision",
    "catalog",
    "selection.set",
    "history.page",
)
"""In findings that are the walk's own doing, not the core's."""


class Watched(core_driver.Driver):
    """A driver that shows every line and frame to an observer, as they cross."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.observer = Observer()
        self.rest = b""
        self.deaf = False
        """An oversize frame came; nothing behind it is a line."""

    def _record(self, *given: Any) -> None:
        super()._record(*given)
        step = self.steps[-1]
        if isinstance(step.given, Sent):
            self.rest += step.given.data
        if isinstance(step.given, Sent | NextLine) and not self.deaf:
            self._line()
        if isinstance(step.given, Ended):
            self._judge(self.observer.client_closed(inside_frame=bool(self.rest) and not self.deaf))
        for frame in step.frames:
            self._judge(self.observer.backend(json.loads(frame)))

    def _line(self) -> None:
        if b"\n" in self.rest[:65_537]:
            line, _, self.rest = self.rest.partition(b"\n")
            value, told = decode(line.decode(errors="surrogateescape"))
            self._judge(self.observer.client(value, told))
        elif len(self.rest) > 65_536:
            self.deaf = True
            self._judge(self.observer.client(None, Line(65_537, broken=True)))

    def finish(self) -> int:
        status = super().finish()
        self._judge(self.observer.exited(status))
        self._judge(self.observer.finish())
        return status

    def _judge(self, told: Explanation) -> None:
        assert [finding for finding in told.findings if _the_core_s_own(finding)] == []


def test_whatever_the_core_says_is_explained() -> None:
    with patch.object(test_campaign, "Driver", Watched):
        run_state_machine_as_test(
            test_campaign.Campaign,
            settings=settings(max_examples=profiles.examples(40, 2_000), stateful_step_count=40),
        )
