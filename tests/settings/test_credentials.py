"""Keys and who is ready (CRED-01 to CRED-04); a key is never seen (CRED-14)."""

import copy
import pickle
import traceback
from typing import Any

import msgspec
import pytest

from localagent.protocol.codes import Code
from localagent.settings import credentials
from localagent.settings.snapshot import Credential

from .kit import BENCH, Place, nested

SECRET = "sk-ant-very-secret-0123456789"
KEYED = {"type": "api_key", "key": SECRET}


def anthropic(place: Place, **environ: str) -> Credential | None:
    provider = place.admit(**environ).providers["anthropic"]
    assert provider.is_ready == (provider.credential is not None)
    return provider.credential


def test_anthropic_by_the_environment_else_by_its_record(place: Place) -> None:
    assert anthropic(place) is None
    place.auth({"anthropic": KEYED})
    found = anthropic(place)
    assert found is not None
    assert (found.source, found.name, found.reveal()) == ("auth.json", "anthropic", SECRET)
    found = anthropic(place, ANTHROPIC_API_KEY="other")
    assert found is not None
    assert (found.source, found.name, found.reveal()) == ("environment", "ANTHROPIC_API_KEY", "other")
    found = anthropic(place, ANTHROPIC_API_KEY="")
    assert found is not None
    assert found.source == "auth.json"
    place.auth({"anthropic": {"type": "oauth", "access": SECRET}})
    assert anthropic(place) is None
    place.auth({"anthropic": {"type": "api_key", "key": ""}})
    assert anthropic(place) is None


def test_a_custom_provider_by_its_variable_alone(place: Place) -> None:
    place.auth({"keyed": KEYED, "open": KEYED})
    place.settings(
        nested(
            "providers.custom",
            {"keyed": BENCH | {"api_key_env_var": " KEY "}, "open": BENCH | {"api_key_env_var": " "}},
        )
    )
    for environ, ready in [({}, False), ({"KEY": ""}, False), ({"KEY": SECRET}, True)]:
        providers = place.admit(**environ).providers
        assert providers["keyed"].is_ready is ready
        assert providers["open"].is_ready
        assert providers["open"].credential is None
    found = providers["keyed"].credential
    assert found is not None
    assert (found.source, found.name, found.reveal()) == ("environment", "KEY", SECRET)


def test_what_is_built_in_and_not_supported_is_never_ready(place: Place) -> None:
    login = {"type": "oauth", "access": SECRET, "refresh": "r", "expires": 9e15, "accountId": "a"}
    place.auth({"openai-codex": login, "claude-subscription": login})
    providers = place.admit(OPENAI_API_KEY=SECRET).providers
    assert [providers[each].is_ready for each in ("openai-codex", "claude-subscription", "scripted")] == [
        *(False, False, True)
    ]


def test_keys_can_be_looked_up_again(place: Place) -> None:
    provider = place.admit().providers["anthropic"]
    place.auth({"anthropic": KEYED})
    wallet = credentials.look(place.root, place.environ)
    found = wallet.of(provider)
    assert found is not None
    assert found.reveal() == SECRET
    assert wallet.authentication(provider) == "ready"


GOOD: tuple[Any, ...] = (
    {},
    {"api_key": 3, "revision": None, "provider_generations": []},
    {"x": {"type": "oauth", "access": "a", "refresh": None, "expires": 1, "accountId": None, "more": []}},
    {"x": {"type": "api_key", "key": "", "more": 1}},
)
BAD: tuple[tuple[Any, str], ...] = (
    ({"x": None}, "x"),
    ({"x": SECRET}, "x"),
    ({"x": []}, "x"),
    ({"x": {}}, "x.type"),
    ({"x": {"type": "API_KEY", "key": "k"}}, "x.type"),
    ({"x": {"type": 1, "key": "k"}}, "x.type"),
    ({"x": {"type": ["api_key"], "key": "k"}}, "x.type"),
    ({"x": {"type": "api_key"}}, "x.key"),
    ({"x": {"type": "api_key", "key": None}}, "x.key"),
    ({"x": {"type": "api_key", "key": 1}}, "x.key"),
    ({"x": {"type": "api_key", "access": SECRET}}, "x.key"),
    ({"x": {"type": "oauth"}}, "x.access"),
    ({"x": {"type": "oauth", "access": {"a": SECRET}}}, "x.access"),
    ({"x": {"type": "oauth", "access": "a", "refresh": 1}}, "x.refresh"),
    ({"x": {"type": "oauth", "access": "a", "expires": "1"}}, "x.expires"),
    ({"x": {"type": "oauth", "access": "a", "expires": True}}, "x.expires"),
    ({"x": {"type": "oauth", "access": "a", "accountId": 1}}, "x.accountId"),
)


