"""The published JSON Schema of ``settings.json``, made from the structs of :mod:`.model`.

The committed ``settings.schema.json`` beside this file is what :func:`document` gives; a test compares the bytes. Write
it anew with ``localagent settings schema > localagent/settings/settings.schema.json``.
"""

from typing import Any, Final

import msgspec

from .model import Settings

FILE: Final = "settings.schema.json"
_HEAD: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Settings of a magi-code.local-agent backend",
    "description": (
        "What localagent honours in settings.json and in the project's .magi-code/settings.json. Other members are "
        "ignored. Rules that span several members are checked by: localagent settings check"
    ),
}


def document() -> bytes:
    """Return the schema, indented, with a line feed at its end."""
    (root,), components = msgspec.json.schema_components([Settings], ref_template="#/$defs/{name}")
    schema = _HEAD | {"$ref": root["$ref"], "$defs": {name: _plain(components[name]) for name in sorted(components)}}
    return msgspec.json.format(msgspec.json.encode(schema), indent=2) + b"\n"


def _plain(value: Any) -> Any:
    """Without the marks that our docstrings put around code; structs need no title of their own."""
    if isinstance(value, dict):
        return {
            key: each.replace("``", "`") if key == "description" and isinstance(each, str) else _plain(each)
            for key, each in value.items()
        }
    return [_plain(each) for each in value] if isinstance(value, list) else value
