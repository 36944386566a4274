"""What a step of a case may say: its kinds, their keys, what each key takes. Pure.

The loader asks this table alone, so that a mistyped key or value is found when the file is read and not in the middle
of a run. A *name* is what a case calls an answer or an event by: ``as`` of a ``send`` is also the id on the wire.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from json import dumps
from typing import Any, Final

from localagent.protocol.codes import Code

from .gather import ITEMS

EVENTS: Final = frozenset(
    {
        "input.persisted",
        "message.delta",
        "message.reconcile",
        "activity",
        "tool.card",
        "approval.requested",
        "diagnostic",
        "client.tool.call",
        "client.tool.cancel",
        "run.finished",
    }
)
STIMULI: Final = frozenset(
    {"plain", "long", "tool", "approve", "approve_two", "stall", "fail", "reason", "many", "flood", "secret", "unsaved"}
)
"""Prompts that a case may ask for; how a provider is made to do it stands elsewhere."""
FIXTURES: Final = frozenset({"settings", "store"})
"""What a case may write into a home before the child starts: settings, sessions."""
SIGNALS: Final = frozenset(
    {"TERM", "INT", "HUP", "QUIT", "KILL", "STOP", "CONT", "PIPE", "USR1", "USR2", "ALRM", "TSTP"}
)
STREAMS: Final = frozenset({"pipe", "file", "tty", "socket", "null", "closed"})
"""What a child's standard input or output may be."""
SINCE: Final = frozenset({"spawn", "close", "signal", "stop"})
"""Moments that ``since`` may name beside answers and events: the child's start, the end of its input, a signal, the
moment from which its output was not read."""

FAILURE: Final = "failure"
"""Any exit status but 0."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,60}\Z")
_EVENT: Final = re.compile(r"[a-z][a-z0-9._]*\Z")


class StepError(ValueError):
    """A step is not written as it must be."""


Check = Callable[[Any], str]
"""Says what is wrong with a value, nothing if it is right."""


def _is(kind: type, what: str) -> Check:
    return lambda value: "" if type(value) is kind else f"must be {what}"


def _count(least: int) -> Check:
    return lambda value: "" if type(value) is int and value >= least else f"must be a whole number from {least} on"


def _one(words: frozenset[str]) -> Check:
    which = "" if len(words) == 1 else "one of "
    told = f"must be {which}{', '.join(word or dumps(word) for word in sorted(words))}"
    return lambda value: "" if isinstance(value, str) and value in words else told


def _match(pattern: re.Pattern[str], what: str) -> Check:
    return lambda value: "" if isinstance(value, str) and pattern.match(value) else f"must be {what}"


def _each(check: Check, least: int = 0) -> Check:
    def checked(values: Any) -> str:
        if not isinstance(values, list) or len(values) < least:
            return f"must be a list of at least {least}" if least else "must be a list"
        return next((f"{value!r} {wrong}" for value in values if (wrong := check(value))), "")

    return checked


def _either(first: Check, second: Check) -> Check:
    return lambda value: (
        f"{wrong}, or {other.removeprefix('must be ')}" if (wrong := first(value)) and (other := second(value)) else ""
    )


def _true(value: Any) -> str:
    return "" if value is True else "must be true"


def _anything(value: Any) -> str:
    return ""


def _code(value: Any) -> str:
    return "" if isinstance(value, str) and value in _CODES else "must be an error code of the protocol"


def _bytes(value: Any) -> str:
    try:
        bytes.fromhex(value)
    except (TypeError, ValueError):
        return "must be bytes in hexadecimal"
    return ""


def _path(value: Any) -> str:
    sound = isinstance(value, str) and value and not value.startswith("/") and ".." not in value.split("/")
    return "" if sound else "must be a path inside the home"


def _launch(value: Any) -> str:
    if not isinstance(value, dict) or not value:
        return "must be a table of args, add, stdin or stdout"
    for key, each in value.items():
        words = key in ("args", "add") and not _each(_is(str, "a text"))(each)
        if not words and not (key in ("stdin", "stdout") and each in STREAMS):
            return f"takes no {key} = {each!r}"
    return ""


_CODE_LIST: Final = _each(_code, 1)
_CODES: Final = frozenset(code.value for code in Code)
_TEXT: Final = _is(str, "a text")
_TABLE: Final = _is(dict, "a table")
_A_NAME: Final = _match(_NAME, "a name: letters, digits, - and _, at most 60")
_A_REFERENCE: Final = _match(re.compile(r"\$\S+\Z"), 'a reference, as "$new.result.session_id"')
_MOMENT: Final = _either(_A_NAME, _one(SINCE))
_NAMES: Final = _each(_A_NAME, 1)
_STATUSES: Final = _either(_each(_is(int, "a status"), 1), _one(frozenset({FAILURE})))
_TRICKLE: Final[Mapping[str, Check]] = {"pieces": _count(1), "cut": _each(_count(1), 1), "every_ms": _count(0)}
_AGAIN: Final[Mapping[str, Check]] = {"retry": _each(_code, 1), "until": _TABLE}
_TIMES: Final[Mapping[str, Check]] = {"within_ms": _count(1), "not_before_ms": _count(0), "since": _MOMENT}

EXPECTATION: Final[Mapping[str, Check]] = {
    "check": _match(re.compile(r"[a-z0-9][a-z0-9.-]*\Z"), "a name of small letters, digits, dots and dashes"),
    "clauses": _each(_TEXT),
    "level": _one(frozenset({"must", "should", "record"})),
    "timed": _is(bool, "true or false"),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of step. ``keys``: the first is the one that names it, ``needs`` must be there, the others may.

    ``expects``: always, or ``named``: only where the step has ``check`` or ``clauses``; else it is a mere means.
    """

    keys: Mapping[str, Check]
    needs: frozenset[str] = frozenset()
    expects: str = ""


