"""`localagent sessions`: what the store holds, what is wrong with it, and its repair, for people and programs.

Nothing here needs a running backend or disturbs one: a session is read as it stands, and only ``repair --apply`` writes
and takes leases. Texts are those of a history (CRED-13); besides, nothing that a terminal might obey is let through.
Times are UTC.
"""

import io
import os
import re
import unicodedata
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from json import dumps
from typing import Any, Final, TextIO

from localagent.protocol.codes import Code
from localagent.protocol.ids import is_session_id
from localagent.sessions import inspect, instants, paths, repair
from localagent.sessions.errors import StoreError, Unsafe
from localagent.sessions.inspect import Examined, Fault, Reading, Strange, printable
from localagent.sessions.paths import Root
from localagent.sessions.projection import Entry
from localagent.sessions.repair import Plan

_Command = Callable[[Namespace, Root | None, TextIO, TextIO], int]

_INDENT: Final = "    "
_DAMAGES: Final = 20  # that are told one by one
_unsafe = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Controls but LF and TAB, and what turns the direction of text, breaks its lines or cannot be seen."""


class Unusable(Exception):  # noqa: N818 - says what is wrong
    """Wrong usage, or a store that cannot be read: exit status 2."""


def run(options: Namespace, out: TextIO, err: TextIO) -> int:
    """Carry out ``sessions list|check|repair|show``; the exit status: 0 all is well, 1 a session is refused.

    Raises Unusable.
    """
    for stream in (out, err):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # it may know fewer characters than the sessions
    for session_id in options.id:
        if not is_session_id(session_id):
            raise Unusable(f"no session id: {_cell(session_id)!r}")
    command: _Command = _COMMANDS[options.action]
    try:
        return command(options, inspect.locate(paths.locate(os.environ)), out, err)
    except StoreError as fault:
        raise Unusable(_cell(str(fault))) from None
    except Unsafe as fault:  # it became so just now
        raise Unusable(f"sessions/: {fault}") from None


def visible(text: str) -> str:
    """Spell out what a terminal might obey or hide, as JSON escapes: so this may be done to a JSON document as well."""
    return _unsafe.sub(lambda found: dumps(found[0])[1:-1], text)


def _cell(text: str) -> str:
    """A name, path or title on one line."""
    return visible(printable(text)).replace("\n", "\\n").replace("\t", "\\t")


def _width(text: str) -> int:
    """Columns that a terminal needs."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield (
            "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
            + "\n"
        )


def _write_json(out: TextIO, value: object) -> None:
    out.write(visible(dumps(value, ensure_ascii=False, indent=1)) + "\n")


def _moment(instant: int | None) -> str:
    if instant is None:
        return "-"
    return instants.spell(instant)[: len("2026-03-02T08:00:01")].replace("T", " ") + "Z"


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"


def _state(one: Examined) -> str:
    return "refused" if one.fault else "busy" if one.busy else "ok"


def _why(fault: Fault) -> str:
    where = "" if fault.line is None else f"line {fault.line:,}: "
    return f"{fault.code}: {where}{_cell(fault.what)}"


def _content(one: Examined) -> str:
    """What a client sees of it, or why it does not."""
    if one.fault is not None:
        return _why(one.fault)
    if one.entries is None:
        return "in use"
    told = [_count(one.entries, "entry", "entries"), "complete" if one.complete else "not complete", *one.notices]
    return ", ".join(["in use", *told] if one.busy else told)


def _data(one: Examined) -> dict[str, Any]:
    return {
        "session_id": one.session_id,
        "state": _state(one),
        "code": one.code,
        "title": one.title,
        "updated_at": None if one.updated is None else instants.spell(one.updated),
        "cwds": list(one.cwds),
        "entries": one.entries,
        "complete": one.complete,
        "notices": list(one.notices),
        "fault": _fault_data(one.fault),
        "bytes": one.length,
        "records": one.records,
    }


def _fault_data(fault: Fault | None) -> dict[str, Any] | None:
    if fault is None:
        return None
    what = printable(fault.what)
    return {"code": fault.code, "line": fault.line, "what": what, "repairable": fault.repairable}


# list


