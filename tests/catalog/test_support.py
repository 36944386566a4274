"""Permitted efforts, row by row of CACHE-07, typed by hand, and what requests come to (CACHE-08)."""

from typing import Any

import pytest

from localagent.catalog.document import Entry
from localagent.catalog.support import UNREADABLE, Capability, capability
from localagent.protocol.results import Effort
from localagent.settings.snapshot import Provider

from .kit import BUILT_IN, custom

CODEX, ANTHROPIC, CLAUDE = BUILT_IN
PLAIN = custom()
GPT = custom(reasoning_protocol="gpt-like")
ANT = custom(reasoning_protocol="anthropic-like")

G = "default low medium high"
ROWS: list[tuple[Provider, str, dict[str, Any] | None, str, str]] = [
    (PLAIN, "m", None, "unknown", "default"),
    (PLAIN, "m", {}, "unknown", "default"),
    (PLAIN, "m", {"supports_reasoning": True}, "supported", G),
    (PLAIN, "m", {"supports_reasoning": False}, "unsupported", "default"),
    (PLAIN, "m", {"supports_reasoning_effort": True}, "supported", G),
    (PLAIN, "m", {"supports_reasoning": False, "supports_reasoning_effort": True}, "unsupported", "default"),
    (PLAIN, "m", {"reasoning_efforts": []}, "unknown", "default"),
    (PLAIN, "m", {"reasoning_efforts": ["max", "low", "low"]}, "supported", "default low max"),
    (PLAIN, "m", {"reasoning_efforts": ["x_high", "xhigh"]}, "supported", "default xhigh"),
    (PLAIN, "m", {"reasoning_efforts": ["default"]}, "unsupported", "default"),
    (PLAIN, "m", {"reasoning_efforts": ["low"], "supports_reasoning": False}, "supported", "default low"),
    (PLAIN, "gpt-5.5", {}, "unknown", "default"),
    (PLAIN, "zai/glm-5.2", {}, "supported", "default high max"),
    (PLAIN, "zai/glm-5.2", {"supports_reasoning": False}, "supported", "default high max"),
    (PLAIN, "glm-5.2", {}, "unknown", "default"),
    (custom("zai"), "glm-5.2", None, "supported", "default high max"),
    (GPT, "m", {}, "unknown", "default"),
    (GPT, "m", {"supports_reasoning": True}, "supported", G),
    (GPT, "m", {"supports_reasoning": False}, "unsupported", "default"),
    (GPT, "zai/glm-5.2", {}, "unknown", "default"),
    (GPT, "m", {"reasoning_efforts": ["high"]}, "supported", "default high"),
    (ANT, "m", {"supports_reasoning": True}, "supported", "default high"),
    (ANT, "m", {"reasoning_efforts": ["low", "medium", "x_high"]}, "unsupported", "default"),
    (ANT, "m", {"reasoning_efforts": ["low", "max", "high"]}, "supported", "default high max"),
    (ANT, "zai/glm-5.2", {}, "supported", "default high max"),
    (CODEX, "gpt-5.5", {}, "supported", G + " xhigh"),
    (CODEX, "gpt-5.5", {"supports_reasoning": False}, "unsupported", "default"),
    (CODEX, "gpt-5.4", {}, "supported", G),
    (CODEX, "o3", None, "supported", G),
    (CODEX, "codex-mini", {}, "unknown", "default"),
    (CODEX, "codex-mini", {"supports_reasoning": True}, "supported", G),
    (ANTHROPIC, "claude-x", {"supports_reasoning": True}, "supported", G),
    (CLAUDE, "claude-x", None, "unknown", "default"),
]


@pytest.mark.parametrize(("provider", "model", "members", "support", "permitted"), ROWS)
def test_the_table(
    provider: Provider, model: str, members: dict[str, Any] | None, support: str, permitted: str
) -> None:
    entry = (
        None if members is None else Entry(provider=provider.id, model=model, id=f"{provider.id}/{model}", **members)
    )
    assert capability(provider, model, entry) == (support, tuple(permitted.split()))


@pytest.mark.parametrize(
    ("known", "requested", "effective"),
    [
        (Capability("supported", ("default", "low")), "low", "low"),
        (Capability("supported", ("default", "low")), "high", "default"),
        (Capability("supported", ("default", "low")), "default", "default"),
        (Capability("unsupported", ("default",)), "high", None),
        (Capability("unsupported", ("default",)), "default", None),
        (UNREADABLE, "default", None),
    ],
)
def test_what_a_request_comes_to(known: Capability, requested: Effort, effective: Effort | None) -> None:
    assert known.effective(requested) == effective
    assert known.permits("default")