_SESSION: Final[Mapping[str, Check]] = {"as": _A_NAME, "params": _anything}

KINDS: Final[Mapping[str, Kind]] = {
    "write": Kind(
        {
            "write": _path,
            "text": _TEXT,
            "hex": _bytes,
            "count": _count(1),
            "mode": _count(0),
            "in": _one(frozenset({"home", "cwd"})),
        }
    ),
    "delete": Kind({"delete": _path}),
    "listen": Kind({"listen": _A_NAME}),
    "serve": Kind(
        {
            "serve": _A_NAME,
            "status": _count(100),
            "head": _TEXT,
            "text": _TEXT,
            "count": _count(1),
            "tail": _TEXT,
            "hold": _true,
            "optional": _true,
        }
    ),
    "heard": Kind({"heard": _A_NAME, "least": _count(0), "most": _count(0)}, expects="named"),
    "repeat": Kind({"repeat": _count(1), "steps": _each(_TABLE, 1)}, frozenset({"steps"})),
    "send": Kind(
        {
            "send": _TEXT,
            "as": _A_NAME,
            "params": _anything,
            "envelope": _TABLE,
            "drop": _each(_TEXT, 1),
            "pad": _count(2),
            "times": _count(1),
            "end": _TEXT,
            **_TRICKLE,
            **_AGAIN,
        },
        frozenset({"as"}),
    ),
    "raw": Kind({"raw": _TEXT, "then": _TEXT, "as": _either(_A_NAME, _NAMES), **_TRICKLE}),
    "hex": Kind({"hex": _bytes, "then": _TEXT, "as": _either(_A_NAME, _NAMES), **_TRICKLE}),
    "fill": Kind({"fill": _TEXT, "count": _count(1), "then": _TEXT, "as": _A_NAME, **_TRICKLE}, frozenset({"count"})),
    "start": Kind({"start": _true, "require": _each(_TEXT), **_SESSION}, expects="named"),
    "turn": Kind(
        {"turn": _one(STIMULI), "session": _A_REFERENCE, **_SESSION, "retry": _each(_code, 1)},
        frozenset({"session", "as"}),
        "named",
    ),
    "answer": Kind(
        {
            "answer": _either(_A_NAME, _one(frozenset({""}))),
            "result": _anything,
            "error": lambda value: _CODE_LIST(value) if isinstance(value, list) else _code(value),
            "any": _true,
            "or_null": _true,
            "optional": _true,
            "as": _A_NAME,
            **_TIMES,
        },
        expects="always",
    ),
    "answers": Kind(
        {
            "answers": _either(_A_NAME, _NAMES),
            "times": _count(1),
            "order": _one(frozenset({"any", "given"})),
            "or_exit": _each(_is(int, "a status"), 1),
            **_TIMES,
        },
        expects="always",
    ),
    "event": Kind(
        {
            "event": _match(_EVENT, "the name of an event"),
            "data": _anything,
            "where": _TABLE,
            "as": _A_NAME,
            "run": _A_NAME,
            "after": _A_NAME,
            **_TIMES,
        },
        expects="always",
    ),
    "absent": Kind(
        {
            "absent": _match(_EVENT, "the name of an event"),
            "where": _TABLE,
            "data": _TABLE,
            "run": _A_NAME,
            "since": _MOMENT,
        },
        expects="always",
    ),
    "absent_answer": Kind({"absent_answer": _A_NAME, "since": _MOMENT}, expects="always"),
    "nothing": Kind({"nothing": _true, "since": _MOMENT}, expects="always"),
    "pages": Kind(
        {
            "pages": _one(frozenset(ITEMS)),
            "as": _A_NAME,
            "params": _TABLE,
            "result": _anything,
            "retry": _each(_code, 1),
        },
        frozenset({"as"}),
        "always",
    ),
    "texts": Kind({"texts": _A_NAME, "as": _A_NAME}, frozenset({"as"})),
    "same": Kind({"same": _each(_anything, 2)}, expects="always"),
    "differ": Kind({"differ": _each(_anything, 2)}, expects="always"),
    "match": Kind({"match": _A_REFERENCE, "pattern": _anything}, frozenset({"pattern"}), "always"),
    "given": Kind({"given": _A_REFERENCE, "pattern": _anything}, frozenset({"pattern"})),
    "close": Kind({"close": _true}),
    "signal": Kind({"signal": _one(SIGNALS)}),
    "reading": Kind({"reading": _is(bool, "true or false")}),
    "read_bytes": Kind({"read_bytes": _count(1), "every_ms": _count(1)}, frozenset({"every_ms"})),
    "pipe_bytes": Kind({"pipe_bytes": _count(4096)}),
    "hangup": Kind({"hangup": _true}),
    "kill": Kind({"kill": _true}),
    "exit": Kind(
        {
            "exit": _either(_each(_is(int, "a status"), 1), _one(frozenset({FAILURE}))),
            "stderr": _one(frozenset({""})),
            **_TIMES,
        },
        expects="always",
    ),
    "home": Kind({"home": _one(frozenset({"unchanged"}))}, expects="always"),
    "home_has": Kind({"home_has": _path, "new": _true}, expects="always"),
    "home_lacks": Kind({"home_lacks": _path}, expects="always"),
    "home_same": Kind({"home_same": _path}, expects="always"),
    "pause_ms": Kind({"pause_ms": _count(1)}),
    "launch": Kind({"launch": _launch}),
    "restart": Kind(
        {"restart": _true, "cwd": _one(frozenset({"other"})), "home": _one(frozenset({"fresh"}))},
    ),
}
"""By kind, which is the key that names it. The first that a step has is its kind: ``write`` before ``hex``."""

