"""The keys of ``settings.json`` that we honour, with their types, bounds and defaults (SET-04, SET-06 to SET-10).

Unknown keys are ignored, except in ``capabilities.tools.code_mode`` and its ``limits``. A member may be null only where
its type says so; UNSET means absent. What a type cannot say is in :mod:`.rules`. The published JSON Schema is made from
these structs.
"""

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

ID: Final = "^[A-Za-z0-9_-]+$"
PROVIDER_ID: Final = "^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$"

Whole = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Positive = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Seconds = Annotated[int, Meta(ge=1, le=600)]
HookSeconds = Annotated[int, Meta(ge=1, le=60)]
HookBytes = Annotated[int, Meta(ge=1, le=65536)]
EffortWord = Literal["default", "low", "medium", "high", "xhigh", "x_high", "max"]
HookPayload = Literal["redacted", "full"]
FailurePolicy = Literal["ignore", "warn", "block", "fail"]


class Group(Struct, frozen=True, kw_only=True):
    """An object of the settings. Unknown members are ignored (SET-04)."""


class ModelChoice(Group, frozen=True):
    """``agent.model``: what is selected at startup, unless the environment says otherwise (SET-05)."""

    provider: str | None = None
    model: str | None = None
    thinking_level: EffortWord | None = "default"


class ContextOverride(Group, frozen=True):
    """A member of ``agent.context.model_overrides``: at least one of the three."""

    max_tokens: Whole | UnsetType = UNSET
    reserve_tokens: Whole | UnsetType = UNSET
    keep_recent_tokens: Whole | UnsetType = UNSET


class Context(Group, frozen=True):
    """``agent.context``; a cached ``context_window`` replaces ``max_tokens``."""

    enabled: bool = True
    max_tokens: Whole = 128_000
    reserve_tokens: Whole = 16_384
    keep_recent_tokens: Whole = 20_000
    model_overrides: dict[str, ContextOverride] = field(default_factory=dict)


class AutoCompaction(Group, frozen=True):
    """``agent.compaction.auto``; enabled needs one threshold. 0 compactions a run: no cap."""

    enabled: bool = True
    threshold_percent: Annotated[int, Meta(ge=1, le=100)] | None = 80
    threshold_tokens: Positive | None = None
    max_compactions_per_run: Whole = 4


class Compaction(Group, frozen=True):
    """``agent.compaction``: both names or neither, judged when used."""

    provider: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    auto: AutoCompaction = field(default_factory=AutoCompaction)


class SubagentExecution(Group, frozen=True):
    """``agent.subagents.execution``; the depth is clamped to 1 to 4, see :func:`.rules.depth`."""

    absolute_paths: bool = True
    max_depth: Whole = 2


class Subagents(Group, frozen=True):
    """``agent.subagents``."""

    disabled: tuple[str, ...] = ()
    execution: SubagentExecution = field(default_factory=SubagentExecution)
    schema_validation_max_retries: Annotated[int, Meta(ge=0, le=5)] = 2


class Agent(Group, frozen=True):
    """``agent``."""

    model: ModelChoice = field(default_factory=ModelChoice)
    primary_agent: Annotated[str, Meta(pattern=ID)] | None = None
    context: Context | None = None
    compaction: Compaction = field(default_factory=Compaction)
    subagents: Subagents = field(default_factory=Subagents)


class CatalogChoices(Group, frozen=True):
    """``providers.catalog``: which models may be chosen, as ``provider/model``; none by default."""

    enabled: tuple[str, ...] = ()


class RequestHeader(Group, frozen=True):
    """Where the value of a header of a custom provider's requests comes from."""

    source: Literal["conversation_id"]


class CustomProvider(Group, frozen=True):
    """A member of ``providers.custom``: an endpoint that speaks as OpenAI does (SET-08)."""

    label: str
    base_url: str
    api_key_env_var: str | UnsetType = UNSET
    use_responses_endpoint: bool = True
    reasoning_protocol: Literal["gpt-like", "anthropic-like"] | UnsetType = UNSET
    extra_models: Annotated[tuple[str, ...], Meta(max_length=64)] = ()
    models_dev_provider: Annotated[str, Meta(pattern=PROVIDER_ID)] | UnsetType = UNSET
    request_headers: Annotated[dict[str, RequestHeader], Meta(max_length=32)] = field(default_factory=dict)
    supports_text_verbosity: Any = UNSET
    fast_mode: Any = UNSET
    """Both are accepted and unused; their shape is the published backend's affair."""


class Anthropic(Group, frozen=True):
    """``providers.anthropic``."""

    cache_ttl: Literal["5m", "1h"] | None = "1h"


class Streaming(Group, frozen=True):
    """``providers.streaming``: how long a stream may say nothing of meaning."""

    semantic_progress_timeout_seconds: Seconds = 60
    subagent_semantic_progress_timeout_seconds: Seconds = 120


class Providers(Group, frozen=True):
    """``providers``."""

    catalog: CatalogChoices = field(default_factory=CatalogChoices)
    custom: dict[str, CustomProvider] = field(default_factory=dict)
    anthropic: Anthropic = field(default_factory=Anthropic)
    streaming: Streaming = field(default_factory=Streaming)


class PathTool(Group, frozen=True):
    """Settings of a tool that takes paths."""

    absolute_paths: bool = True


class BashTool(PathTool, frozen=True):
    """``capabilities.tools.bash``."""

    shell_expansion: bool = True


class VisionModel(Group, frozen=True):
    """The model that looks at images."""

    provider: str
    model: str


