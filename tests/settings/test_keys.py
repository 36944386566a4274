"""Each honoured key: its default, values it takes, values it refuses (SET-04, SET-06). Typed by hand from the table."""

from typing import Any

import pytest

from .kit import Place, at, nested

BOOLS: tuple[Any, ...] = (True, False)
NOT_BOOL: tuple[Any, ...] = (None, 0, 1, "true", [], {})
NOT_STRING: tuple[Any, ...] = (1, True, [], {})
NOT_OBJECT: tuple[Any, ...] = (None, 1, True, "x", [])
NOT_NAMES: tuple[Any, ...] = (None, 1, "a", {}, [1], [None], [[]])
NOT_COUNT: tuple[Any, ...] = (None, -1, 1.0, 1.5, "1", True, [], {}, 2**63)

GROUPS = (
    *("agent", "agent.model", "agent.compaction", "agent.compaction.auto", "agent.subagents"),
    *("agent.subagents.execution", "providers", "providers.catalog", "providers.custom", "providers.anthropic"),
    *("providers.streaming", "capabilities", "capabilities.tools", "capabilities.mcp_approvals", "knowledge"),
    *("knowledge.instructions", "knowledge.skills", "automation", "automation.hooks", "sessions", "sessions.titles"),
    *("internal_tooling", "internal_tooling.jev", "internal_tooling.jev.bash_protection", "localagent"),
    *("capabilities.tools.code_mode", "capabilities.tools.code_mode.limits", "capabilities.tools.view_image"),
)
PATH_TOOLS = ("read", "hash_edit", "write", "grep", "find", "list_files", "ast_grep", "bash")
LIMITS = {
    "max_source_bytes": 65536,
    "max_inner_calls": 200,
    "max_runtime_ms": 60000,
    "max_memory_bytes": 33554432,
    "max_inner_result_bytes": 1048576,
    "max_total_result_bytes": 8388608,
    "max_return_bytes": 262144,
}

EFFORTS = ("default", "low", "medium", "high", "xhigh", "x_high", "max")
NAMES: tuple[Any, ...] = ([], ["a"], ["a", "a"])

