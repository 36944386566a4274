"""Custom providers (SET-08, SET-09) and the selection at startup (SET-05, CRED-01 to CRED-03)."""

from typing import Any

import pytest

from localagent.protocol.codes import Code

from .kit import BENCH, Place, nested

GOOD: dict[str, tuple[Any, ...]] = {
    "label": ("x", "é" * 50, "Bench = no".replace("=", "-")),
    "base_url": ("http://h", "https://h:8080/v1/", "http://[::1]:1/v1", "HTTP://h/a%20b", "https://h/v1/responses/x"),
    "api_key_env_var": ("KEY", "_K9", "", "  ", " KEY "),
    "use_responses_endpoint": (True, False),
    "reasoning_protocol": ("gpt-like", "anthropic-like"),
    "extra_models": ([], ["m"] * 64, [" m "], ["m" * 40, "org/m:tag"], ["é" * 100]),
    "models_dev_provider": ("a", "a-b", "a" * 63),
    "request_headers": ({}, {f"x-{i}": {"source": "conversation_id"} for i in range(32)}),
    "supports_text_verbosity": (True, None),
    "fast_mode": (True, {"a": 1}),
    "unknown": (None, 1),
}
BAD: dict[str, tuple[Any, ...]] = {
    "label": ("", None, 1, "x" * 101, "é" * 51, "sk-x", "Bearer x", "a=b", "aB3" * 16),
    "base_url": (
        *(None, 1, "", "h", "//h/v1", "ftp://h", "file:///x", "http://", "http:///v1", "http://u@h", "http://u:p@h/v1"),
        *("http://h/v1?", "http://h/v1?a=b", "http://h/v1#", "http://h/#f", "http://h:port/", "http://h:99999/"),
        *("http://h/v1/responses", "http://h/models/", "http://h/chat/completions//", " http://h", "http://h\n"),
        *("http://h/ v1", "http://h\\x", "http://[::1/v1", "http://h\u2028"),
    ),
    "api_key_env_var": (None, 1, "key", "9K", "A B", "A-B", "É", "K\n K", "A1" * 24 + "B"),
    "use_responses_endpoint": (None, 1, "true"),
    "reasoning_protocol": (None, "gpt", 1),
    "extra_models": (None, "m", {}, [1], [""], [" "], ["m m"], ["m" * 201], ["é" * 101], ["sk-m"], ["m"] * 65),
    "models_dev_provider": (None, "", "A", "a-", "-a", "1a", "a" * 64, "a\n", "a_b"),
    "request_headers": (
        *(None, [], {"x": None}, {"x": {}}, {"x": {"source": "other"}}, {"x": "conversation_id"}),
        {f"x-{i}": {"source": "conversation_id"} for i in range(33)},
        *(
            {name: {"source": "conversation_id"}}
            for name in (
                *("accept", "Authorization", "content-length", "Content-Type", "HOST", "proxy-authorization"),
                *("transfer-encoding", "User-Agent", "", "a b", "a:b", "é"),
            )
        ),
    ),
}
IDS = ("a", "a1", "a-b", "a--b", "a" * 63, "anthropic-2")
NO_IDS = (
    *("", "A", "1a", "-a", "a-", "a_b", "a b", "é", "a" * 64, "a\n"),
    *("openai-codex", "anthropic", "claude-subscription", "claude-code", "scripted"),
)


@pytest.mark.parametrize("key", GOOD)
def test_members_that_are_fine(place: Place, key: str) -> None:
    for value in GOOD[key]:
        place.settings(nested("providers.custom.bench", BENCH | {key: value}))
        assert place.admit().providers["bench"].kind == "openai_compatible"


@pytest.mark.parametrize("key", BAD)
def test_members_that_are_not(place: Place, key: str) -> None:
    for value in BAD[key]:
        place.settings(nested("providers.custom.bench", BENCH | {key: value}))
        assert place.keys()[0].startswith(f"providers.custom.bench.{key}"), value


def test_ids(place: Place) -> None:
    for id_ in IDS:
        place.settings({"providers": {"custom": {id_: BENCH}}})
        assert id_ in place.admit().providers
    for id_ in NO_IDS:
        place.settings({"providers": {"custom": {id_: BENCH}}})
        assert place.keys()[0].startswith("providers.custom"), id_


@pytest.mark.parametrize("missing", ["label", "base_url"])
def test_what_a_custom_provider_must_have(place: Place, missing: str) -> None:
    place.settings(nested("providers.custom.a", {key: each for key, each in BENCH.items() if key != missing}))
    assert place.keys() == [f"providers.custom.a.{missing}"]


def test_a_provider_as_it_is_admitted(place: Place) -> None:
    custom = {
        "label": "B",
        "base_url": "http://h/v1//",
        "extra_models": [" m ", "n", "m"],
        "request_headers": {"x-id": {"source": "conversation_id"}},
        "use_responses_endpoint": False,
        "reasoning_protocol": "gpt-like",
    }
    enabled = [" bench/m/x ", "bench/n", "bench/n", "", "  ", "gone/m", "nonsense", "/m", "bench/", "anthropic/c"]
    place.settings({"providers": {"custom": {"bench": custom}, "catalog": {"enabled": enabled}}})
    snapshot = place.admit()
    bench = snapshot.providers["bench"]
    assert list(snapshot.providers) == ["scripted", "openai-codex", "anthropic", "claude-subscription", "bench"]
    assert (bench.label, bench.base_url, bench.extra_models) == ("B", "http://h/v1", ("m", "n"))
    assert (bench.request_headers, bench.use_responses_endpoint) == ((("x-id", "conversation_id"),), False)
    assert (bench.models_dev_provider, bench.reasoning_protocol, bench.enabled) == ("bench", "gpt-like", ("m/x", "n"))
    assert snapshot.enabled == {("bench", "m/x"), ("bench", "n"), ("anthropic", "c")}
    assert snapshot.providers["anthropic"].cache_ttl == "1h"