ABOUT: Final[Mapping[str, str]] = {
    "start": "Sends `initialize` and waits for its result; without one the case ends here.",
    "send": "Sends a request. `envelope` sets keys of it, `drop` leaves some out, `pad` fills the line up to so many "
    "bytes; `retry` sends it again while the answer is one of these errors, `until` while the result does not match.",
    "turn": "Starts a turn whose prompt makes the backend's provider do that, and waits for its result.",
    "raw": "Writes a text to the child.",
    "hex": "Writes bytes to the child.",
    "fill": "Writes a text so many times.",
    "answer": "Waits for the answer to a request, and compares it. `optional`: it need not come.",
    "answers": "Waits for several answers, in any order unless it is `given`.",
    "event": "Waits for an event. `where` picks it, `data` is compared. `within_ms` is a bound together with `since`; "
    "alone it says how long to wait at least.",
    "pages": "Asks for one page after the other, to the end; `.items` of its name are all of them.",
    "texts": "Puts together what the reconciles of a run say.",
    "absent": "No such event has come, up to the answer to a `status` that is asked now, or up to the end of output.",
    "absent_answer": "No answer to that request has come up to now.",
    "nothing": "Nothing at all has come up to now.",
    "same": "Values are the same.",
    "differ": "Values are all different.",
    "match": "A value matches a pattern.",
    "given": "Goes on only where a value matches a pattern; where not, the rest of the case is not reached.",
    "close": "Ends the child's input.",
    "signal": "Sends a signal to the child.",
    "kill": "Kills the child.",
    "hangup": "Closes our end of the child's output.",
    "reading": "Stops reading the child's output, or goes on.",
    "read_bytes": "Reads the child's output slowly.",
    "pipe_bytes": "Makes the pipe of the child's output so large.",
    "exit": "Waits for the end of the child, with one of these statuses; `failure` is any but 0. `stderr` is what it "
    "says there behind the last thing that was sent or done.",
    "home": "Nothing in the home was created, removed or changed since the child started.",
    "home_has": "Something in the home has such a path (a pattern as of `glob`); `new`: that the child did not find.",
    "home_lacks": "Nothing that was not there before has such a path.",
    "home_same": "A file has the bytes that the case wrote there last.",
    "write": "Writes a file, so many times its text; `{i}` in it is the number of each, `{home}`, `{cwd}` and "
    "`{outside}` are directories, `{port:NAME}` is the port of a server.",
    "delete": "Removes a file or directory of the home.",
    "listen": "Opens a server on 127.0.0.1, before the files that name its port.",
    "serve": "Waits for the next caller of a server and answers with `head`, so many times `text`, and `tail`, or "
    "holds it without an answer; if nobody calls, the case ends here.",
    "heard": "So many requests have come to a server since the last `heard`; without a bound it only begins to count.",
    "pause_ms": "Waits, for what only time can show.",
    "launch": "Starts the child with other arguments, or other streams.",
    "restart": "Starts another child, in the same home unless it is to be a fresh one.",
    "repeat": "Does steps so many times; `{n}` in them is the number.",
}
"""What a step of each kind does, in the order in which one would tell it."""