def _list(options: Namespace, root: Root | None, out: TextIO, _err: TextIO) -> int:
    cwd = None if options.all else _directory(options.cwd)
    found = [inspect.examine(root, each) for each in inspect.session_ids(root)] if root else []
    found = [each for each in found if each.code is not Code.SESSION_MISSING]  # removed just now
    shown = [each for each in found if cwd is None or _belongs(each, cwd)]
    shown.sort(key=lambda each: each.session_id)
    shown.sort(key=lambda each: -(2**70) if each.updated is None else each.updated, reverse=True)
    if options.json:
        _write_json(out, [_data(each) for each in shown])
        return 0
    if shown:
        head = ("SESSION", "UPDATED", "STATE", "TITLE", "DIRECTORY")
        out.writelines(_table([head, *map(_list_row, shown)]))
    hidden = len(found) - len(shown)
    if hidden:
        out.write(f"{_count(hidden, 'session')} of other directories: sessions list --all\n")
    elif not shown:
        out.write("no sessions\n")
    return 0


def _list_row(one: Examined) -> tuple[str, ...]:
    title = "-" if one.title is None else _cell(one.title)
    return one.session_id, _moment(one.updated), _state(one), title, ", ".join(map(_cell, one.cwds)) or "-"


def _directory(given: str | None) -> str:
    try:
        return paths.canonical(os.getcwd() if given is None else given)
    except OSError as fault:
        raise Unusable(f"{_cell(given or 'the working directory')}: {fault.strerror}") from None


def _belongs(one: Examined, cwd: str) -> bool:
    """Whether a client that works in ``cwd`` cares: it is recorded there, or nowhere."""
    return not one.cwds or any(paths.is_same_directory(each, cwd) for each in one.cwds)


# check


def _check(options: Namespace, root: Root | None, out: TextIO, _err: TextIO) -> int:
    names: list[Strange] = []
    if root is None:
        examined = [inspect.examined(_missing(each)) for each in options.id]
    else:
        examined = [inspect.examine(root, each) for each in options.id or inspect.session_ids(root)]
        names = [each for each in inspect.strangers(root) if not options.id or _is_about(each.name, options.id)]
    if options.json:
        strange = [{"name": printable(each.name), "what": each.what, "code": each.code} for each in names]
        _write_json(out, {"sessions": [_data(each) for each in examined], "names": strange})
    else:
        _write_check(examined, names, out)
    return int(any(each.fault for each in examined) or any(each.code for each in names))


def _is_about(name: str, session_ids: Sequence[str]) -> bool:
    """Whether a lock or a temporary file belongs to one of the sessions."""
    return name.startswith(".") and any(name.lstrip(".").startswith(f"{each}.") for each in session_ids)


def _missing(session_id: str) -> Reading:
    reading = Reading(session_id)
    reading.fault = inspect.MISSING
    return reading


def _write_check(examined: Sequence[Examined], names: Sequence[Strange], out: TextIO) -> None:
    rows = [(each.session_id, _state(each), _content(each)) for each in examined]
    rows += [(_cell(each.name), str(each.code or "note"), each.what) for each in names]
    out.writelines(_table(rows) if rows else ())
    states = [_state(each) for each in examined]
    counts = ", ".join(f"{states.count(each)} {each}" for each in ("ok", "busy", "refused") if each in states)
    out.write(f"{_count(len(examined), 'session')}{': ' if counts else ''}{counts}\n")
    damaged = [each.session_id for each in examined if each.fault and each.fault.repairable]
    if damaged:
        out.write(f"damaged lines can be set aside: localagent sessions repair {' '.join(damaged)}\n")


# repair


def _repair(options: Namespace, root: Root | None, out: TextIO, _err: TextIO) -> int:
    told = [_repair_one(root, each, options.apply) for each in dict.fromkeys(options.id)]
    if options.json:
        _write_json(out, told)
    else:
        for each in told:
            out.writelines(_repair_lines(each, root))
    return int(any(each["code"] for each in told))


def _repair_one(root: Root | None, session_id: str, apply: bool) -> dict[str, Any]:
    """What is to be said of one session; ``code`` is what it is refused with, now or, after a repair, still."""
    told: dict[str, Any] = {"session_id": session_id, "applied": False, "salvage": None, "code": None, "why": None}
    try:
        if root is None:
            raise StoreError(Code.SESSION_MISSING, inspect.MISSING.what)
        plan = repair.survey(root, session_id)
        if apply:
            done = repair.apply(root, session_id)
            plan, told["salvage"], told["applied"] = done.plan, done.salvage, done.salvage is not None
    except StoreError as fault:
        return told | {"code": fault.code, "why": printable(str(fault).partition(": ")[2])}
    now = inspect.examine(root, session_id)
    return told | _plan_data(plan, now if told["applied"] else plan.outcome, now.busy, told["applied"])


