"""How much Hypothesis tries: ``fast`` by default, ``deep`` when LOCALAGENT_HYPOTHESIS says so (``just deep``).

``fast`` is derandomized: the same examples every time, so a red build is red for everybody. ``deep`` draws anew.
"""

import os
from typing import Final

from hypothesis import HealthCheck, settings

QUIET: Final = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
DEEP: Final = os.environ.get("LOCALAGENT_HYPOTHESIS") == "deep"


def load() -> None:
    """Register both profiles and load the one that is asked for."""
    common = settings(deadline=None, database=None, print_blob=True, suppress_health_check=QUIET)
    settings.register_profile("fast", common, derandomize=True, max_examples=50, stateful_step_count=40)
    settings.register_profile("deep", common, max_examples=2_000, stateful_step_count=80)
    settings.load_profile("deep" if DEEP else "fast")


def examples(fast: int, deep: int) -> int:
    """How many examples a test wants, where the profile's own number does not fit it."""
    return deep if DEEP else fast
