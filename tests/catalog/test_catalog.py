"""``model.catalog`` and ``model.catalog.status`` in process: choices, notices, statuses, names (CAT-10 to CAT-37)."""

import re

import msgspec
import pytest

from localagent.catalog.choices import selection_id
from localagent.protocol.codes import Code
from localagent.settings.snapshot import Provider

from .kit import BUILT_IN, Desk, House, custom, entry, refusal

NOTHING = ("provider_catalog_unavailable",)
OMITTED = ("catalog_entries_omitted_unsafe",)
SECRET = "".join(("sk", "-live"))  # in two parts, so that nobody takes this file for a leak


def test_nothing_enabled_nothing_offered_nothing_said(house: House) -> None:
    """CAT-24, CAT-32: neither a cache that is there nor one that is missing makes a notice."""
    house.put()
    house.put_bytes(b"broken", "other")
    desk = Desk(house, custom(), custom("other"))
    page = desk.page()
    assert (page.choices, page.notices, page.complete, page.next_cursor) == ((), (), True, None)
    assert desk.asked == []  # EXT-STATUS-27


def test_one_choice_with_exactly_its_keys(house: House) -> None:
    house.put("bench", [entry("bench", "tiny", display_name="Tiny", reasoning_efforts=["x_high", "low"])])
    (choice,) = Desk(house, custom("bench", "tiny")).choices()
    assert msgspec.json.decode(msgspec.json.encode(choice)) == {
        "availability": "available",
        "effort_support": "supported",
        "model": "tiny",
        "model_name": "Tiny",
        "permitted_efforts": ["default", "low", "xhigh"],
        "provider": "bench",
        "provider_name": "Bench",
        "selection_id": selection_id("bench", "tiny"),
    }


def test_selection_ids_are_stable_and_of_pairs() -> None:
    pairs = [("a", "b"), ("a", "c"), ("b", "a"), ("a", "b/c"), ("a/b", "c")]
    ids = [selection_id(*pair) for pair in pairs]
    assert len(set(ids)) == len(pairs)
    assert all(re.fullmatch("[0-9a-f]{64}", each) for each in ids)
    assert selection_id("bench", "tiny") == "c3027aa637f6834ce081ad35e7c5c51a2ce3eabc615b9be4058ced1969a559ce"


def test_order_is_that_of_utf8_bytes(house: House) -> None:
    """CAT-21: neither by case nor by UTF-16, which would put U+10000 before U+FF5E."""
    models = ["b", "a", "B", "a-1", "a.1", "\uff5e", "\U00010000", "é"]
    for name in ("b", "a-1", "a"):
        house.put(name, models)
    choices = Desk(house, *(custom(name, *models) for name in ("b", "a-1", "a"))).choices(limit=5)
    pairs = [(each.provider.encode(), each.model.encode()) for each in choices]
    assert pairs == sorted(pairs)
    assert len(pairs) == 24


def test_only_enabled_models_are_choices(house: House) -> None:
    house.put("bench", ["a", "b", "c"])
    assert Desk(house, custom("bench", "c", "a", "gone")).models() == ["a", "c"]


def test_duplicates_count_where_they_are_admitted(house: House) -> None:
    """CAT-22, CACHE-06."""
    house.put("bench", ["a", "b", "a"])
    assert Desk(house, custom("bench", "b")).models() == ["b"]
    desk = Desk(house, custom("bench", "a", "b"))
    assert refusal(desk.page) is Code.CATALOG_UNAVAILABLE
    assert desk.catalog.revision is None


@pytest.mark.parametrize(
    "spoil",
    [None, b"", b"{", b'{"schema_version":8}', b"[]"],
    ids=["missing", "empty file", "half", "short", "array"],
)
def test_a_relevant_provider_without_a_cache_is_told_once_and_hurts_nobody(house: House, spoil: bytes | None) -> None:
    """CAT-30, CAT-33, EXT-STATUS-30, EXT-STATUS-32."""
    house.put("good", ["m"])
    if spoil is not None:
        house.put_bytes(spoil)
    desk = Desk(house, custom("good", "m"), custom("bench", "tiny"), custom("worse", "x"))
    page = desk.page()
    assert ([each.model for each in page.choices], page.notices) == (["m"], NOTHING)


def test_no_folder_yet_is_no_fault(house: House) -> None:
    house.folder.rmdir()
    assert Desk(house, custom("bench", "tiny")).page().notices == NOTHING
    house.folder.parent.rmdir()
    assert Desk(house).page().notices == ()