def _plan_data(plan: Plan, outcome: Examined, busy: bool, applied: bool) -> dict[str, Any]:
    code = outcome.fault.code if outcome.fault else None
    if plan.damages and not applied:
        code = Code.SESSION_BUSY if busy else Code.SESSION_INVALID
    return {
        "code": code,
        "why": plan.impossible if plan.damages else None,
        "busy": busy,
        "bytes": plan.length,
        "lines": plan.lines,
        "set_aside": plan.aside,
        "damages": [
            {"line": each.line, "what": each.what, "set_aside": each.aside, "records_kept": each.kept}
            for each in plan.damages
        ],
        "outcome": _content(outcome),
        "fault": _fault_data(outcome.fault),
    }


def _repair_lines(told: dict[str, Any], root: Root | None) -> Iterator[str]:
    session_id, damages = told["session_id"], told.get("damages")
    if damages is None:
        yield f"{session_id}: {told['code']}: {_cell(told['why'])}\n"
        return
    if not damages:
        refused = f"; it is refused all the same: {told['outcome']}" if told["fault"] else ""
        yield f"{session_id}: nothing to repair{refused}\n"
        return
    damaged = f"{_count(len(damages), 'damaged line')} of {told['lines']:,}"
    yield f"{session_id}: {damaged}, {told['set_aside']:,} of {_count(told['bytes'], 'byte')} to be set aside\n"
    for each in damages[:_DAMAGES]:
        kept = f", {_count(each['records_kept'], 'whole record')} kept" if each["records_kept"] else ""
        yield f"{_INDENT}line {each['line']:,}: {each['what']}: {_count(each['set_aside'], 'byte')}{kept}\n"
    if len(damages) > _DAMAGES:
        yield f"{_INDENT}and {_count(len(damages) - _DAMAGES, 'more line')}\n"
    if told["applied"]:
        assert root is not None
        yield f"{_INDENT}repaired; all bytes as they were: {_cell(root.path)}/{told['salvage']}\n"
    elif told["why"]:
        yield f"{_INDENT}cannot be repaired: {told['why']}\n"
        return
    yield f"{_INDENT}{'now' if told['applied'] else 'then'}: {told['outcome']}\n"
    if not told["applied"]:
        use = "; it is in use now, and would be left alone" if told["busy"] else ""
        yield f"{_INDENT}nothing was changed; to do it: localagent sessions repair --apply {session_id}{use}\n"


# show


def _show(options: Namespace, root: Root | None, out: TextIO, err: TextIO) -> int:
    (session_id,) = options.id
    reading = _missing(session_id) if root is None else inspect.read(root, session_id)
    busy = root is not None and inspect.leased(root, session_id)[0]
    one = inspect.examined(reading, busy)
    fault = one.fault
    if root is not None and fault and fault.line and reading.projected is None:
        reading = inspect.read(root, session_id, most=fault.line - 1)  # what stands before the fault
    readable = fault is None or fault.code is Code.CWD_MISMATCH
    entries = reading.projected.entries if reading.projected else ()
    if options.json:
        shown = [_entry_data(each, _at(each, reading)) for each in entries]
        _write_json(out, _data(one) | {"entries": shown})
    else:
        _write_session(one, entries, reading, out)
    if fault is not None and not readable:
        out.flush()  # the entries before the fault, then the fault
        err.write(f"localagent: {session_id}: {_why(fault)}\n")
    return int(not readable)


def _at(entry: Entry, reading: Reading) -> int | None:
    """When the record of an entry was made; what a reader adds at the end of a turn has no time of its own."""
    number, _, suffix = entry.message_id[1:].partition(".")
    return None if suffix == "end" else reading.instants[int(number) - 1]


def _entry_data(entry: Entry, at: int | None) -> dict[str, Any]:
    return {
        "message_id": entry.message_id,
        "kind": entry.kind,
        "text": entry.text,
        "partial": entry.partial,
        "at": None if at is None else instants.spell(at),
    }


def _write_session(one: Examined, entries: Sequence[Entry], reading: Reading, out: TextIO) -> None:
    if one.length is not None:
        out.write(f"{_cell(one.title or one.session_id)}\n")
        out.write(f"{one.session_id}  {_moment(one.updated)}  {', '.join(map(_cell, one.cwds)) or '-'}\n")
        out.write(f"{_content(one)}\n")
    for entry in entries:
        partial = " (partial)" if entry.partial else ""
        at = _at(entry, reading)
        out.write(f"\n{entry.kind}{partial}{'' if at is None else '  ' + _moment(at)}\n")
        for line in visible(entry.text).split("\n"):
            out.write(f"{_INDENT}{line}".rstrip(" ") + "\n")


_COMMANDS: Final[dict[str, _Command]] = {
    "list": _list,
    "check": _check,
    "repair": _repair,
    "show": _show,
}