KEYS: dict[str, tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = {
    "agent.model.provider": (None, (None, "scripted"), NOT_STRING),
    "agent.model.model": (None, (None, "demo"), NOT_STRING),
    "agent.model.thinking_level": ("default", (None, *EFFORTS), (*NOT_STRING, "High", "none", "")),
    "agent.primary_agent": (None, (None,), (*NOT_STRING, "", "../x", "a b", "a\n", "é")),
    "agent.context": (None, (None, {}), (1, True, "x", [])),
    "agent.compaction.auto.enabled": (True, BOOLS, NOT_BOOL),
    "agent.compaction.auto.threshold_percent": (80, (1, 100), (0, 101, 50.0, "80", True)),
    "agent.compaction.auto.threshold_tokens": (None, (None, 1, 10**9), (0, -1, 1.5, "1", True)),
    "agent.compaction.auto.max_compactions_per_run": (4, (0, 9), NOT_COUNT),
    "agent.subagents.disabled": ((), NAMES, NOT_NAMES),
    "agent.subagents.execution.absolute_paths": (True, BOOLS, NOT_BOOL),
    "agent.subagents.execution.max_depth": (2, (0, 1, 4, 99), NOT_COUNT),
    "agent.subagents.schema_validation_max_retries": (2, (0, 5), (*NOT_COUNT, 6)),
    "providers.catalog.enabled": ((), NAMES, NOT_NAMES),
    "providers.anthropic.cache_ttl": ("1h", ("5m", "1h", None), (*NOT_STRING, "2h", "")),
    "providers.streaming.semantic_progress_timeout_seconds": (60, (1, 600), (*NOT_COUNT, 0, 601)),
    "providers.streaming.subagent_semantic_progress_timeout_seconds": (120, (1, 600), (*NOT_COUNT, 0, 601)),
    "capabilities.tools.disabled": ((), (*NAMES, ["no such tool"]), (*NOT_NAMES, ["code_mode"], ["a", "code_mode"])),
    **{f"capabilities.tools.{tool}.absolute_paths": (True, BOOLS, NOT_BOOL) for tool in PATH_TOOLS},
    "capabilities.tools.bash.shell_expansion": (True, BOOLS, NOT_BOOL),
    "capabilities.tools.view_image.max_image_bytes": (5 * 1024 * 1024, (1, 10**9), NOT_COUNT),
    "capabilities.tools.view_image.vision_model": (
        None,
        (None, {"provider": "p", "model": "m"}),
        (1, "p/m", [], {}, {"provider": "p"}, {"provider": "p", "model": None}),
    ),
    "capabilities.tools.code_mode.enabled": (True, BOOLS, NOT_BOOL),
    "capabilities.tools.code_mode.compact_direct_tools": (False, BOOLS, NOT_BOOL),
    "capabilities.tools.code_mode.nudges_enabled": (True, BOOLS, NOT_BOOL),
    "capabilities.tools.code_mode.disabled": ((), NAMES, NOT_NAMES),
    **{f"capabilities.tools.code_mode.limits.{name}": (each, (1, each), NOT_COUNT) for name, each in LIMITS.items()},
    "knowledge.instructions.additional_markdown_paths": ((), ([],), (*NOT_NAMES, ["a.md"], ["/a.txt"], ["~/a.md"])),
    "knowledge.skills.additional_paths": ((), ([], ["/nowhere"]), (*NOT_NAMES, ["skills"], ["~/skills"])),
    "knowledge.skills.disabled": ((), NAMES, NOT_NAMES),
    "automation.hooks.enabled": (False, BOOLS, NOT_BOOL),
    "automation.hooks.payload": ("redacted", ("redacted", "full"), (*NOT_STRING, None, "none")),
    "automation.hooks.failure_policy": ("warn", ("ignore", "warn", "block", "fail"), (*NOT_STRING, None, "stop")),
    "automation.hooks.timeout_seconds": (5, (1, 60), (*NOT_COUNT, 0, 61)),
    "automation.hooks.stdout_max_bytes": (8192, (1, 65536), (*NOT_COUNT, 0, 65537)),
    "automation.hooks.stderr_max_bytes": (8192, (1, 65536), (*NOT_COUNT, 0, 65537)),
    "sessions.retention_days": (30, (0, 1, 3650), NOT_COUNT),
    "sessions.titles.enabled": (False, BOOLS, NOT_BOOL),
    "internal_tooling.jev.enabled": (False, (False,), (*NOT_BOOL, True)),
    "internal_tooling.jev.bash_protection.enabled": (False, BOOLS, NOT_BOOL),
    "localagent.runner": ("scripted", ("scripted",), (*NOT_STRING, None, "other")),
    "localagent.script": (None, (None,), (*NOT_STRING, "relative.json", "")),
}


def test_an_empty_file_gives_every_default(place: Place) -> None:
    settings = place.admit().settings
    assert {key: at(settings, key) for key in KEYS} == {key: default for key, (default, _, _) in KEYS.items()}


@pytest.mark.parametrize("key", KEYS)
def test_what_a_key_takes_and_what_it_refuses(place: Place, key: str) -> None:
    _, good, bad = KEYS[key]
    for value in good:
        place.settings(nested(key, value))
        wanted = tuple(value) if isinstance(value, list) else value
        if not isinstance(value, dict):
            assert at(place.admit().settings, key) == wanted
    for value in bad:
        path = place.settings(nested(key, value))
        (fault, *_) = place.refused().faults
        assert fault.file == str(path)
        assert fault.key.startswith(key)
        assert fault.expected


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_is_an_object(place: Place, group: str) -> None:
    for value in NOT_OBJECT:
        place.settings(nested(group, value))
        assert place.keys() == [group]
    place.settings(nested(group, {"unknown member": [None]}) if "code_mode" not in group else nested(group, {}))
    if group not in ("providers.custom",):
        place.admit()


def test_unknown_keys_are_ignored_but_in_code_mode(place: Place) -> None:
    place.settings({"$schema": 1, "interface": 3, "agent": {"fast": "?", "side": 1}, "sessions": {"psm": 0}})
    place.admit()
    for path in ("capabilities.tools.code_mode", "capabilities.tools.code_mode.limits"):
        place.settings(nested(path, {"other": 1}))
        assert place.keys() == [f"{path}.other"]


@pytest.mark.parametrize("version", [1, 3, 0, "2", 2.0, None, True, [], 2**70])
def test_the_schema_version_is_the_integer_two(place: Place, version: object) -> None:
    place.settings({"schema_version": version})
    assert place.keys() == ["schema_version"]
    place.settings({"schema_version": 2})
    path = place.project({"schema_version": version})  # each file (SET-02)
    (fault,) = place.refused().faults
    assert (fault.file, fault.key) == (str(path), "schema_version")


def test_every_fault_of_a_file_is_told(place: Place) -> None:
    place.settings({"agent": {"model": {"provider": 1, "model": 2}}, "sessions": [], "knowledge": None})
    assert place.keys() == ["agent.model.provider", "agent.model.model", "knowledge", "sessions"]


@pytest.mark.parametrize(
    ("context", "good"),
    [
        ({"max_tokens": 1, "reserve_tokens": 0, "keep_recent_tokens": 5, "enabled": False}, True),
        ({"model_overrides": {"a/b": {"max_tokens": 5}}}, True),
        ({"model_overrides": {"a/b": {}}}, False),
        ({"model_overrides": {"a/b": {"max_tokens": None}}}, False),
        ({"model_overrides": []}, False),
        ({"max_tokens": "5"}, False),
        ({"enabled": None}, False),
    ],
)
def test_context(place: Place, context: object, good: bool) -> None:
    place.settings(nested("agent.context", context))
    if good:
        assert place.admit().settings.agent.context is not None
    else:
        place.refused()


@pytest.mark.parametrize(
    ("compaction", "good"),
    [
        ({"provider": "p", "model": "m"}, True),
        ({"provider": "p"}, False),
        ({"model": "m"}, False),
        ({"auto": {"threshold_percent": None}}, False),
        ({"auto": {"threshold_percent": None, "enabled": False}}, True),
        ({"auto": {"threshold_percent": None, "threshold_tokens": 1}}, True),
    ],
)
def test_compaction(place: Place, compaction: object, good: bool) -> None:
    place.settings(nested("agent.compaction", compaction))
    if good:
        place.admit()
    else:
        assert place.keys()[0].startswith("agent.compaction")


def test_compact_direct_tools_needs_code_mode(place: Place) -> None:
    place.settings(nested("capabilities.tools.code_mode", {"enabled": False, "compact_direct_tools": True}))
    assert place.keys() == ["capabilities.tools.code_mode.compact_direct_tools"]


def test_jev_needs_its_key_and_makes_bash_ask(place: Place) -> None:
    jev = {"enabled": True, "bash_protection": {"enabled": True}}
    place.settings(nested("internal_tooling.jev", jev))
    assert place.keys() == place.keys(TYPESAFE_API_KEY="") == ["internal_tooling.jev.enabled"]
    assert place.admit(TYPESAFE_API_KEY="k").asks_for_bash
    place.settings(nested("internal_tooling.jev", {"bash_protection": {"enabled": True}}))
    assert not place.admit().asks_for_bash


@pytest.mark.parametrize(
    ("hooks", "key"),
    [
        ({"before_tool": [{"command": "true", "failure_policy": "block"}]}, None),
        ({"after_tool": [{"command": "true", "failure_policy": "fail", "timeout_seconds": 60, "label": "x"}]}, None),
        ({"failure_policy": "block", "before_tool": [{"command": "true"}]}, None),
        ({"failure_policy": "block", "after_tool": [{"command": "true"}]}, "after_tool[0].failure_policy"),
        ({"after_reasoning": [{"command": "true", "failure_policy": "block"}]}, "after_reasoning[0].failure_policy"),
        ({"after_assistant": [{"command": " "}]}, "after_assistant[0].command"),
        ({"before_tool": [{}]}, "before_tool[0].command"),
        ({"before_tool": [{"command": "x", "timeout_seconds": 61}]}, "before_tool[0].timeout_seconds"),
        ({"before_tool": {}}, "before_tool"),
        ({"before_tool": [{"command": "x", "include_tools": "bash"}]}, "before_tool[0].include_tools"),
    ],
)
def test_hooks(place: Place, hooks: object, key: str | None) -> None:
    place.settings(nested("automation.hooks", hooks))
    if key is None:
        place.admit()
    else:
        assert place.keys() == [f"automation.hooks.{key}"]
