"""Every place where a value does not have the type of its struct, for people: msgspec alone names the first one only.

Loaded when something is wrong, and by ``settings check``. Agrees with ``msgspec.convert``: there are faults exactly if
that refuses (a property test).
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import inspect
from msgspec.inspect import (
    AnyType,
    BoolType,
    DictType,
    IntType,
    LiteralType,
    NoneType,
    StrType,
    StructType,
    Type,
    UnionType,
    VarTupleType,
)

from .faults import Path, kind, listed


class Mismatch(NamedTuple):
    """A place, what was expected there, and what kind of value was found."""

    path: Path
    expected: str
    found: str


def mismatches(value: object, struct: type) -> Iterator[Mismatch]:
    """Yield all mismatches of ``value`` with a struct, in the order of the struct's fields."""
    return _walk(value, inspect.type_info(struct), ())


def _walk(value: Any, wanted: Type, path: Path) -> Iterator[Mismatch]:
    if isinstance(wanted, AnyType):
        return
    if isinstance(wanted, UnionType):
        if value is None and any(isinstance(each, NoneType) for each in wanted.types):
            return
        (wanted, *_) = (each for each in wanted.types if not isinstance(each, NoneType))
        for each in _walk(value, wanted, path):
            own = each.path == path and isinstance(wanted, StrType | IntType | LiteralType | StructType)
            yield each._replace(expected=f"{each.expected} or null") if own else each
    elif isinstance(wanted, StructType):
        yield from _struct(value, wanted, path)
    elif isinstance(wanted, DictType):
        yield from _items(value, wanted, path)
    elif isinstance(wanted, VarTupleType):
        yield from _list(value, wanted, path)
    elif not _fits(value, wanted):
        expected = described(wanted)
        found = kind(value)
        yield Mismatch(path, expected, "another one" if expected.startswith(found) else found)


def _struct(value: Any, wanted: StructType, path: Path) -> Iterator[Mismatch]:
    if not isinstance(value, dict):
        yield Mismatch(path, "an object", kind(value))
        return
    for field in wanted.fields:
        place = (*path, field.encode_name)
        if field.encode_name in value:
            yield from _walk(value[field.encode_name], field.type, place)
        elif field.required:
            yield Mismatch(place, described(field.type), "nothing")
    if wanted.forbid_unknown_fields:
        known = [field.encode_name for field in wanted.fields]
        for key in value:
            if key not in known:
                yield Mismatch((*path, key), f"no other keys than {listed(known).replace(' or ', ' and ')}", "it")


def _items(value: Any, wanted: DictType, path: Path) -> Iterator[Mismatch]:
    if not isinstance(value, dict):
        yield Mismatch(path, "an object", kind(value))
        return
    if wanted.max_length is not None and len(value) > wanted.max_length:
        yield Mismatch(path, f"at most {wanted.max_length} members", f"{len(value)}")
    for key, each in value.items():
        yield from _walk(each, wanted.value_type, (*path, key))


def _list(value: Any, wanted: VarTupleType, path: Path) -> Iterator[Mismatch]:
    if not isinstance(value, list):
        yield Mismatch(path, described(wanted), kind(value))
        return
    if wanted.max_length is not None and len(value) > wanted.max_length:
        yield Mismatch(path, f"at most {wanted.max_length} items", f"{len(value)}")
    for index, each in enumerate(value):
        yield from _walk(each, wanted.item_type, (*path, index))


def _fits(value: object, wanted: Type) -> bool:
    if isinstance(wanted, BoolType):
        return isinstance(value, bool)
    if isinstance(wanted, IntType):
        low, high = wanted.ge, wanted.le
        return type(value) is int and (low is None or value >= low) and (high is None or value <= high)
    if isinstance(wanted, LiteralType):
        return any(type(value) is type(each) and value == each for each in wanted.values)
    assert isinstance(wanted, StrType), wanted
    return isinstance(value, str) and (wanted.pattern is None or re.search(wanted.pattern, value) is not None)


def described(wanted: Type) -> str:
    """Say what a type wants."""
    if isinstance(wanted, LiteralType):
        words = [f'"{each}"' if isinstance(each, str) else f"the number {each}" for each in wanted.values]
        return listed(words)
    if isinstance(wanted, IntType):
        return _range(wanted.ge, wanted.le)
    if isinstance(wanted, StrType):
        return "a string" if wanted.pattern is None else f"a string that matches {wanted.pattern}"
    if isinstance(wanted, BoolType):
        return "true or false"
    return "a list" if isinstance(wanted, VarTupleType) else "an object"


def _range(low: int | None, high: int | None) -> str:
    if high is not None and high < 2**63 - 1:
        return f"a whole number from {low} to {high}"
    return f"a whole number, {low} or more"
