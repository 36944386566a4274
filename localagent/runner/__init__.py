"""The agent: what runs a turn. Called by the shell with plain arguments, a session handle and a sink.

================  ==================================================================================
:mod:`.turn`      one turn, from its prompt to its last word; no exception leaves it
:mod:`.stage`     what a runner may do meanwhile, and when it must stop
:mod:`.recorder`  segments, activities, bounds: what is shown and stored, each at the right moment
:mod:`.scribe`    records on their way into the store; what becomes of those that fail
:mod:`.provider`  the interface of runners
:mod:`.scripted`  the embedded one: plays a script (:mod:`.script`, docs/script.md)
:mod:`.unbuilt`   says that the runner of a provider is yet to be built
:mod:`.faults`    a handle whose appends fail on request
:mod:`.sink`      the way out of a turn, which the shell implements
================  ==================================================================================

No thread is started here, no clock read and no file opened but a script's: time, ids, the handle, the sink and the
way to append without waiting all come in as arguments.
"""

from typing import Final

PROVIDER: Final = "scripted"
MODEL: Final = "demo"
"""The embedded default provider and its model (:mod:`.scripted`)."""
