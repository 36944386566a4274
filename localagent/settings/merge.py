"""How project settings go over global ones (SET-03). Pure."""

from typing import Any, Final

GLOBAL_ONLY: Final = (
    ("capabilities", "mcp_approvals"),
    ("agent", "fast"),
    ("interface", "appearance"),
    ("interface", "tui", "panel_layout"),
    ("localagent",),  # ours: which runner plays which script is not for a checked-out project to say
)
"""What a project file says there is ignored."""


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Merge deeply: where both have an object its members are merged, any other value of ``over`` replaces."""
    result = dict(base)
    for key, value in over.items():
        below = base.get(key)
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def without_global_only(project: dict[str, Any]) -> dict[str, Any]:
    """A project file's settings without the members that only the global file may set. The argument is left alone."""
    for path in GLOBAL_ONLY:
        project = _without(project, path)
    return project


def _without(value: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    first, *rest = path
    if first not in value:
        return value
    if not rest:
        return {key: each for key, each in value.items() if key != first}
    below = value[first]
    return {**value, first: _without(below, tuple(rest))} if isinstance(below, dict) else value
