"""Cutting text to size, at scalar boundaries only. Text is redacted before it is cut: a cut must not split a secret."""

from collections.abc import Callable

from localagent.protocol.limits import LIMITS

Cost = Callable[[str], int]
"""What a text costs: additive, and at least 1 for each character."""


def utf8(text: str) -> int:
    """Return the length of ``text`` in UTF-8 bytes; a lone surrogate counts three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def fit(text: str, begin: int, most: int, cost: Cost = utf8) -> int:
    """Return where the longest part of ``text`` from ``begin`` on ends that costs at most ``most``.

    Time is linear in ``most``, or in the rest of the text when that is shorter.
    """
    whole = min(most, len(text) - begin)
    if cost(text[begin : begin + whole]) <= most:
        return begin + whole
    end = begin
    step = 1 << whole.bit_length()
    while step := step // 2:  # none can fit twice, because the next larger one did not
        if end + step <= begin + whole and (price := cost(text[end : end + step])) <= most:
            end += step
            most -= price
    return end


def parts(text: str, most: int, cost: Cost = utf8) -> list[str]:
    """Cut ``text`` into the fewest parts that cost at most ``most`` each; at least one, which may be empty."""
    cut = []
    begin = 0
    while begin < len(text):
        end = fit(text, begin, most, cost)
        if end == begin:
            raise ValueError(f"no character fits into {most}")
        cut.append(text[begin:end])
        begin = end
    return cut or [""]


def live_parts(text: str, most: int = LIMITS.live_chunk_bytes) -> list[str]:
    """Cut the text of a delta or a reconciliation into parts that an event can carry (BOUND-10)."""
    return parts(text, most)
