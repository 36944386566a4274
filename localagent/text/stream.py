"""One assistant segment on its way to the screen: cleaned, redacted and sent on as soon as may be (CRED-10, D81).

A delta must show nothing that redaction of the whole segment would hide, and the deltas joined are to be that
redaction (D74). So each step of CRED-11 becomes a *stage* on the way: it works on what the stage before it lets
through, and holds what may begin or continue a secret. What a stage lets through does not depend on how its text was
cut, so neither does what the last one lets through.

Two things end the deltas of a segment early, and leave the rest to its reconciliation: the opener of a PEM block,
because a block may be of any length, and too much held text. Nothing is dropped *before* redaction: that could take the
opener of a secret away and show the rest.
"""

import re
from typing import Final

from .clean import Cleaner
from .cut import live_parts
from .redact import redact
from .scan import Openers, is_word
from .steps import BLOCK_BEGINNING, BLOCK_OPENER, STEPS, WORD_START, Step, is_plain

HELD_CHARACTERS: Final = 1024
"""More held characters than this mute a segment (RECIPES 5)."""


class DeltaStream:
    """The text of one assistant segment: pieces from the provider in, texts of deltas out.

    What :meth:`feed` and :meth:`finish` return, joined, is :meth:`reconciled`; of a muted segment, a beginning of it.
    """

    __slots__ = ("_accepted", "_beginning", "_chain", "_cleaner", "muted")

    def __init__(self) -> None:
        self.muted = False
        """True when no more deltas come of this segment."""
        self._cleaner = Cleaner()
        self._accepted: list[str] = []
        self._chain = _Chain()
        self._beginning = ""
        """What may be the beginning of an opener. The chain has yet to see it."""

    @property
    def text(self) -> str:
        """The clean text so far, not redacted."""
        self._accepted = ["".join(self._accepted)]
        return self._accepted[0]

    @property
    def held(self) -> int:
        """How many characters wait for what comes after them."""
        return len(self._beginning) + self._chain.held

    def reconciled(self) -> str:
        """Return the redaction of the text so far in one piece: what replaces the deltas."""
        return redact(self.text)

    def feed(self, piece: str) -> list[str]:
        """Take the next piece and return what may leave now, each text small enough for one delta (BOUND-10)."""
        return self._accept(self._cleaner.feed(piece), complete=False)

    def finish(self) -> list[str]:
        """Return what was held: there is no more to come."""
        return self._accept(self._cleaner.finish(), complete=True)

    def _accept(self, text: str, *, complete: bool) -> list[str]:
        if text:
            self._accepted.append(text)
        shown = "" if self.muted else self._let_through(text, complete=complete)
        return live_parts(shown) if shown else []

    def _let_through(self, text: str, *, complete: bool) -> str:
        text = self._beginning + text
        self._beginning = ""
        if is_plain(text) and not (complete or self._chain.held):
            # No stage has anything to do, unless an opener begins at the end. Most pieces get no further than here.
            seen = self._chain.after_word + text
            beginning = _BEGINNING.search(seen, max(0, len(seen) - _LONGEST))
            hold = len(text) - (len(seen) - beginning.start() if beginning else 0)
            self._beginning = text[hold:]
            self._chain.see(text[:hold])
            return text[:hold]
        shown = self._chain.feed(text, complete=complete)
        if self._chain.met_block or self._chain.held > HELD_CHARACTERS:
            self.muted = True
            self._chain = _Chain()
        return shown


class _Chain:
    """The steps, one after the other, on a text that arrives in pieces."""

    __slots__ = ("_block", "_stages", "held", "met_block")

    def __init__(self) -> None:
        self.held = 0
        self.met_block = False
        """True once a PEM block began, of whatever kind; from there on nothing is let through."""
        self._block = ""
        """What may be the beginning of a PEM block."""
        self._stages = [_Stage(step) for step in STEPS]

    @property
    def after_word(self) -> str:
        """A word character, if the text seen so far ends in one. While nothing is held, all stages have seen it."""
        return self._stages[0].after_word

    def see(self, text: str) -> None:
        """Take note of a text that concerns no stage, while none holds anything."""
        if text:
            after_word = "_" if is_word(text[-1]) else ""
            for stage in self._stages:
                stage.after_word = after_word

    def feed(self, text: str, *, complete: bool) -> str:
        """Take the next piece and return what the last stage lets through."""
        text = self._before_block(text, complete=complete)
        complete = complete and not self.met_block
        for stage in self._stages:
            text = stage.feed(text, complete=complete)
        self.held = len(self._block) + sum(len(stage.held) for stage in self._stages)
        return text

    def _before_block(self, text: str, *, complete: bool) -> str:
        text = self._block + text
        for begin, _ in _BLOCK.find(text, 0):
            self.met_block = True
            return text[:begin]
        beginning = None if complete else _BLOCK_BEGINNING.search(text, max(0, len(text) - len(BLOCK_OPENER)))
        hold = beginning.start() if beginning else len(text)
        self._block = text[hold:]
        return text[:hold]


class _Stage:
    """One step, on a text that arrives in pieces."""

    __slots__ = ("after_word", "held", "step")

    def __init__(self, step: Step) -> None:
        self.step = step
        self.held = ""
        self.after_word = ""
        """A word character, if what is held stands after one: all that a step looks at of the text before."""

    def feed(self, piece: str, *, complete: bool) -> str:
        text = self.after_word + self.held + piece
        shown, hold = self.step.run(text, len(self.after_word), complete=complete)
        self.held = text[hold:]
        self.after_word = "_" if hold and is_word(text[hold - 1]) else ""
        return shown


_BLOCK: Final = Openers([BLOCK_OPENER])
_BLOCK_BEGINNING: Final = re.compile(rf"{BLOCK_BEGINNING}\Z")
_ANYWHERE: Final = "|".join([BLOCK_BEGINNING, *(step.beginning for step in STEPS if step.anywhere)])
_WORDS: Final = "|".join(step.beginning for step in STEPS if not step.anywhere)
_BEGINNING: Final = re.compile(rf"(?:{_ANYWHERE}|{WORD_START}(?:{_WORDS}))\Z")
_LONGEST: Final = max(len(BLOCK_OPENER), *(step.longest for step in STEPS))