def test_an_empty_list_admits_no_choice(place: Place) -> None:
    assert place.admit().enabled == frozenset()


CHOICES: tuple[tuple[dict[str, Any], dict[str, Any], dict[str, str], tuple[str, str, str]], ...] = (
    ({}, {}, {}, ("scripted", "demo", "default")),
    ({}, {}, {"MC_PROVIDER": "", "MC_MODEL": ""}, ("scripted", "demo", "default")),
    ({"provider": None, "model": None, "thinking_level": None}, {}, {}, ("scripted", "demo", "default")),
    ({"provider": "scripted"}, {}, {}, ("scripted", "demo", "default")),
    ({"provider": "open", "model": "m", "thinking_level": "x_high"}, {}, {}, ("open", "m", "xhigh")),
    ({"provider": "open", "model": "m", "thinking_level": "xhigh"}, {}, {}, ("open", "m", "xhigh")),
    ({"provider": "open", "model": "m"}, {"model": "n", "thinking_level": "max"}, {}, ("open", "n", "max")),
    ({"provider": "gone", "model": "m"}, {"provider": "open"}, {}, ("open", "m", "default")),
    ({"provider": "gone"}, {"model": "n"}, {"MC_PROVIDER": "open"}, ("open", "n", "default")),
    ({"provider": "open"}, {"model": "n"}, {"MC_MODEL": "e"}, ("open", "e", "default")),
    ({}, {}, {"MC_PROVIDER": "open", "MC_MODEL": "e"}, ("open", "e", "default")),
    ({}, {}, {"MC_PROVIDER": "keyed", "MC_MODEL": "e", "KEY": "k"}, ("keyed", "e", "default")),
    ({}, {}, {"MC_PROVIDER": "anthropic", "MC_MODEL": "c", "ANTHROPIC_API_KEY": "k"}, ("anthropic", "c", "default")),
    ({"provider": "open", "model": "m"}, {"provider": None, "model": None}, {}, ("scripted", "demo", "default")),
)
REFUSED: tuple[dict[str, str], ...] = (
    {"MC_PROVIDER": "gone", "MC_MODEL": "m"},
    {"MC_PROVIDER": "Open", "MC_MODEL": "m"},
    {"MC_PROVIDER": "open"},
    {"MC_PROVIDER": "scripted", "MC_MODEL": "other"},
    {"MC_MODEL": "m"},
    {"MC_PROVIDER": "openai-codex", "MC_MODEL": "gpt-5.5"},
    {"MC_PROVIDER": "claude-subscription", "MC_MODEL": "m"},
    {"MC_PROVIDER": "claude-code", "MC_MODEL": "m"},
    {"MC_PROVIDER": "anthropic", "MC_MODEL": "m"},
    {"MC_PROVIDER": "keyed", "MC_MODEL": "m"},
    {"MC_PROVIDER": "keyed", "MC_MODEL": "m", "KEY": ""},
)
CUSTOM = {"open": BENCH, "keyed": BENCH | {"api_key_env_var": "KEY"}}


@pytest.mark.parametrize(("base", "project", "environ", "chosen"), CHOICES)
def test_what_is_selected(
    place: Place, base: object, project: object, environ: dict[str, str], chosen: tuple[str, str, str]
) -> None:
    place.settings({"agent": {"model": base}, "providers": {"custom": CUSTOM}})
    place.project({"agent": {"model": project}})
    snapshot = place.admit(**environ)
    assert (snapshot.choice.provider, snapshot.choice.model, snapshot.choice.effort) == chosen
    assert snapshot.provider.id == chosen[0]


@pytest.mark.parametrize("environ", REFUSED)
def test_what_cannot_be_selected(place: Place, environ: dict[str, str]) -> None:
    place.settings({"providers": {"custom": CUSTOM}})
    fault = place.refused(Code.PROVIDER_UNAVAILABLE, **environ)
    assert fault.choice is not None
    assert fault.choice.provider == environ.get("MC_PROVIDER", "scripted")
    (each,) = fault.faults
    assert each.key in ("agent.model.provider", "agent.model.model")


@pytest.mark.parametrize("name", ["MC_PROVIDER", "MC_MODEL"])
def test_bytes_that_are_no_text_select_nothing(place: Place, name: str) -> None:
    fault = place.refused(Code.PROVIDER_UNAVAILABLE, **{name: "\udcff"})
    assert (fault.choice, fault.faults[0].key) == (None, name)


def test_a_bad_file_comes_before_a_bad_profile_and_that_before_a_bad_selection(place: Place) -> None:
    place.settings({"agent": {"model": {"provider": "gone"}}})
    place.put(place.home / "subagents" / "a.md", "")
    place.auth([])
    told = place.examine()
    assert [str(code) for code, _ in told.faults] == ["configuration_invalid", "profile_invalid"]  # no key, no choice
    place.refused(Code.CONFIGURATION_INVALID)
    (place.home / "auth.json").unlink()
    place.refused(Code.PROFILE_INVALID)
    (place.home / "subagents" / "a.md").unlink()
    place.refused(Code.PROVIDER_UNAVAILABLE)
