"""What rules and facts look at: a frame, the request it answers, and what was taken down before."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from statemachines.step import World
from statemachines.witness.ledger import SNAPSHOT_OF, Asked, Data, Ledger, RunMemory, Segment, Snapshot, entries_of

NOBODY: Final = Asked(0)
"""Stands where no request is meant."""


@dataclass(frozen=True, slots=True)
class View:
    """What a rule or a fact may look at."""

    ledger: Ledger
    world: World
    asked: Asked = NOBODY
    """The request that the frame answers."""
    data: Data = field(default_factory=dict)
    """What the frame carries: the whole frame, a result, an event's data."""
    startup: Asked | None = None
    """The ``initialize`` that was admitted."""
    work: Asked | None = None
    """The request the session worker is busy with."""

    @property
    def params(self) -> Data:
        """The params of the request."""
        return self.asked.params

    @property
    def run(self) -> RunMemory:
        """The run that began last."""
        return self.ledger.run

    @property
    def negotiated(self) -> frozenset[str]:
        """The names that the admitted initialization required."""
        return frozenset(each for each in self._required("required_capabilities") if isinstance(each, str))

    @property
    def tools(self) -> dict[str, Data]:
        """The client tools that were registered, by name."""
        given = (each for each in self._required("client_tools") if isinstance(each, dict))
        return {tool["name"]: tool for tool in given if isinstance(tool.get("name"), str)}

    def _required(self, key: str) -> list[object]:
        found = self.startup.params.get(key) if self.startup else None
        return found if isinstance(found, list) else []

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that the request pages, as it was before the answer."""
        return self.ledger.snapshot(SNAPSHOT_OF[self.asked.method])

    @property
    def joints(self) -> list[tuple[Data | None, Data]]:
        """Each entry of the page with the one before it; None before the first of all."""
        pages_on = self.asked.continues or self.asked.method == "history.page"
        before = self.snapshot.cursors.get(self.asked.name("cursor")) if pages_on else None
        chain = [before, *entries_of(self.data)]
        return [(left, right) for left, right in pairwise(chain) if right is not None]

    @property
    def segment(self) -> Segment:
        """The segment that the event names."""
        return self.run.segments.get(self.data["message_id"], Segment())

    @property
    def card(self) -> Data:
        """The card that the event carries."""
        card: Data = self.data["card"]
        return card

    @property
    def shown(self) -> Data | None:
        """The snapshot of that card that was shown last."""
        return self.run.cards.get(self.data["activity_id"])
