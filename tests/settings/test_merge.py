"""Project over global (SET-03), against a model that thinks in leaves instead of objects."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.settings.merge import merged, without_global_only

from .kit import Place, nested

Leaves = dict[tuple[str, ...], Any]

objects = st.recursive(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 3) | st.none() | st.just([1]) | st.just("s"), max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner | st.integers(0, 3), max_size=3),
    max_leaves=8,
)


def leaves(value: dict[str, Any], path: tuple[str, ...] = ()) -> Leaves:
    """Everything that is no object with members, by its path."""
    found: Leaves = {}
    for key, each in value.items():
        if isinstance(each, dict) and each:
            found |= leaves(each, (*path, key))
        else:
            found[*path, key] = each
    return found


def modelled(base: dict[str, Any], over: dict[str, Any]) -> Leaves:
    """A leaf of ``over`` replaces what is at and below it, and what is on the way to it; but an empty object only
    says that there is an object."""
    result = leaves(base)
    for path, value in leaves(over).items():
        below = [each for each in result if each[: len(path)] == path and (len(each) > len(path) or result[each] == {})]
        if value == {} and below:
            continue
        above = [each for each in result if path[: len(each)] == each]
        for each in [each for each in result if each[: len(path)] == path] + above:
            result.pop(each, None)
        result[path] = value
    return result


@given(objects, objects)
def test_merging_is_what_the_model_says(base: dict[str, Any], over: dict[str, Any]) -> None:
    assert leaves(merged(base, over)) == modelled(base, over)


@given(objects, objects, objects)
def test_merging_has_a_neutral_element_and_does_not_mind_the_grouping_of_objects(
    a: dict[str, Any], b: dict[str, Any], c: dict[str, Any]
) -> None:
    assert merged(a, {}) == merged({}, a) == merged(a, a) == a
    before = repr((a, b))
    merged(a, b)
    assert repr((a, b)) == before
    if all(not isinstance(each, dict) for each in (*a.values(), *b.values(), *c.values())):
        assert merged(merged(a, b), c) == merged(a, merged(b, c))


IGNORED = ("capabilities.mcp_approvals", "agent.fast", "interface.appearance", "interface.tui.panel_layout")


@pytest.mark.parametrize("path", [*IGNORED, "localagent"])
def test_what_only_the_global_file_may_set(path: str) -> None:
    beside: dict[str, Any] = {"agent": {"model": {"model": "m"}}, "interface": {"other": 1, "tui": {"other": 2}}}
    for value in (1, None, {"a": 1}):
        project = merged(nested(path, value), beside)
        before = repr(project)
        left = leaves(without_global_only(project))
        assert {key: each for key, each in left.items() if each != {}} == leaves(beside)
        assert repr(project) == before
    for path_above in ("agent", "capabilities", "interface", "interface.tui"):
        assert without_global_only(nested(path_above, 3)) == nested(path_above, 3)


def test_a_project_sets_what_it_may(place: Place) -> None:
    place.settings(
        {
            "agent": {"model": {"thinking_level": "low"}, "subagents": {"disabled": ["a", "b"]}},
            "capabilities": {"mcp_approvals": {"/x": {}}},
        }
    )
    place.project(
        {
            "agent": {"model": {"thinking_level": "high"}, "subagents": {"disabled": ["c"]}, "fast": "?"},
            "capabilities": {"mcp_approvals": 3, "tools": {"disabled": ["bash"]}},
            "interface": {"tui": {"panel_layout": None}},
            "localagent": {"runner": "no such runner"},
        }
    )
    snapshot = place.admit()
    assert snapshot.choice.effort == "high"
    assert snapshot.settings.agent.subagents.disabled == ("c",)
    assert snapshot.settings.capabilities.mcp_approvals == {"/x": {}}
    assert snapshot.settings.capabilities.tools.disabled == ("bash",)


def test_a_project_cannot_rescue_the_global_file_and_can_spoil_it(place: Place) -> None:
    path = place.settings({"sessions": {"retention_days": "30"}})
    place.project({"sessions": {"retention_days": 30}})
    (fault,) = place.refused().faults
    assert (fault.file, fault.key) == (str(path), "sessions.retention_days")
    place.settings({"agent": {"compaction": {"provider": "p", "model": "m"}}})
    path = place.project({"sessions": {"retention_days": None}, "agent": None})
    assert [(fault.file, fault.key) for fault in place.refused().faults] == [
        (str(path), "agent"),
        (str(path), "sessions.retention_days"),
    ]


def test_files_are_read_once(place: Place) -> None:
    snapshot = place.admit()
    place.settings("not json")
    assert snapshot.settings.sessions.retention_days == 30
    place.refused()
