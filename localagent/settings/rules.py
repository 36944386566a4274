"""What the types of :mod:`.model` cannot say (SET-06, SET-08, SET-10, PROF-09). Pure but for the environment given."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from msgspec import UNSET

from localagent.protocol.measure import utf8_bytes

from .faults import Path
from .model import PROVIDER_ID, Agent, CodeMode, CustomProvider, Hooks, Settings

RESERVED: Final = ("openai-codex", "anthropic", "claude-subscription", "claude-code", "scripted")
"""Ids no custom provider may have (SET-08); ``scripted`` is ours, the embedded provider."""

_FORBIDDEN_HEADERS: Final = (
    *("accept", "authorization", "content-length", "content-type", "host"),
    *("proxy-authorization", "transfer-encoding", "user-agent"),
)
_ENDPOINTS: Final = ("/responses", "/models", "/completions")
_is_provider_id = re.compile(PROVIDER_ID.removesuffix("$")).fullmatch
_is_variable = re.compile("[A-Z_][A-Z0-9_]*").fullmatch
_is_header = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch


class Broken(NamedTuple):
    """A rule that does not hold: where, and what was expected."""

    path: Path
    expected: str


def broken(settings: Settings, environ: Mapping[str, str]) -> Iterator[Broken]:
    """Yield every rule that ``settings`` break."""
    yield from _agent(settings.agent)
    for id_, provider in settings.providers.custom.items():
        yield from _custom(id_, provider)
    tools = settings.capabilities.tools
    for index, name in enumerate(tools.disabled):
        if name == "code_mode":
            expected = "no code_mode here (it has capabilities.tools.code_mode.enabled)"
            yield Broken(("capabilities", "tools", "disabled", index), expected)
    yield from _code_mode(tools.code_mode)
    for index, path in enumerate(settings.knowledge.instructions.additional_markdown_paths):
        if not (path.startswith("/") and path.endswith(".md")):
            place = ("knowledge", "instructions", "additional_markdown_paths", index)
            yield Broken(place, "an absolute path that ends in .md")
    for index, path in enumerate(settings.knowledge.skills.additional_paths):
        if not path.startswith("/"):
            yield Broken(("knowledge", "skills", "additional_paths", index), "an absolute path")
    yield from _hooks(settings.automation.hooks)
    if settings.internal_tooling.jev.enabled and not environ.get("TYPESAFE_API_KEY"):
        yield Broken(("internal_tooling", "jev", "enabled"), "false, or TYPESAFE_API_KEY in the environment")
    script = settings.localagent.script
    if script is not None and not script.startswith("/"):
        yield Broken(("localagent", "script"), "an absolute path")


def _agent(agent: Agent) -> Iterator[Broken]:
    if "\n" in (agent.primary_agent or ""):  # `$` of a pattern lets one stand at the end
        yield Broken(("agent", "primary_agent"), "an id without line feed")
    if agent.context is not None:
        for key, each in agent.context.model_overrides.items():
            if each.max_tokens is each.reserve_tokens is each.keep_recent_tokens is UNSET:
                expected = "at least one of max_tokens, reserve_tokens and keep_recent_tokens"
                yield Broken(("agent", "context", "model_overrides", key), expected)
    compaction = agent.compaction
    if (compaction.provider is UNSET) != (compaction.model is UNSET):
        yield Broken(("agent", "compaction"), "both provider and model, or neither")
    auto = compaction.auto
    if auto.enabled and auto.threshold_percent is None and auto.threshold_tokens is None:
        yield Broken(("agent", "compaction", "auto"), "threshold_percent or threshold_tokens, or enabled false")


def _code_mode(code_mode: CodeMode) -> Iterator[Broken]:
    if code_mode.compact_direct_tools and not code_mode.enabled:
        expected = "false, as long as code_mode.enabled is false"
        yield Broken(("capabilities", "tools", "code_mode", "compact_direct_tools"), expected)


def _custom(id_: str, provider: CustomProvider) -> Iterator[Broken]:
    from localagent.text.redact import secret_like  # who has no custom provider does not wait for it

    place: Path = ("providers", "custom", id_)
    if not _is_provider_id(id_):
        expected = "an id of 1 to 63 lower-case letters, digits and hyphens, a letter first, no hyphen last"
        yield Broken(place, expected)
    if id_ in RESERVED:
        yield Broken(place, "another id, this one is built in")
    if not 1 <= utf8_bytes(provider.label) <= 100 or secret_like(provider.label):
        yield Broken((*place, "label"), "1 to 100 bytes that do not look like a secret")
    yield from (Broken((*place, "base_url"), expected) for expected in _base_url(provider.base_url))
    variable = variable_of(provider)
    if variable is not None and (not _is_variable(variable) or secret_like(variable, whitespace=False)):
        yield Broken((*place, "api_key_env_var"), "the name of a variable: capitals, digits and _, no digit first")
    for index, model in enumerate(provider.extra_models):
        name = model.strip()
        if not 1 <= utf8_bytes(name) <= 200 or secret_like(name, whitespace=False):
            expected = "1 to 200 bytes without white space that do not look like a secret"
            yield Broken((*place, "extra_models", index), expected)
    if provider.models_dev_provider is not UNSET and "\n" in provider.models_dev_provider:
        yield Broken((*place, "models_dev_provider"), "an id without line feed")
    for name in provider.request_headers:
        if not _is_header(name):
            yield Broken((*place, "request_headers", name), "the name of a header")
        if name.lower() in _FORBIDDEN_HEADERS:
            yield Broken((*place, "request_headers", name), "another header, this one is set by the client")


def variable_of(provider: CustomProvider) -> str | None:
    """The variable that holds a custom provider's key; a blank name is none (SET-08)."""
    return None if provider.api_key_env_var is UNSET else provider.api_key_env_var.strip() or None


def bare_url(url: str) -> str:
    """A base URL without its trailing slashes (SET-08)."""
    return url.rstrip("/")


def _base_url(url: str) -> Iterator[str]:
    """Yield what a base URL lacks. What an HTTP client would read otherwise than we do is refused as well."""
    from urllib.parse import urlsplit  # who has no custom provider does not wait for it

    if re.search(r"[\x00-\x20\x7f-\xa0\\]|\s", url):
        yield "a URL without white space, controls and backslashes"
        return
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        yield "an absolute http or https URL"
        return
    if parts.scheme not in ("http", "https") or not host:
        yield "an absolute http or https URL"
    if "@" in parts.netloc:
        yield "no user or password in the URL"
    if "?" in url or "#" in url:
        yield "no query and no fragment"
    if bare_url(parts.path).endswith(_ENDPOINTS):
        yield f"a path that does not end in {', '.join(_ENDPOINTS)}"


def _hooks(hooks: Hooks) -> Iterator[Broken]:
    for phase in ("before_tool", "after_tool", "after_assistant", "after_reasoning"):
        for index, hook in enumerate(getattr(hooks, phase)):
            place: Path = ("automation", "hooks", phase, index)
            if not hook.command.strip():
                yield Broken((*place, "command"), "a command")
            policy = hooks.failure_policy if hook.failure_policy is UNSET else hook.failure_policy
            if policy == "block" and phase != "before_tool":
                yield Broken((*place, "failure_policy"), "ignore, warn or fail; block is for before_tool")


def depth(settings: Settings) -> int:
    """How deep subagents may nest: ``max_depth``, clamped to 1 to 4 (SET-06)."""
    return min(max(settings.agent.subagents.execution.max_depth, 1), 4)
