"""How the contract measures: UTF-8 bytes of a text, compact bytes of a JSON value, containers of a JSON value."""

import math
import re
from collections.abc import Iterator
from typing import Final

from msgspec.json import Encoder

compact: Final = Encoder(order="deterministic").encode
"""Write a value as compact JSON: no white space, only mandatory escapes, objects by key (BASE-OP-48, CT-OP-09).

Structs keep the order they declare. NaN and the infinities become ``null`` in silence: see :func:`is_finite`.
Raises ValueError for a lone surrogate and for an integer of over 4,300 digits, which JSON decoding refuses as well.
"""

_CONTAINERS: Final = (dict, list, tuple)


def utf8_bytes(text: str) -> int:
    """Return the length of ``text`` in UTF-8 bytes, before JSON escaping. A lone surrogate counts three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def compact_bytes(value: object) -> int:
    """Return the length of ``value`` as compact JSON (CT-40, CT-41, CT-65, CT-66). Raises as :data:`compact` does."""
    return len(compact(value))


def depth(value: object) -> int:
    """Return how many containers deep ``value`` is: the root counts one, a scalar none (BOUND-03, CT-42, CT-OP-14)."""
    levels = 0
    containers = [value] if isinstance(value, _CONTAINERS) else []
    while containers:
        levels += 1
        containers = [child for each in containers for child in _children(each) if isinstance(child, _CONTAINERS)]
    return levels


def members(value: object) -> int:
    """Return how many members all objects in a decoded ``value`` have together."""
    count = 0
    pending = [value]
    for each in pending:  # grows while it is walked
        if type(each) is dict:
            count += len(each)
            pending.extend(each.values())
        elif type(each) is list:
            pending.extend(each)
    return count


def without_strings(text: bytes) -> bytes:
    """Return JSON ``text`` without its strings: what is left of it are brackets, signs, numbers and words."""
    return _remove_strings(b"", text)


_remove_strings = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL).sub  # possessive, so that time is linear


def is_finite(value: object) -> bool:
    """Tell whether no number in ``value`` is NaN or infinite, so that JSON can carry it."""
    pending = [value]
    for each in pending:  # grows while it is walked
        if isinstance(each, float):
            if not math.isfinite(each):
                return False
        elif isinstance(each, _CONTAINERS):
            pending.extend(_children(each))
    return True


def _children(container: object) -> Iterator[object]:
    assert isinstance(container, _CONTAINERS)
    return iter(container.values() if isinstance(container, dict) else container)
