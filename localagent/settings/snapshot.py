"""What startup admits, once per child: plain frozen data that catalog, selection and runners read and never change.

Settings changed later need a new child (CAT-80, SET-01). Only credentials may be looked up again (CRED-02), by
:func:`localagent.settings.credentials.look`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NoReturn

from localagent.protocol.results import Effort
from localagent.sessions.paths import Root

from .model import Settings

ProviderKind = Literal["scripted", "anthropic", "openai_compatible", "unsupported"]
"""``scripted``: embedded; ``anthropic``: by key; ``openai_compatible``: from ``providers.custom``; ``unsupported``:
``openai-codex`` and ``claude-subscription``, which are built in and never ready here (CRED-03)."""

Authentication = Literal["ready", "authentication_unavailable"]
"""The words of EXT-STATUS-25; ``not_checked`` is the catalog's own, for providers that nothing uses."""

READY: Final[Authentication] = "ready"
UNAVAILABLE: Final[Authentication] = "authentication_unavailable"


class Credential:
    """A key, and where it came from. It never prints, compares, pickles or serialises; :meth:`reveal` is the way."""

    __slots__ = ("_value", "name", "source")

    def __init__(self, source: Literal["environment", "auth.json"], name: str, value: str) -> None:
        self.source: Final = source
        self.name: Final = name
        """The variable, or the record of ``auth.json``."""
        self._value: Final = value

    def reveal(self) -> str:
        """The key itself, for the one request that needs it."""
        return self._value

    def __repr__(self) -> str:
        return f"<credential from {self.source}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a credential is not copied out of its process")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider as settings and environment made it at startup."""

    id: str
    kind: ProviderKind
    label: str | None = None
    """The name for people; ``providers.custom`` alone has one (SET-08)."""
    base_url: str | None = None
    """Without trailing slashes; None for all but ``openai_compatible``."""
    enabled: tuple[str, ...] = ()
    """Models of it that ``providers.catalog.enabled`` admits, in its order, repeats dropped (CAT-23)."""
    api_key_env_var: str | None = None
    """The variable that holds the key; None: no authentication (CRED-01)."""
    use_responses_endpoint: bool = True
    reasoning_protocol: Literal["gpt-like", "anthropic-like"] | None = None
    extra_models: tuple[str, ...] = ()
    """Trimmed, first occurrences, in the configured order (CACHE-04)."""
    models_dev_provider: str | None = None
    """Of an ``openai_compatible`` provider: the configured value, or the id (CACHE-04)."""
    request_headers: tuple[tuple[str, Literal["conversation_id"]], ...] = ()
    cache_ttl: Literal["5m", "1h"] | None = None
    """Of ``anthropic`` alone."""
    credential: Credential | None = field(default=None, repr=False)
    authentication: Authentication = UNAVAILABLE
    """As found at startup: ``ready`` with a credential, or where none is needed. Local, no request (START-39)."""

    @property
    def is_ready(self) -> bool:
        """Whether it was found usable at startup."""
        return self.authentication == READY


@dataclass(frozen=True, slots=True)
class Choice:
    """The selection at startup (SET-05): what is selected until a session brings or sets another."""

    provider: str
    model: str
    effort: Effort
    """``agent.model.thinking_level`` in the words of the wire: the requested effort, whether or not it applies."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One file of instructions (PROF-01)."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill that won its name (PROF-03, PROF-04)."""

    name: str
    path: str
    """Of its ``SKILL.md``."""
    front: Mapping[str, str]
    text: str
    """The file without its front matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A subagent profile or the primary agent (PROF-05 to PROF-08)."""

    id: str
    path: str
    name: str
    description: str
    prompt: str
    model: tuple[str, str] | None = None
    """Provider and model."""
    reasoning: Effort | None = None
    output_schema: str | Mapping[str, Any] | None = None
    """A word of PROF-06, or the object of ``inline:``."""
    disabled_tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """An MCP server that is approved (MCPC-05), its references replaced (MCPC-07). Values may hold secrets: no repr."""

    name: str
    source: str
    """The canonical path of the file that defines it."""
    transport: Literal["stdio", "http"]
    timeout_s: int
    command: str = field(default="", repr=False)
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    oauth: Mapping[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything admitted. Mappings are read-only."""

    root: Root
    cwd: str
    """Canonical."""
    settings: Settings = field(repr=False)
    """Global and project settings merged (SET-03), defaults filled in (SET-06)."""
    choice: Choice
    providers: Mapping[str, Provider]
    """By id, in this order: the embedded one, the three built-in ones, custom ones as configured."""
    instructions: tuple[Instruction, ...] = field(default=(), repr=False)
    skills: Mapping[str, Skill] = field(default_factory=dict, repr=False)
    """By name, sorted; disabled ones are gone."""
    profiles: Mapping[str, Profile] = field(default_factory=dict, repr=False)
    """Subagents by id, sorted; disabled ones are gone."""
    primary_agent: Profile | None = field(default=None, repr=False)
    mcp_servers: tuple[McpServer, ...] = ()
    """Those that startup has to connect, by name (MCPC-09)."""
    diagnostics: tuple[str, ...] = ()
    """What was skipped, for people; no values, no secrets."""

    @property
    def provider(self) -> Provider:
        """The provider chosen at startup."""
        return self.providers[self.choice.provider]

    @property
    def script(self) -> str | None:
        """The script of the ``scripted`` runner, if the settings name one; an absolute path."""
        return self.settings.localagent.script

    @property
    def enabled(self) -> frozenset[tuple[str, str]]:
        """All pairs of provider and model that ``providers.catalog.enabled`` admits; known providers only."""
        return frozenset((each.id, model) for each in self.providers.values() for model in each.enabled)

    @property
    def asks_for_bash(self) -> bool:
        """Whether every bash command needs an approval (SET-10)."""
        jev = self.settings.internal_tooling.jev
        return jev.enabled and jev.bash_protection.enabled
