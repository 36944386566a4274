"""What a call is called (HISTP-09)."""

from typing import Any

import pytest

from tests.sessions.events import (
    call,
    project,
)


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("bash", {"command": "ls", "cmd": "no"}, "bash ls"),
        ("bash", {"command": 1, "cmd": "ls\nlt"}, "bash ls\nlt"),
        ("shell", {"cmd": "ls"}, "shell ls"),
        ("write", {"path": "a.txt", "content": "never"}, "write a.txt"),
        ("hash_edit", {"path": "a.txt"}, "hash_edit a.txt"),
        ("list_files", {"path": "."}, "list_files ."),
        ("read", {"path": "a\n\tb"}, "read ab"),
        ("read", {"paths": ["a"]}, "read 1 file"),
        ("read", {"path": None, "paths": []}, "read 0 files"),
        ("view_image", {"paths": ["a", "b"]}, "view_image 2 files"),
        ("grep", {"patterns": ["a", 1, "b"], "pattern": "c"}, "grep a, b"),
        ("ffgrep", {"patterns": [1], "pattern": "c"}, "ffgrep c"),
        ("grep", {"patterns": "a"}, "grep"),
        ("ast_grep", {"pattern": "$A"}, "ast_grep $A"),
        ("find", {"query": "q"}, "find q"),
        ("fffind", {"query": "q"}, "fffind q"),
        ("web", {"query": "q"}, "web q"),
        ("subagents", {"tasks": [{}]}, "subagents \u00b7 1 task"),
        ("subagents", {"tasks": [{}, {}]}, "subagents \u00b7 2 tasks"),
        ("subagents", {"tasks": None}, "subagents"),
        ("bash_job", {"action": "stop"}, "bash_job stop"),
        ("magi_control", {"action": "compact"}, "magi_control compact"),
        ("magi_control", {"action": "context_usage"}, "magi_control context_usage"),
        ("magi_control", {"action": "other"}, "magi_control"),
        ("mcp__notes__search", {"query": "never"}, "mcp__notes__search"),
        ("client__bell", {"path": "never"}, "client__bell"),
        ("code_mode", {"code": "never"}, "code_mode"),
        ("bash", None, "bash"),
        ("bash", ["ls"], "bash"),
        ("bash", {"command": ""}, "bash"),
    ],
)
def test_labels(name: str, arguments: Any, text: str) -> None:
    assert project(call(name, arguments))[0][0] == ("activity", f"{text}: started", True)
