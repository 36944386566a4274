"""Faults of history: pages, entries, staleness."""

from typing import Any

from msgspec.structs import replace

from .mutant import fault
from .tools import around, bounds, put, put_item, unchecked


def paging(change: Any) -> None:
    """Let ``change`` make other entries of the entries of every page."""
    from localagent.sessions.history import History

    @around(History, "page")
    def page(original: Any, self: Any, cursor: Any) -> Any:
        given = original(self, cursor)
        return replace(given, entries=tuple(change(given.entries)))


@fault
def staleness_forgotten() -> None:
    """Any revision gives the pages of the current one."""
    from localagent.sessions.handle import Handle

    unchecked("history.page", "HISTORY_CURRENT", "SAME_REVISION")

    @around(Handle, "page")
    def page(original: Any, self: Any, revision: str, *rest: Any) -> Any:
        return original(self, self.revision or revision, *rest)


@fault
def changes_of_others_unseen() -> None:
    """A file that another process changed is served on."""
    from localagent.sessions.journal import Journal

    put(Journal, "unchanged", lambda self, cancelled=None: True)


@fault
def cursors_of_any_revision() -> None:
    """A cursor is judged by its number alone."""
    from localagent.sessions.history import History

    def start(self: Any, cursor: str) -> int:
        digits = cursor[-5:]
        return min(int(digits), len(self._parts)) if digits.isdecimal() else 0

    put(History, "_start", start)


@fault
def history_in_wrong_order() -> None:
    """The entries of a page stand in reverse order."""
    paging(lambda entries: entries[::-1])


@fault
def history_parts_missing() -> None:
    """Of an entry of several parts only the first is shown."""
    paging(lambda entries: [each for each in entries if each.part == 0])


@fault
def history_parts_from_one() -> None:
    """The parts of an entry are counted from 1."""
    paging(lambda entries: [replace(each, part=each.part + 1) for each in entries])


@fault
def history_last_part_missing() -> None:
    """No part of an entry is the last."""
    paging(lambda entries: [replace(each, last_part=False) for each in entries])


@fault
def history_partial_missing() -> None:
    """Nothing in a history is partial."""
    paging(lambda entries: [replace(each, partial=False) for each in entries])


@fault
def history_all_partial() -> None:
    """Everything in a history is partial."""
    paging(lambda entries: [replace(each, partial=True) for each in entries])


@fault
def history_input_missing() -> None:
    """A history does not show what the user said."""
    paging(lambda entries: [each for each in entries if each.kind != "user"])


@fault
def history_without_end() -> None:
    """A history is never complete."""
    from localagent.sessions.history import History

    around(History, "page")(lambda original, self, cursor: replace(original(self, cursor), complete=False))


@fault
def history_always_complete() -> None:
    """A history is complete on every page, whatever is missing."""
    from localagent.sessions.history import History

    around(History, "page")(lambda original, self, cursor: replace(original(self, cursor), complete=True))


@fault
def page_entries_over() -> None:
    """A page has up to 101 entries."""
    from localagent.sessions import history

    bounds(history, history_page_entries=101)


@fault
def page_bytes_over() -> None:
    """A page has up to 33 KiB."""
    from localagent.sessions import history

    bounds(history, history_page_bytes=33 * 1024)


@fault
def content_chunk_over() -> None:
    """A part of an entry has up to 16,385 bytes."""
    from localagent.sessions import history

    bounds(history, content_chunk_bytes=16 * 1024 + 1)


@fault
def page_repeats_an_entry() -> None:
    """A page begins with the last entry of the page before."""
    from localagent.sessions.history import History

    around(History, "_start")(lambda original, self, cursor: original(self, cursor) - 1)


@fault
def stored_controls_kept() -> None:
    """Control characters of a stored text are shown."""
    from localagent.sessions import projection

    put(projection, "clean", lambda text: text)


@fault
def stored_secrets_shown() -> None:
    """Secrets in a stored text are shown."""
    from localagent.sessions import projection

    put(projection, "redact", lambda text: text)


@fault
def raw_reasoning_shown() -> None:
    """Reasoning that is no summary of the provider's is kept."""
    from localagent.sessions.projection import _EFFECTS, _P

    summary = _P._reasoning_summary
    put_item(_EFFECTS, "reasoning_summary", lambda self, given: summary(self, {**given, "provider_summary": True}))


@fault
def raw_results_shown() -> None:
    """The result of a tool is an entry with its whole content."""
    from localagent.sessions.projection import _EFFECTS, _P

    def result(self: Any, payload: Any) -> None:
        _P._result(self, payload, False)
        self._add("diagnostic", str(payload["result"].get("content", "")))

    put_item(_EFFECTS, "tool_result", result)


@fault
def hidden_inputs_shown() -> None:
    """Prompts of the backend's own are shown like the user's."""
    from localagent.sessions import payloads

    put(payloads, "HIDDEN_ORIGINS", frozenset())


@fault
def unknown_records_refused() -> None:
    """A record of an unknown kind makes a history invalid."""
    from localagent.sessions.errors import BadRecord
    from localagent.sessions.projection import _EFFECTS, Projection

    @around(Projection, "add")
    def add(original: Any, self: Any, record: Any) -> None:
        if record.kind not in _EFFECTS:
            raise BadRecord("unknown")
        original(self, record)


@fault
def last_line_needs_lf() -> None:
    """A last line without LF makes a history invalid."""
    from localagent.sessions import lines
    from localagent.sessions.errors import BadRecord

    @around(lines, "split")
    def split(original: Any, blocks: Any) -> Any:
        last = [b""]

        def watched() -> Any:
            for block in blocks:
                last[0] = block
                yield block

        yield from original(watched())
        if last[0] and not last[0].endswith(b"\n"):
            raise BadRecord("torn")
