"""What takes more than one frame to know: all pages of a listing or a history, all text of a run. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

ITEMS: Final = {
    "history.page": "entries",
    "session.list": "sessions",
    "session.discover": "sessions",
    "model.catalog": "choices",
    "model.catalog.status": "choices",
}
"""Methods that answer with pages -> the member that holds the items of one."""
MOST: Final = 1_500
"""How many pages are asked for at most."""
KINDS: Final = ("user", "assistant", "reasoning_summary", "activity", "compaction", "diagnostic")
"""Of the entries of a history (HIST-24)."""


def following(method: str, params: Any, result: Any) -> Mapping[str, Any] | None:
    """The params of the next page; None behind the last one, or where the result does not say how to go on."""
    cursor = result.get("next_cursor") if isinstance(result, Mapping) else None
    if not isinstance(cursor, str) or not isinstance(params, Mapping):
        return None
    revision = {} if method == "history.page" else {"revision": result.get("revision")}
    return {**params, **revision, "cursor": cursor}


def pages(method: str, results: Sequence[Any]) -> Mapping[str, Any]:
    """The value of a ``pages`` step: ``items`` of all pages, ``count`` of pages, ``first``, ``last``, ``revision``.

    ``notices``: what any page told, in order, once. ``said``, by kind: the text of all entries of a history, whatever
    their parts; a text that is blank as a whole is left out.
    """
    sound = [each for each in results if isinstance(each, Mapping)]
    lists = [each.get(ITEMS[method]) for each in sound]
    return {
        "items": [item for each in lists if isinstance(each, list) for item in each],
        "count": len(results),
        "first": results[0] if results else None,
        "last": results[-1] if results else None,
        "revision": sound[-1].get("revision") if sound else None,
        "notices": _notices(sound),
        "said": _said(item for each in lists if isinstance(each, list) for item in each),
    }


def _notices(results: Iterable[Mapping[str, Any]]) -> list[Any]:
    told = [notice for each in results if isinstance(each.get("notices"), list) for notice in each["notices"]]
    return [notice for i, notice in enumerate(told) if notice not in told[:i]]


def _said(entries: Iterable[Any]) -> Mapping[str, str]:
    whole: dict[tuple[str, str], str] = {}
    for each in entries:
        told = [each.get(key) for key in ("kind", "message_id", "text")] if isinstance(each, Mapping) else []
        match told:
            case [str(kind), str(message), str(text)]:
                whole[kind, message] = whole.get((kind, message), "") + text
    found = dict.fromkeys([*KINDS, *(kind for kind, _ in whole)], "")
    for (kind, _), text in whole.items():
        found[kind] += text if text.strip() else ""
    return found


def texts(frames: Iterable[Any], run_id: str) -> Mapping[str, Any]:
    """The value of a ``texts`` step, from decoded frames in order.

    ``joined``: the last complete reconciliation of every message of the run, in order of the messages' first
    appearance, without those that are blank, which no history need keep; ``count`` of those messages; number of
    ``deltas``.
    """
    complete: dict[str, str] = {}
    parts: dict[str, list[str]] = {}
    order: dict[str, None] = {}
    deltas = 0
    for frame in frames:
        data = frame.get("data") if isinstance(frame, Mapping) else None
        if not isinstance(data, Mapping) or data.get("run_id") != run_id:
            continue
        message, text = data.get("message_id"), data.get("text")
        if not isinstance(message, str) or not isinstance(text, str):
            continue
        if frame.get("event") == "message.delta":
            deltas += 1
            order.setdefault(message)
        elif frame.get("event") == "message.reconcile":
            order.setdefault(message)
            if data.get("part") == 0:
                parts[message] = []
            parts.setdefault(message, []).append(text)
            if data.get("last_part") is True:
                complete[message] = "".join(parts.pop(message))
    whole = [complete[message] for message in order if complete.get(message, "").strip()]
    return {"joined": "".join(whole), "count": len(whole), "deltas": deltas}
