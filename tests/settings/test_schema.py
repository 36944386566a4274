"""Three readers of one model agree: the decoder that decides, the explanation for people, the published schema."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import inspect
from msgspec.inspect import BoolType, DictType, IntType, LiteralType, StrType, StructType, Type, UnionType, VarTupleType

from localagent.settings import explain, schema
from localagent.settings.model import Settings

from .kit import BENCH
from .schema_reader import is_valid

FILE = Path(schema.__file__).with_name(schema.FILE)
SCHEMA = json.loads(FILE.read_bytes())

scalars = st.none() | st.booleans() | st.integers(-1, 101) | st.sampled_from(["", "a", "max", "5m", 1.5, 2**63, 2.0])


def values(kind: Type) -> st.SearchStrategy[Any]:
    """Values that mostly have the type, and now and then have not."""
    wrong = scalars | st.just([]) | st.just({})
    return st.integers(0, 40).flatmap(lambda roll: wrong if roll == 29 else _right(kind))


def later(kind: Type) -> st.SearchStrategy[Any]:
    return st.deferred(lambda: values(kind))


def _right(kind: Type) -> st.SearchStrategy[Any]:
    if isinstance(kind, StructType):
        optional = {each.encode_name: later(each.type) for each in kind.fields}
        return st.fixed_dictionaries({}, optional=optional | {"unknown": scalars})
    if isinstance(kind, DictType):
        return st.dictionaries(st.sampled_from(["a", "b"]), later(kind.value_type))
    if isinstance(kind, VarTupleType):
        return st.lists(later(kind.item_type), max_size=2)
    if isinstance(kind, UnionType):
        return st.one_of(*(_right(each) for each in kind.types))
    if isinstance(kind, LiteralType):
        return st.sampled_from(kind.values)
    if isinstance(kind, IntType):
        return st.integers(kind.ge, min(kind.le or 99, 99))
    if isinstance(kind, StrType):
        return st.sampled_from(["a", "a-b"])
    return st.booleans() if isinstance(kind, BoolType) else st.none()


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=150)
@given(values(inspect.type_info(Settings)))
def test_three_readers_agree(value: object) -> None:
    try:
        msgspec.convert(value, Settings, strict=True)
        good = True
    except msgspec.ValidationError:
        good = False
    faults = list(explain.mismatches(value, Settings))
    assert (not faults) is good
    assert is_valid(value, SCHEMA, SCHEMA) is good
    for fault in faults:  # each is a place of the value, or a member that is missing there
        below = value
        for name in fault.path[:-1]:
            below = below[name]  # type: ignore[index]
        assert fault.expected != fault.found


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"schema_version": 2, "providers": {"custom": {"bench": BENCH}, "catalog": {"enabled": ["bench/tiny-chat"]}}},
        {"agent": {"model": {"provider": None}}, "localagent": {"runner": "scripted", "script": "/x"}},
    ],
)
def test_good_settings_are_valid(value: object) -> None:
    assert is_valid(value, SCHEMA, SCHEMA)


def test_the_committed_schema_is_what_the_model_gives() -> None:
    assert FILE.read_bytes() == schema.document()
    assert SCHEMA["$schema"].endswith("2020-12/schema")
    assert not any("``" in each.get("description", "") for each in SCHEMA["$defs"].values())
