"""How this room looks at text: in windows, by readers that know when they met the end, and without regard to case.

One call of the regex engine keeps the interpreter lock to its end, so no call here sees more than a window
(RECIPES 4); what is longer is read in several. All of it is linear in the length of the text.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

WINDOW: Final = 64 * 1024
"""Characters that one call of the regex engine may look at."""

SHORT: Final = 256
"""Characters below which it is fastest to look for all openers at once."""

OVERLAP: Final = 64
"""How far a window looks into the next one. No opener is longer, so none is lost between two."""


def windows(text: str) -> Iterator[str]:
    """Cut ``text`` into pieces of at most a window."""
    return (text[start : start + WINDOW] for start in range(0, len(text), WINDOW))


def fold(text: str) -> str:
    """Return ``text`` in lower case, character by character: the result is as long as ``text``.

    Four characters outside ASCII are cases of an ASCII letter. ``lower`` knows the Kelvin sign; long s and dotless i
    it keeps, and dotted I is the one character that it makes two of.
    """
    if len(text) > WINDOW:
        return "".join(map(fold, windows(text)))
    if text.isascii():
        return text.lower()
    return text.replace("\u0130", "i").lower().replace("\u017f", "s").replace("\u0131", "i")


def is_word(character: str) -> bool:
    r"""Tell whether ``character`` is a word character, as ``\w`` does."""
    return character == "_" or character.isalnum()


class Openers:
    """Finds what may begin a secret. A match is never longer than the overlap.

    In a short text one search for all patterns is fastest; in a longer one a search for each, because the engine looks
    for a literal beginning much faster than for alternatives.
    """

    __slots__ = ("_all", "_each")

    def __init__(self, patterns: Iterable[str]) -> None:
        patterns = tuple(patterns)
        self._all = re.compile("|".join(patterns))
        self._each = tuple(map(re.compile, patterns))

    def find(self, text: str, begin: int) -> Iterable[tuple[int, int]]:
        """Return where any pattern matches from ``begin`` on, in order.

        A lookahead may take the end of a window for the end of the text: who relies on it must look again.
        """
        if len(text) - begin < SHORT:
            return [match.span() for match in self._all.finditer(text, begin)]
        return self._search(text, begin)

    def _search(self, text: str, begin: int) -> Iterator[tuple[int, int]]:
        for start in range(begin, len(text), WINDOW):
            stop = start + WINDOW
            found = [match.span() for each in self._each for match in each.finditer(text, start, stop + OVERLAP)]
            found.sort()
            yield from (span for span in found if span[0] < stop)


def trie(words: Iterable[str], *, beginnings: bool = False) -> str:
    """Return a pattern for any of ``words`` or, with ``beginnings``, for the first one, two, ... characters of any."""
    rests: dict[str, set[str]] = {}
    for word in words:
        rests.setdefault(word[0], set()).add(word[1:])
    branches = []
    for first, after in sorted(rests.items()):
        optional = "?" if beginnings or "" in after else ""
        after.discard("")
        more = f"(?:{trie(after, beginnings=beginnings)}){optional}" if after else ""
        branches.append(re.escape(first) + more)
    return "|".join(branches)


class Reader:
    """Reads ``text`` from ``at`` on. ``met_end`` turns true when more text could have changed what was read."""

    __slots__ = ("at", "met_end", "text")

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.met_end = False

    def run(self, characters: re.Pattern[str]) -> int:
        """Take what ``characters``, a possessive repeat, matches, and return how many characters that were."""
        begin = self.at
        stop = begin + WINDOW
        while (match := characters.match(self.text, self.at, stop)) and match.end() == stop:
            self.at = stop
            stop += WINDOW
        self.at = match.end() if match else self.at
        if self.at == len(self.text):
            self.met_end = True
        return self.at - begin

    def take(self, literal: str) -> bool:
        """Take ``literal`` if it comes next."""
        if self.text.startswith(literal, self.at):
            self.at += len(literal)
            return True
        if self.at + len(literal) > len(self.text) and literal.startswith(self.text[self.at :]):
            self.met_end = True
        return False

    def word_goes_on(self) -> bool:
        """Tell whether a word character comes next."""
        if self.at == len(self.text):
            self.met_end = True
            return False
        return is_word(self.text[self.at])

    def quoted(self) -> bool:
        r"""Take a quoted string if one comes next. A backslash takes the character after it along.

        If all closing quotes have a backslash before them, the first one closes.
        """
        opening = self.at
        quote = self.text[opening : opening + 1]
        if quote not in _INSIDE:
            return False
        self.at += 1
        while self.run(_INSIDE[quote]):
            pass  # again, because a window may end between a backslash and its character
        if self.take(quote):
            return True
        self.met_end = True
        self.at = self.text.find(quote, opening + 1) + 1 or opening
        return self.at > opening


_INSIDE: Final = {quote: re.compile(rf"(?:[^{quote}\\]++|\\.)*+", re.DOTALL) for quote in "\"'"}