@pytest.mark.parametrize("value", GOOD)
def test_records_that_are_fine(place: Place, value: object) -> None:
    place.auth(value)
    place.admit()


@pytest.mark.parametrize(("value", "key"), BAD)
def test_records_that_are_not_whoever_is_selected(place: Place, value: object, key: str) -> None:
    path = place.auth(value)
    fault = place.refused()
    assert [(each.file, each.key) for each in fault.faults] == [(str(path), key)]
    assert SECRET not in text_of(fault)


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o601, 0o660, 0o610, 0o644, 0o777])
def test_permissions_for_others_are_refused_and_not_repaired(place: Place, mode: int) -> None:
    path = place.auth({"anthropic": KEYED}, mode)
    assert "chmod 600" in str(place.refused())
    assert path.stat().st_mode & 0o777 == mode
    for good in (0o600, 0o400, 0o700):
        path.chmod(good)
        place.admit()


def text_of(fault: BaseException) -> str:
    return "".join(traceback.format_exception(fault)) + repr(fault) + repr(fault.__dict__)


def test_a_key_is_in_no_text(place: Place) -> None:
    place.auth({"anthropic": KEYED})
    place.settings(nested("providers.custom", {"bench": BENCH | {"api_key_env_var": "KEY"}}))
    snapshot = place.admit(KEY=SECRET)
    provider = snapshot.providers["bench"]
    assert provider.credential is not None
    wallet = credentials.look(place.root, {"KEY": SECRET})
    for thing in (snapshot, provider, provider.credential, wallet, [provider], vars):
        for text in (repr(thing), str(thing), f"{thing}"):
            assert SECRET not in text
    assert repr(provider.credential) == "<credential from environment>"
    for dump in (pickle.dumps, copy.copy, copy.deepcopy, msgspec.json.encode):
        with pytest.raises(TypeError) as caught:
            dump(provider.credential)
        assert SECRET not in text_of(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"agent": {"model": {"thinking_level": SECRET}}},
        {"agent": {"primary_agent": f"{SECRET}="}},
        {"providers": {"custom": {SECRET: {"label": SECRET, "base_url": SECRET}}}},
        {"providers": {"custom": {"a": {"label": f"x={SECRET}", "base_url": f"https://u:{SECRET}@h/"}}}},
        {"providers": {"custom": {"a": BENCH | {"api_key_env_var": SECRET}}}},
        {"providers": {"custom": {"a": BENCH | {"extra_models": [SECRET], "request_headers": {SECRET: {}}}}}},
        {"providers": {"custom": {"a": BENCH | {"request_headers": {f"{SECRET} ": {"source": SECRET}}}}}},
        {"automation": {"hooks": {"before_tool": [{"command": 1, "label": SECRET}], "failure_policy": SECRET}}},
        {"localagent": {"runner": SECRET, "script": SECRET}},
        {"capabilities": {"tools": {"code_mode": {SECRET: 1}}}},
        {"knowledge": {"instructions": {"additional_markdown_paths": [SECRET]}}},
        f'{{"a": "{SECRET}", "a": "{SECRET}"}}',
        f'{{"{SECRET}": 1, "{SECRET}": 2}}',
        f'{{"a": {SECRET}}}',
        f'"{SECRET}"',
    ],
)
def test_a_secret_in_settings_is_in_no_message(place: Place, settings: object) -> None:
    place.settings(settings)
    assert SECRET not in text_of(place.refused())


def test_a_secret_in_a_choice_is_in_no_message(place: Place) -> None:
    for environ in ({"MC_PROVIDER": SECRET}, {"MC_MODEL": SECRET}, {"MC_PROVIDER": "anthropic", "MC_MODEL": SECRET}):
        fault = place.refused(Code.PROVIDER_UNAVAILABLE, **environ)
        assert SECRET not in str(fault)
