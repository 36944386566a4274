"""The fixed words of the protocol: its name and version, its methods, its capabilities (ENV-06, ENV-07, NEG-01)."""

from collections.abc import Collection
from typing import Final

PROTOCOL: Final = "magi-code.local-agent"
VERSION: Final = 1

CAPABILITIES: Final = (
    "initialize",
    "status",
    "shutdown",
    "session.create",
    "session.open",
    "session.list",
    "session.discover",
    "model.catalog",
    "model.catalog.status",
    "model.refresh",
    "operation.cancel",
    "selection.set",
    "history.page",
    "turn.start",
    "turn.cancel",
    "approval.answer",
)
"""The sixteen base names, each a method and a capability, in the order of NEG-01 (BASE-OP-78)."""

NEGOTIATED: Final = frozenset({"session.discover", "model.catalog.status", "model.refresh", "operation.cancel"})
"""The four methods that work only when initialization required them by name (NEG-04, EXT-GEN-02)."""

TOOL_CARDS: Final = "tool.cards"
CLIENT_TOOLS: Final = "client.tools"
EXTENSIONS: Final = (TOOL_CARDS, CLIENT_TOOLS)
"""Capabilities that are advertised only when required, in the order they take behind the base names (CT-OP-04)."""

CLIENT_TOOL_RESULT: Final = "client.tool.result"
"""The one method that is not a capability; it exists only with ``client.tools`` (CT-108, CT-OP-38)."""

SUPPORTED: Final = frozenset(CAPABILITIES) | frozenset(EXTENSIONS)
"""Every name that ``required_capabilities`` may hold; any other is ``unsupported_capability`` (NEG-14)."""


def advertised(required: Collection[str]) -> tuple[str, ...]:
    """Return ``capabilities`` of the initialization result: 16, 17 or 18 names (NEG-02, CT-21, TC-20)."""
    return CAPABILITIES + tuple(name for name in EXTENSIONS if name in required)
