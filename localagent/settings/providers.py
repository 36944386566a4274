"""The providers of a child, and which of them is selected at startup (SET-05, SET-08, CRED-01 to CRED-03)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import UNSET

from localagent.protocol.codes import Code
from localagent.protocol.results import Effort
from localagent.sessions import efforts

from .credentials import Wallet
from .faults import Fault, Inadmissible
from .model import CustomProvider, Settings
from .rules import bare_url, variable_of
from .snapshot import Choice, Provider

BUILT_IN: Final = ("openai-codex", "anthropic", "claude-subscription")


class Embedded(NamedTuple):
    """The provider that needs nothing, and its one model: what is selected when nothing else is (SET-05)."""

    provider: str
    model: str


def admitted(settings: Settings, wallet: Wallet, embedded: Embedded) -> Mapping[str, Provider]:
    """Return every provider by id, each with its key and whether it is ready."""
    enabled = _enabled(settings.providers.catalog.enabled)
    found = {}
    for each in _providers(settings, embedded):
        provider = replace(each, enabled=tuple(enabled.get(each.id, ())))
        ready = wallet.authentication(provider)
        found[each.id] = replace(provider, credential=wallet.of(provider), authentication=ready)
    return MappingProxyType(found)


def _providers(settings: Settings, embedded: Embedded) -> Iterator[Provider]:
    yield Provider(id=embedded.provider, kind="scripted")
    for id_ in BUILT_IN:
        if id_ == "anthropic":
            yield Provider(id=id_, kind="anthropic", cache_ttl=settings.providers.anthropic.cache_ttl)
        else:
            yield Provider(id=id_, kind="unsupported")
    for id_, custom in settings.providers.custom.items():
        yield _custom(id_, custom)


def _custom(id_: str, custom: CustomProvider) -> Provider:
    return Provider(
        id=id_,
        kind="openai_compatible",
        label=custom.label,
        base_url=bare_url(custom.base_url),
        api_key_env_var=variable_of(custom),
        use_responses_endpoint=custom.use_responses_endpoint,
        reasoning_protocol=None if custom.reasoning_protocol is UNSET else custom.reasoning_protocol,
        extra_models=tuple(dict.fromkeys(model.strip() for model in custom.extra_models)),
        models_dev_provider=id_ if custom.models_dev_provider is UNSET else custom.models_dev_provider,
        request_headers=tuple((name, header.source) for name, header in custom.request_headers.items()),
    )


def _enabled(entries: Iterable[str]) -> dict[str, list[str]]:
    """Models by provider: ``provider/model``, cut at the first slash. What is not of this form names nothing."""
    found: dict[str, list[str]] = {}
    for entry in dict.fromkeys(each.strip() for each in entries):
        provider, slash, model = entry.partition("/")
        if provider and slash and model:
            found.setdefault(provider, []).append(model)
    return found


def chosen(
    settings: Settings, environ: Mapping[str, str], providers: Mapping[str, Provider], embedded: Embedded
) -> Choice:
    """Return the selection at startup: environment over project over global, name by name (SET-05).

    Raises Inadmissible(``provider_unavailable``) for a provider that is not known or not ready, and for one without a
    model: no model is guessed, but the embedded provider has only one.
    """
    wanted = settings.agent.model
    provider = _variable(environ, "MC_PROVIDER") or wanted.provider
    model = _variable(environ, "MC_MODEL") or wanted.model
    if provider is None:
        provider = embedded.provider
    if model is None:
        model = embedded.model if provider == embedded.provider else ""
    choice = Choice(provider, model, _effort(wanted.thinking_level))
    fault = _refusal(choice, providers, embedded)
    if fault is not None:
        raise Inadmissible(Code.PROVIDER_UNAVAILABLE, (fault,), choice)
    return choice


def _variable(environ: Mapping[str, str], name: str) -> str | None:
    """The value of a variable; bytes that are no text name nothing, and could not be shown."""
    value = environ.get(name)
    if value is not None and any("\ud800" <= each <= "\udfff" for each in value):
        raise Inadmissible(Code.PROVIDER_UNAVAILABLE, (Fault("the environment", name, "UTF-8"),))
    return value


def _refusal(choice: Choice, providers: Mapping[str, Provider], embedded: Embedded) -> Fault | None:
    where, provider = "the selection", providers.get(choice.provider)
    if provider is None:
        return Fault(where, "agent.model.provider", "a provider that is built in or configured", "another one")
    if not choice.model:
        return Fault(where, "agent.model.model", f"a model of {provider.id}", "none")
    if provider.kind == "scripted":
        known = choice.model == embedded.model
        return None if known else Fault(where, "agent.model.model", f"{embedded.model}, the embedded model", "another")
    if provider.kind == "unsupported":
        return Fault(where, "agent.model.provider", "a provider that this backend supports", provider.id)
    if not provider.is_ready:
        return Fault(where, "agent.model.provider", f"authentication for {provider.id}: {_remedy(provider)}", "none")
    return None


def _remedy(provider: Provider) -> str:
    if provider.kind == "anthropic":
        return "ANTHROPIC_API_KEY, or a record in auth.json"
    return f"the variable {provider.api_key_env_var}"


def _effort(word: str | None) -> Effort:
    return (efforts.from_file(word) if word is not None else None) or "default"
