"""Faults of the catalog, of the selection, and of what extensions say of themselves."""

from typing import Any

from msgspec.structs import replace

from .mutant import fault
from .tools import answered, failing, put_item


def _rewriting(place: str, change: Any) -> None:
    """Let ``change`` alter every result that has a member of this name."""
    from .frames import rewriting

    def altered(frame: dict[str, Any]) -> None:
        result = frame.get("result")
        if isinstance(result, dict) and place in result:
            change(result)

    rewriting(altered)


@fault
def catalog_in_wrong_order() -> None:
    """The choices of a catalog stand in reverse order."""
    answered("model.catalog", lambda result: replace(result, choices=result.choices[::-1]))


@fault
def catalog_never_complete() -> None:
    """The last page of a catalog is not complete."""
    answered("model.catalog", lambda result: replace(result, complete=False))


@fault
def catalog_from_afar() -> None:
    """A catalog says that it was asked for anew."""
    answered("model.catalog", lambda result: replace(result, source="remote"))


@fault
def catalog_of_one_revision() -> None:
    """Every catalog has the same revision."""
    answered("model.catalog", lambda result: replace(result, revision="the-catalog"))


@fault
def catalog_without_notices() -> None:
    """A catalog does not tell what it lacks."""
    answered("model.catalog", lambda result: replace(result, notices=()))


@fault
def choices_all_available() -> None:
    """A choice that cannot be authenticated is shown as available."""

    def change(result: Any) -> Any:
        return replace(result, choices=tuple(replace(each, availability="available") for each in result.choices))

    answered("model.catalog", change)


@fault
def choices_with_addresses() -> None:
    """A choice shows where its provider is."""
    _rewriting("choices", lambda result: [each.update(base_url="http://127.0.0.1:9/v1") for each in result["choices"]])


@fault
def caches_all_good() -> None:
    """Every provider's cache is said to be available."""

    def change(result: Any) -> Any:
        return replace(result, providers=tuple(replace(each, catalog_status="available") for each in result.providers))

    answered("model.catalog.status", change)


@fault
def no_way_to_recover() -> None:
    """No provider's status says what to do."""

    def change(result: Any) -> Any:
        return replace(result, providers=tuple(replace(each, recovery="none") for each in result.providers))

    answered("model.catalog.status", change)


@fault
def selection_forgotten() -> None:
    """After selection.set status shows the selection from before."""
    from localagent.core import effects
    from statemachines.operation import OperationInput

    put_item(effects._FOLLOW, OperationInput.WORKER_SELECTED, lambda move, moment: None)


@fault
def selection_not_durable() -> None:
    """A selection is said not to be stored."""
    answered("selection.set", lambda result: replace(result, durable=False))


@fault
def selection_without_history() -> None:
    """A selection says nothing of the new revision of the history."""
    answered("selection.set", lambda result: replace(result, history_revision=None))


@fault
def effort_not_retained() -> None:
    """The effort that was asked for is shown as default."""
    _rewriting("selection", lambda result: result["selection"].update(requested_effort="default"))


@fault
def selection_revision_of_the_start() -> None:
    """An attachment leaves the selection's revision as it was."""
    from localagent.core import effects
    from statemachines.attachment import AttachmentInput

    for given in (AttachmentInput.JOINT_ATTACHED_LAZY, AttachmentInput.JOINT_ATTACHED_DURABLE):
        put_item(effects._FOLLOW, given, _keeping(effects._FOLLOW[given]))


def _keeping(follow: Any) -> Any:
    def kept(move: Any, moment: Any) -> None:
        before = moment.facts.selection
        follow(move, moment)
        moment.facts.selection = before

    return kept


@fault
def wrong_code_for_a_choice() -> None:
    """A choice that is not to be had is refused as invalid_params."""
    failing("selection_invalid", "invalid_params")


@fault
def refresh_bounds_wrong() -> None:
    """model.refresh describes itself with another bound."""
    _describing("model.refresh", "models", 1)


@fault
def discovery_bounds_wrong() -> None:
    """session.discover describes itself with another bound."""
    _describing("session.discover", "page_entries", 1000)


def _describing(extension: str, key: str, value: int) -> None:
    def change(result: dict[str, Any]) -> None:
        if extension in result["extensions"]:
            result["extensions"][extension][key] = value

    _rewriting("extensions", change)
