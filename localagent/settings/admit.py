"""Everything that startup admits, in one place and one order; all of it local (START-13 to START-28, START-39).

The order of codes is that of BASE-OP-83: configuration, profiles, provider. Servers are connected by whoever starts
the child, last, since that has effects.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from localagent.protocol.codes import Code
from localagent.sessions.clock import SYSTEM, CancelCheck, Clock, never, proceed
from localagent.sessions.paths import Root

from . import credentials, knowledge, load, mcp, profiles, providers
from .faults import Fault, Inadmissible
from .model import Settings
from .providers import Embedded
from .snapshot import Choice, Snapshot


def admit(
    root: Root,
    cwd: str,
    environ: Mapping[str, str],
    embedded: Embedded,
    *,
    settings: Settings | None = None,
    clock: Clock = SYSTEM,
    cancelled: CancelCheck = never,
) -> Snapshot:
    """Read and judge everything, ``settings`` only if they have not been loaded yet. ``cwd`` is canonical.

    Raises Inadmissible with ``configuration_invalid``, ``profile_invalid`` or ``provider_unavailable``, StoreError
    (``startup_failed``) if the key of approvals cannot be made, OSError if the process lacks something, Cancelled.
    Nothing is written but that key (MCPC-08).
    """
    if settings is None:
        settings = load.settings(root, cwd, environ)
    wallet = credentials.look(root, environ)
    definitions = mcp.definitions(root, cwd)
    approvals = settings.capabilities.mcp_approvals
    proceed(cancelled)
    servers = mcp.approved(root, definitions, approvals, environ, clock=clock, cancelled=cancelled)
    instructions = knowledge.instructions(root, cwd, settings.knowledge.instructions.additional_markdown_paths)
    skills, skipped = knowledge.skills(root, cwd, settings.knowledge.skills, environ, cancelled)
    subagents = profiles.subagents(root, settings.agent.subagents.disabled)
    primary = profiles.primary(root, settings.agent.primary_agent)
    known = providers.admitted(settings, wallet, embedded)
    return Snapshot(
        root=root,
        cwd=cwd,
        settings=settings,
        choice=providers.chosen(settings, environ, known, embedded),
        providers=known,
        instructions=instructions,
        skills=skills,
        profiles=subagents,
        primary_agent=primary,
        mcp_servers=servers,
        diagnostics=skipped,
    )


T = TypeVar("T")


@dataclass(slots=True)
class Examination:
    """What :func:`admit` would say, with every fault of every file instead of the first file's."""

    faults: list[tuple[Code, Fault]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What would be skipped."""
    settings: Settings | None = None
    choice: Choice | None = None
    servers: list[str] = field(default_factory=list)
    """MCP servers that startup would connect."""

    def attempt(self, step: Callable[[], T]) -> T | None:
        """Take a step; its result, or None and its faults kept."""
        try:
            return step()
        except Inadmissible as fault:
            self.faults += [(fault.code, each) for each in fault.faults]
            return None


def examine(root: Root, cwd: str, environ: Mapping[str, str], embedded: Embedded) -> Examination:
    """Look at everything that :func:`admit` does and go on after faults. Nothing is written, no key is made."""
    told = Examination()
    settings = told.settings = told.attempt(lambda: load.settings(root, cwd, environ))
    wallet = told.attempt(lambda: credentials.look(root, environ))
    definitions = told.attempt(lambda: mcp.definitions(root, cwd))
    if settings is None:
        return told
    if definitions is not None:
        approvals = settings.capabilities.mcp_approvals
        servers = told.attempt(lambda: mcp.approved(root, definitions, approvals, environ, create=False))
        told.servers = [server.name for server in servers or ()]
    additional = settings.knowledge.instructions.additional_markdown_paths
    told.attempt(lambda: knowledge.instructions(root, cwd, additional))
    told.notes += knowledge.skills(root, cwd, settings.knowledge.skills, environ)[1]
    told.attempt(lambda: profiles.subagents(root, settings.agent.subagents.disabled))
    told.attempt(lambda: profiles.primary(root, settings.agent.primary_agent))
    if wallet is not None:
        known = providers.admitted(settings, wallet, embedded)
        told.choice = told.attempt(lambda: providers.chosen(settings, environ, known, embedded))
    return told
