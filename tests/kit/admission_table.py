"""Base 19.4, "Admission by state", copied by hand, with the choices of D20 to D31 where the page leaves one open.

This is the second opinion on ``statemachines.admission``: typed from the contract, sharing nothing with the tables.
"""

from collections.abc import Collection, Mapping
from typing import Final

COLUMNS: Final = ("uninitialized", "starting", "idle", "worker", "run", "failed", "stopping")
"""``worker``: ready, the session worker is on. ``run``: ready, a run or its cleanup."""

_WORDS: Final = {
    "already": "already_initialized",
    "not": "not_initialized",
    "method": "unsupported_method",
    "capability": "unsupported_capability",
    "missing": "operation_missing",
    "run": "stale_run",
    "approval": "stale_approval",
    "call": "stale_client_tool_call",
    "SF": "SF",
    "busy": "busy",
    "ok": "ok",
    "-": "none",
}

# The last word says where bad params win over the cell: never, or in these columns.
_TABLE: Final = """
                          uninit.    starting   idle       worker     run        failed     stopping
initialize                ok         already    already    already    already    already    -          never
status                    not        ok         ok         ok         ok         ok         -          never
shutdown                  ok         ok         ok         ok         ok         ok         -          never
session.create            not        not        ok         busy       busy       SF         -          run
session.open              not        not        ok         busy       busy       SF         -          run
session.list              not        not        ok         busy       busy       SF         -          run
history.page              not        not        ok         busy       busy       SF         -          run
model.catalog             not        not        ok         busy       busy       SF         -          run
selection.set             not        not        ok         busy       busy       SF         -          run
turn.start                not        not        ok         busy       busy       SF         -          worker,run
turn.cancel               not        not        run        run        ok         SF         -          all
approval.answer           not        not        approval   approval   ok         SF         -          all
session.discover          not        not        ok         busy       busy       SF         -          run
model.catalog.status      not        not        ok         busy       busy       SF         -          run
model.refresh             not        not        ok         busy       busy       SF         -          run
operation.cancel          missing    missing    missing    ok         missing    missing    -          all
client.tool.result        not        not        call       call       ok         SF         -          idle,worker,run
no:session.discover       not        not        capability busy       capability SF         -          never
no:model.catalog.status   not        not        capability busy       capability SF         -          never
no:model.refresh          not        not        capability busy       capability SF         -          never
no:operation.cancel       capability capability capability capability capability capability -          never
no:client.tool.result     method     method     method     method     method     method     -          never
unknown                   method     method     method     method     method     method     -          never
"""
"""``no:`` is a method that was not negotiated; ``unknown`` one that does not exist (BASE-OP-37)."""

THEN: Final[Mapping[str, tuple[str, ...]]] = {
    "initialize": ("unsupported_capability", "invalid_params"),
    "session.list": ("stale_revision",),
    "model.catalog": ("stale_catalog",),
    "model.catalog.status": ("stale_catalog",),
    "history.page": ("session_missing", "stale_session", "stale_revision"),
    "selection.set": ("session_missing", "stale_session", "stale_selection", "stale_catalog"),
    "turn.start": ("session_missing", "stale_session"),
    "turn.cancel": ("stale_run",),
    "approval.answer": ("stale_approval",),
    "operation.cancel": ("operation_missing",),
    "client.tool.result": ("stale_client_tool_call",),
}
"""Behind an ``ok`` and good params: the codes of what the request names, in order (D20, D24 to D31)."""

OPTIONAL: Final = frozenset({"session.discover", "model.catalog.status", "model.refresh", "operation.cancel"})


def _read() -> Mapping[str, tuple[tuple[str, ...], frozenset[str]]]:
    table = {}
    for line in _TABLE.splitlines()[2:]:
        method, *cells, first = line.split()
        columns = {"all": COLUMNS, "never": ()}.get(first, first.split(","))
        table[method] = (tuple(_WORDS[cell] for cell in cells), frozenset(columns))
    return table


ROWS: Final = _read()
METHODS: Final = tuple(name for name in ROWS if not name.startswith(("no:", "unknown")))


def predict(
    method: str,
    column: str,
    *,
    negotiated: Collection[str] = (),
    params: bool = True,
    faults: Collection[str] = (),
    startup: str = "startup_failed",
) -> str:
    """What becomes of a request: a code, ``ok``, or ``none`` where nothing answers.

    ``params``: they are good. ``faults``: the codes of what it names wrongly. ``startup``: how the startup failed.
    """
    if method not in METHODS:
        method = "unknown"
    elif (method in OPTIONAL and method not in negotiated) or (
        method == "client.tool.result" and "client.tools" not in negotiated
    ):
        method = f"no:{method}"
    cells, params_win = ROWS[method]
    cell = cells[COLUMNS.index(column)]
    if cell == "none":
        return cell
    if not params and (cell == "ok" or column in params_win):
        return "invalid_params"
    if cell == "ok":
        return next((code for code in THEN.get(method, ()) if code in faults), "ok")
    return startup if cell == "SF" else cell
