"""Text on its way to a screen or a file: cleaned, redacted, cut. Pure, and below everything that shows or stores text.

===============  ======================================================================================
:mod:`.clean`    control cleaning, whole and in pieces (CRED-10); lone surrogates
:mod:`.scan`     how this room looks at text: windows, readers, case
:mod:`.steps`    the seven steps of CRED-11, each written once
:mod:`.redact`   redaction of texts, payloads and what is shown (CRED-11 to CRED-13); SET-09
:mod:`.stream`   one assistant segment: pieces in, texts of deltas out (D74, D81)
:mod:`.cut`      parts within a bound
===============  ======================================================================================

Order matters: clean, then redact, then cut. Foreign text is scrubbed before anything else.
"""

from .clean import Cleaner, clean, scrub
from .cut import fit, live_parts, parts
from .redact import collides, display, redact, redact_payload, secret_like, shown, shown_name
from .stream import DeltaStream

__all__ = [
    "Cleaner",
    "DeltaStream",
    "clean",
    "collides",
    "display",
    "fit",
    "live_parts",
    "parts",
    "redact",
    "redact_payload",
    "scrub",
    "secret_like",
    "shown",
    "shown_name",
]