class ViewImage(Group, frozen=True):
    """``capabilities.tools.view_image``."""

    vision_model: VisionModel | None = None
    max_image_bytes: Whole = 5 * 1024 * 1024


class CodeModeLimits(Group, frozen=True, forbid_unknown_fields=True):
    """``capabilities.tools.code_mode.limits``; unknown members are errors."""

    max_source_bytes: Whole = 64 * 1024
    max_inner_calls: Whole = 200
    max_runtime_ms: Whole = 60_000
    max_memory_bytes: Whole = 32 * 1024 * 1024
    max_inner_result_bytes: Whole = 1024 * 1024
    max_total_result_bytes: Whole = 8 * 1024 * 1024
    max_return_bytes: Whole = 256 * 1024


class CodeMode(Group, frozen=True, forbid_unknown_fields=True):
    """``capabilities.tools.code_mode``; unknown members are errors."""

    enabled: bool = True
    compact_direct_tools: bool = False
    nudges_enabled: bool = True
    disabled: tuple[str, ...] = ()
    limits: CodeModeLimits = field(default_factory=CodeModeLimits)


class Tools(Group, frozen=True):
    """``capabilities.tools``. Unknown names among the disabled ones do nothing."""

    disabled: tuple[str, ...] = ()
    read: PathTool = field(default_factory=PathTool)
    hash_edit: PathTool = field(default_factory=PathTool)
    write: PathTool = field(default_factory=PathTool)
    grep: PathTool = field(default_factory=PathTool)
    find: PathTool = field(default_factory=PathTool)
    list_files: PathTool = field(default_factory=PathTool)
    ast_grep: PathTool = field(default_factory=PathTool)
    bash: BashTool = field(default_factory=BashTool)
    view_image: ViewImage = field(default_factory=ViewImage)
    code_mode: CodeMode = field(default_factory=CodeMode)


class Capabilities(Group, frozen=True):
    """``capabilities``. Of approvals the outer object alone is judged: what is none approves nothing (MCPC-05)."""

    tools: Tools = field(default_factory=Tools)
    mcp_approvals: dict[str, Any] = field(default_factory=dict)


class Instructions(Group, frozen=True):
    """``knowledge.instructions``: absolute paths that end in ``.md`` (PROF-01)."""

    additional_markdown_paths: tuple[str, ...] = ()


class Skills(Group, frozen=True):
    """``knowledge.skills``: absolute paths of skill roots (PROF-03), and names of skills that are not wanted."""

    additional_paths: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


class Knowledge(Group, frozen=True):
    """``knowledge``."""

    instructions: Instructions = field(default_factory=Instructions)
    skills: Skills = field(default_factory=Skills)


class Hook(Group, frozen=True):
    """One hook; what is absent is taken from ``automation.hooks`` (PROF-09)."""

    command: str
    label: str | UnsetType = UNSET
    include_tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()
    payload: HookPayload | UnsetType = UNSET
    failure_policy: FailurePolicy | UnsetType = UNSET
    timeout_seconds: HookSeconds | UnsetType = UNSET
    stdout_max_bytes: HookBytes | UnsetType = UNSET
    stderr_max_bytes: HookBytes | UnsetType = UNSET


class Hooks(Group, frozen=True):
    """``automation.hooks`` (PROF-09); ``block`` may stand in ``before_tool`` only."""

    enabled: bool = False
    payload: HookPayload = "redacted"
    failure_policy: FailurePolicy = "warn"
    timeout_seconds: HookSeconds = 5
    stdout_max_bytes: HookBytes = 8192
    stderr_max_bytes: HookBytes = 8192
    before_tool: tuple[Hook, ...] = ()
    after_tool: tuple[Hook, ...] = ()
    after_assistant: tuple[Hook, ...] = ()
    after_reasoning: tuple[Hook, ...] = ()


class Automation(Group, frozen=True):
    """``automation``."""

    hooks: Hooks = field(default_factory=Hooks)


class Titles(Group, frozen=True):
    """``sessions.titles``: made only if enabled and both names are given."""

    enabled: bool = False
    provider: str | UnsetType = UNSET
    model: str | UnsetType = UNSET


class Sessions(Group, frozen=True):
    """``sessions``; the retention is parsed and never acted on."""

    retention_days: Whole = 30
    titles: Titles = field(default_factory=Titles)


class BashProtection(Group, frozen=True):
    """``internal_tooling.jev.bash_protection``."""

    enabled: bool = False


class Jev(Group, frozen=True):
    """``internal_tooling.jev``: a hosted service that we never call (SET-10)."""

    enabled: bool = False
    bash_protection: BashProtection = field(default_factory=BashProtection)


class InternalTooling(Group, frozen=True):
    """``internal_tooling``."""

    jev: Jev = field(default_factory=Jev)


class LocalAgent(Group, frozen=True):
    """``localagent``: ours, from the global file alone. Which runner plays, and for ``scripted`` its script file."""

    runner: Literal["scripted"] = "scripted"
    script: str | None = None


class Settings(Group, frozen=True):
    """A whole ``settings.json``, or the merge of both."""

    schema_version: Literal[2] | UnsetType = UNSET
    agent: Agent = field(default_factory=Agent)
    providers: Providers = field(default_factory=Providers)
    capabilities: Capabilities = field(default_factory=Capabilities)
    knowledge: Knowledge = field(default_factory=Knowledge)
    automation: Automation = field(default_factory=Automation)
    sessions: Sessions = field(default_factory=Sessions)
    internal_tooling: InternalTooling = field(default_factory=InternalTooling)
    localagent: LocalAgent = field(default_factory=LocalAgent)