def test_the_selected_provider_is_relevant(house: House) -> None:
    """CAT-31, EXT-STATUS-24, EXT-STATUS-25."""
    desk = Desk(house, custom(), selected="bench")
    assert desk.page().notices == NOTHING
    assert desk.statuses()["bench"].relevant
    assert desk.statuses()["bench"].authentication == "ready"
    desk.selected = None
    assert desk.page().notices == ()
    assert not desk.statuses()["bench"].relevant


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("m" * 256, True),
        ("é" * 128, True),
        ("tiny chat", False),
        (SECRET, False),
        ("a=b", False),
        ("x" * 8 + "0123456789" * 5, False),
        ("a\x1b[31mb", False),
        ("a\x85b", False),
        ("a\nb", False),
        ("a\x00b", False),
    ],
)
def test_unsafe_models_are_left_out_and_that_is_said(house: House, model: str, shown: bool) -> None:
    """CAT-35; of a model that is not enabled nothing is said."""
    if shown and len(model) == 256:
        model = "-" * 220 + "m" * 36  # long, and not of the kind that looks like a key
    house.put("bench", ["ok", model])
    page = Desk(house, custom("bench", "ok", model)).page()
    assert [each.model for each in page.choices] == sorted(["ok", model] if shown else ["ok"])
    assert page.notices == (() if shown else OMITTED)
    assert Desk(house, custom("bench", "ok")).page().notices == ()


@pytest.mark.parametrize("long", ["-" * 257, "-" * 255 + "é"])
def test_an_overlong_model_fails_the_operation(house: House, long: str) -> None:
    """CAT-36, BASE-OP-137."""
    house.put("bench", ["ok", long])
    assert Desk(house, custom("bench", "ok")).models() == ["ok"]
    assert refusal(Desk(house, custom("bench", "ok", long)).page) is Code.CATALOG_LIMIT


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Tiny Chat", "Tiny Chat"),
        ("  Tiny ", "Tiny"),
        ("-" * 256, "-" * 256),
        ("-" * 257, None),
        ("", None),
        ("   ", None),
        (None, None),
        ("a\x07b", None),
        (SECRET, None),
        ("token: abcdefgh", None),
    ],
)
def test_display_names(house: House, name: str | None, shown: str | None) -> None:
    """CAT-18, CAT-19, CRED-13."""
    house.put("bench", [entry("bench", "tiny", display_name=name)])
    (choice,) = Desk(house, custom("bench", "tiny", label=name)).choices()
    assert (choice.model_name, choice.provider_name) == (shown, shown)


def test_nothing_else_of_an_entry_gets_out(house: House) -> None:
    """CAT-20, CAT-79."""
    hidden = ["the description", "http://private.example", "KEY_VARIABLE", "the key"]
    house.put("bench", [entry("bench", "tiny", description=hidden[0], modalities=hidden[1])])
    provider = custom("bench", "tiny", base_url=hidden[1], api_key_env_var=hidden[2])
    desk = Desk(house, provider, environ={hidden[2]: hidden[3]})
    said = msgspec.json.encode([desk.page(), desk.catalog.status(None, None, 100, None)]).decode()
    assert not [each for each in [*hidden, str(house.path)] if each in said]


def test_an_unsafe_provider_is_left_out_and_that_is_said(house: House) -> None:
    """EXT-OP-27, EXT-STATUS-12."""
    house.put(SECRET, ["m"])
    desk = Desk(house, custom(SECRET, "m"))
    assert desk.page().choices == ()
    assert desk.page().notices == OMITTED
    assert SECRET not in desk.statuses()


READY: list[tuple[Provider, dict[str, str], bool]] = [
    (custom("bench", "tiny"), {}, True),
    (custom("bench", "tiny", api_key_env_var="KEY"), {}, False),
    (custom("bench", "tiny", api_key_env_var="KEY"), {"KEY": ""}, False),
    (custom("bench", "tiny", api_key_env_var="KEY"), {"KEY": "k"}, True),
]


@pytest.mark.parametrize(("provider", "environ", "ready"), READY)
def test_authentication_of_a_custom_provider(
    house: House, provider: Provider, environ: dict[str, str], ready: bool
) -> None:
    """CAT-26, CRED-01."""
    house.put()
    desk = Desk(house, provider, environ=environ)
    (choice,) = desk.choices()
    assert choice.availability == ("available" if ready else "authentication_unavailable")
    status = desk.statuses()["bench"]
    assert status.authentication == ("ready" if ready else "authentication_unavailable")
    assert status.recovery == ("none" if ready else "configure_authentication")
    assert desk.page().notices == ()


