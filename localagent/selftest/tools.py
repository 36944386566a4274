"""The tools to put a fault in: a place of the backend that exists is replaced or wrapped."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, Final

REPLACED: Final[list[tuple[object, str, object]]] = []
"""The places of the faults that were put into this process: owner, name, and what was there. A table has no names."""


def put(owner: Any, name: str, value: object) -> None:
    """Replace an attribute. Raises AttributeError where there is none: a mutant without its place would be none."""
    if not hasattr(owner, name):
        raise AttributeError(f"{owner!r} has no {name}")
    REPLACED.append((owner, name, getattr(owner, name)))
    setattr(owner, name, value)


def around(owner: Any, name: str) -> Callable[[Callable[..., Any]], None]:
    """Replace a function or method by the decorated one, which is given the original first."""
    original = getattr(owner, name)

    def install(function: Callable[..., Any]) -> None:
        @wraps(original)
        def instead(*args: Any, **kwargs: Any) -> Any:
            return function(original, *args, **kwargs)

        put(owner, name, instead)

    return install


def bounds(module: Any, **changed: int) -> None:
    """Let one module, and no other, have other bounds."""
    from msgspec.structs import replace

    put(module, "LIMITS", replace(module.LIMITS, **changed))


def unchecked(method: str, *checks: str) -> None:
    """Leave checks out of a method's list."""
    from statemachines import admission

    entry = admission.METHODS[method]
    left = tuple(each for each in entry.checks if each not in {getattr(admission, name) for name in checks})
    if len(left) + len(checks) != len(entry.checks):
        raise ValueError(f"{method} has not all of {checks}")
    put_item(admission.METHODS, method, replace(entry, checks=left))


def passed(check: str) -> None:
    """Let a factual check pass whatever is asked."""
    from localagent.core import routes
    from statemachines import admission

    key = getattr(admission, check)
    put_item(routes.PREDICATES, key, lambda asked, facts: True)


def put_field(frozen: Any, name: str, value: object) -> None:
    """Replace a field of a frozen object that has it."""
    REPLACED.append((frozen, name, getattr(frozen, name)))
    object.__setattr__(frozen, name, value)


def put_item(table: Any, key: object, value: object) -> None:
    """Replace an entry of a table that has it."""
    if key not in table:
        raise KeyError(key)
    REPLACED.append((table, "", table[key]))
    table[key] = value


def instead_of(code: str, answer: Callable[[Any, Any], Any]) -> None:
    """Where a request would be refused with ``code``, answer with what ``answer`` makes of connection and request.

    None lets the refusal stand.
    """
    from localagent.core import connection
    from localagent.core.fill import Answer
    from localagent.protocol.errors import Refused

    last: list[Any] = [None]

    @around(connection, "parse")
    def parse(original: Any, line: bytes) -> Any:
        last[0] = None
        try:
            last[0] = original(line)
        except Refused:
            raise
        return last[0]

    @around(connection.Connection, "_refuse")
    def refuse(original: Any, self: Any, id_: Any, refused: Any, failed: Any, now: float) -> Any:
        given = answer(self, last[0]) if refused == code and last[0] is not None else None
        if given is None:
            return original(self, id_, refused, failed, now)
        self._send(Answer(id_, given), now)
        return self._settle(now)


def answered(method: str, change: Any) -> None:
    """Let ``change`` make another result of every result of a method."""
    from localagent.core import fill
    from statemachines.rows import Emit

    told = fill.FILL[Emit.OPERATION_RESULT]

    def tell(moment: Any, move: Any) -> Any:
        answer = told(moment, move)
        if moment.facts.operation.method != method:
            return answer
        return fill.Answer(answer.id, change(answer.result))  # type: ignore[union-attr]

    put_item(fill.FILL, Emit.OPERATION_RESULT, tell)


def failing(code: str, instead: str) -> None:
    """Let one code of the store be told as another one."""
    from localagent.core import fill
    from localagent.protocol.codes import Code
    from statemachines.rows import Emit

    told = fill.FILL[Emit.OPERATION_ERROR]

    def tell(moment: Any, move: Any) -> Any:
        answer: Any = told(moment, move)
        return fill.Answer(answer.id, Code(instead)) if answer.result == code else answer

    put_item(fill.FILL, Emit.OPERATION_ERROR, tell)
