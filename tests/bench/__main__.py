"""``just bench``: how fast, as ratios within one run, medians of several rounds. Never part of the tests.

Modules are compiled first, as an installation does; an environment may forbid Python to do so on its own.
"""

import compileall
from pathlib import Path

from . import catalog, core, process, sessions

for package in ("statemachines", "localagent", "tests"):
    compileall.compile_dir(Path(__file__).parents[2] / package, quiet=1)

core.report()
process.report()
sessions.report()
catalog.report()