def kind_of(step: Mapping[str, Any]) -> str:
    """The kind of a step as it stands in a file. Raises :class:`StepError`."""
    found = "restart" if "restart" in step else next((name for name in KINDS if name in step), None)
    if found is None:
        raise StepError(f"no kind of step: {', '.join(step) or 'it is empty'}")
    return found


def check(kind: str, step: Mapping[str, Any]) -> None:
    """Check the keys and values of a step. Raises :class:`StepError` with the first that is wrong."""
    rules = KINDS[kind]
    allowed = {**rules.keys, **(EXPECTATION if rules.expects else {})}
    for key, value in step.items():
        if key not in allowed:
            raise StepError(f"{kind} takes no {key!r}")
        if wrong := allowed[key](value):
            raise StepError(f"{key} {wrong}, not {value!r}")
    if missing := rules.needs - set(step):
        raise StepError(f"{kind} needs {', '.join(sorted(missing))}")
    _together(kind, step)


def _together(kind: str, step: Mapping[str, Any]) -> None:
    """What the keys of one step demand of each other."""
    if kind == "answer":
        if ("any" in step) is bool({"result", "error"} & set(step)):
            raise StepError("answer needs result or error or both, or any alone")
        if step["answer"] == "" and "error" not in step:
            raise StepError("an answer without an id is an error")
    if kind == "write" and len({"text", "hex"} & set(step)) != 1:
        raise StepError("write needs one of text, hex")
    if kind == "heard" and bool({"least", "most"} & set(step)) is not bool({"check", "clauses"} & set(step)):
        raise StepError("heard needs least or most where it is a check, and only there")
    if kind == "serve" and ("hold" in step) is bool({"status", "head", "text", "count", "tail"} & set(step)):
        raise StepError("serve needs hold, or status and text")
    if kind == "event" and step["event"] not in EVENTS and step.get("level") != "record":
        raise StepError(f"no event is named {step['event']!r}")
    if kind == "answers" and ("times" in step) is not isinstance(step["answers"], str):
        raise StepError("answers takes a list, or one name and times")
    if "every_ms" in step and kind != "read_bytes" and not {"pieces", "cut"} & set(step):
        raise StepError("every_ms needs pieces or cut")
    if {"retry", "until"} & set(step) and {"times", "pad", "envelope", "drop", "end"} & set(step):
        raise StepError("retry and until repeat plain requests only")
    if "not_before_ms" in step and "since" not in step:
        raise StepError("not_before_ms needs since")
