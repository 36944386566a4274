"""Which efforts a model permits, and what becomes of a requested one (CACHE-07, CACHE-08, SEL-12 to SEL-19)."""

from typing import Final, NamedTuple, get_args

from localagent.protocol.results import Effort, EffortSupport
from localagent.settings.snapshot import Provider

from .document import Entry

_ORDER: Final[tuple[Effort, ...]] = get_args(Effort)
_NONE: Final[tuple[Effort, ...]] = ("default",)
_GENERAL: Final[tuple[Effort, ...]] = ("default", "low", "medium", "high")
_GENERAL_XHIGH: Final[tuple[Effort, ...]] = (*_GENERAL, "xhigh")
_GLM: Final[tuple[Effort, ...]] = ("default", "high", "max")
_ANTHROPIC_LIKE: Final = frozenset(_GLM)


class Capability(NamedTuple):
    """The effort controls of one model: ``permitted`` in wire order, always with ``default``."""

    support: EffortSupport
    permitted: tuple[Effort, ...]

    def permits(self, effort: Effort) -> bool:
        """Tell whether ``effort`` may be requested deliberately."""
        return effort in self.permitted

    def effective(self, requested: Effort) -> Effort | None:
        """What a request comes to: itself or ``default`` where controls are supported, else nothing (CACHE-08)."""
        if self.support != "supported":
            return None
        return requested if requested in self.permitted else "default"


UNREADABLE: Final = Capability("unknown", _NONE)
"""What is known of a model whose cache cannot be read safely (CACHE-08)."""


def capability(provider: Provider, model: str, entry: Entry | None) -> Capability:
    """The controls of ``model``, by its cached ``entry`` or, where the cache has none, without any (CACHE-08)."""
    permitted = _permitted(provider, model, entry)
    if len(permitted) > 1:
        return Capability("supported", permitted)
    told = entry is not None and (entry.reasons is not None or bool(entry.reasoning_efforts))
    return Capability("unsupported" if told else "unknown", permitted)


def _permitted(provider: Provider, model: str, entry: Entry | None) -> tuple[Effort, ...]:
    """The table of CACHE-07, row by row."""
    reasons = None if entry is None else entry.reasons
    if entry is not None and entry.reasoning_efforts:
        listed = set(entry.efforts)
        return _kept(provider, tuple(each for each in _ORDER if each == "default" or each in listed))
    if provider.reasoning_protocol == "gpt-like":
        return _GENERAL if reasons else _NONE
    if provider.id == "openai-codex":
        if reasons is False:
            return _NONE
        if model == "gpt-5.5":
            return _GENERAL_XHIGH
        if model.startswith(("gpt-5", "o")):
            return _GENERAL
    if (provider.id, model) == ("zai", "glm-5.2") or model == "zai/glm-5.2":
        return _kept(provider, _GLM)
    return _kept(provider, _GENERAL if reasons else _NONE)


def _kept(provider: Provider, efforts: tuple[Effort, ...]) -> tuple[Effort, ...]:
    """An ``anthropic-like`` endpoint knows three of them."""
    if provider.reasoning_protocol != "anthropic-like":
        return efforts
    return tuple(each for each in efforts if each in _ANTHROPIC_LIKE)
