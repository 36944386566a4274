"""What all tests share: the Hypothesis profiles, and how far coverage reaches."""

import os

from .kit import profiles

profiles.load()

if "PYTEST_XDIST_WORKER" in os.environ:
    # What the workers start is not measured: it takes children twice as long to start, and what the gate asks about
    # is pure and runs in the tests themselves.
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)
