"""``just bench``: how fast, as ratios within one run, medians of several rounds. Never part of the tests."""

from . import core, process

core.report()
process.report()