def test_authentication_of_built_in_providers(house: House) -> None:
    """CRED-02, CRED-03: by variable, by ``auth.json``; a file that became inadmissible makes it unavailable."""
    ids = ("anthropic", "claude-subscription", "openai-codex")

    def seen(**environ: str) -> list[str]:
        desk = Desk(house, environ=environ)
        enabled = tuple(Provider(id=each.id, kind=each.kind, enabled=("m",)) for each in BUILT_IN)
        desk.catalog._providers = enabled
        return [desk.statuses()[each].authentication for each in ids]

    never, ready = "authentication_unavailable", "ready"
    assert seen() == [never, never, never]
    assert seen(ANTHROPIC_API_KEY="k") == [ready, never, never]
    auth = house.path / "auth.json"
    auth.write_text('{"anthropic": {"type": "api_key", "key": "k"}, "openai-codex": {"type": "oauth", "access": "a"}}')
    auth.chmod(0o600)
    assert seen() == [ready, never, never]
    auth.chmod(0o644)
    assert seen() == [never, never, never]
    auth.chmod(0o600)
    auth.write_text("{")
    assert seen() == [never, never, never]


def test_statuses_of_all_providers_in_order(house: House) -> None:
    """EXT-OP-26, EXT-OP-27: used or not, each with what helps."""
    house.put("fine", ["m"])
    house.put("idle", ["m"])
    house.put("empty", [])
    house.put("old", ["m"], schema_version=8)
    house.put("other", ["m"], cache_fingerprint={"enrichment_version": 2})
    house.put_bytes(b"{", "half")
    names = ("fine", "empty", "old", "other", "half", "gone")
    desk = Desk(
        house,
        *(custom(name, "m") for name in names),
        custom("idle"),
        custom("locked", "m", api_key_env_var="NO_KEY"),
        custom("unused", api_key_env_var="NO_KEY"),
    )
    statuses = desk.statuses()
    assert list(statuses) == sorted(statuses)
    told = {
        name: (each.catalog_status, each.authentication, each.relevant, each.recovery)
        for name, each in statuses.items()
    }
    idle = ("not_checked", False, "enable_models_and_restart")
    assert told == {
        "anthropic": ("missing_cache", *idle),
        "claude-subscription": ("missing_cache", *idle),
        "empty": ("empty_cache", "ready", True, "refresh_catalog"),
        "fine": ("available", "ready", True, "none"),
        "gone": ("missing_cache", "ready", True, "refresh_catalog"),
        "half": ("invalid_format", "ready", True, "refresh_catalog"),
        "idle": ("available", *idle),
        "locked": ("missing_cache", "authentication_unavailable", True, "configure_authentication"),
        "old": ("invalid_schema", "ready", True, "refresh_catalog"),
        "openai-codex": ("missing_cache", *idle),
        "other": ("incompatible_fingerprint", "ready", True, "refresh_catalog"),
        "unused": ("missing_cache", *idle),
    }


def test_the_embedded_provider_takes_part_where_it_is_enabled(house: House) -> None:
    desk = Desk(house, Provider(id="scripted", kind="scripted"), selected="scripted")
    assert desk.page().notices == ()
    assert "scripted" not in desk.statuses()
    desk = Desk(house, Provider(id="scripted", kind="scripted", enabled=("demo",)))
    (choice,) = desk.choices()
    assert (choice.model, choice.availability, choice.effort_support) == ("demo", "available", "unsupported")
    assert desk.statuses()["scripted"].recovery == "none"


def test_what_a_selection_looks_up(house: House) -> None:
    house.put("bench", ["a", entry("bench", "b", supports_reasoning=True)])
    desk = Desk(house, custom("bench", "a"))
    page = desk.page()
    choices = desk.catalog.verify(page.revision)
    found = choices.find("bench", "a")
    assert found is not None
    assert (found, choices.find("bench", "b"), choices.find("a", "bench")) == (page.choices[0], None, None)
    assert choices.capability("bench", "b").support == "supported"  # cached, though not enabled
    assert choices.capability("bench", "zai/glm-5.2").permitted == ("default", "high", "max")  # by name, uncached
    assert choices.capability("nobody", "a").support == "unknown"


def test_reading_changes_nothing(house: House) -> None:
    """CAT-71, CAT-75, EXT-STATUS-06."""
    house.put("bench", ["a", "b"])
    before = house.tree()
    desk = Desk(house, custom("bench", "a", "b"))
    assert len(desk.pages(limit=1)) == 2
    assert desk.statuses()
    assert house.tree() == before
