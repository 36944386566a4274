"""The page of the durable steps: the fault points of the store, and what a kill at each leaves."""

from diagrams.markdown import NOTICE, code, table
from localagent.sessions.disk import Step

_ABOUT = (
    "Everything that changes the disk is one of these steps, in `localagent/sessions/disk.py`. Tests kill the process "
    "before and after each, and let each fail with an error of the disk. Whatever the step, no record that was "
    "acknowledged is lost, no half record is shown, and what a dead process leaves behind is in nobody's way. *A kill* "
    "is the end of the process; where a power cut may leave less, it is said."
)
_GROUPS = {
    "MAKE": ("The root", "When a child starts (ROOT-06)."),
    "LEASE": ("Leases", "Lock files with a kernel's lock on them, which dies with its process (LEASE)."),
    "REPLACE": ("A whole file", "Settings, the end of the event ids: all of the new content or the old (ROOT-10)."),
    "SESSION": ("An append", "All records of a batch, acknowledged after its last sync, or none (REC-30 to REC-32)."),
    "SALVAGE": ("Repair: the copy", "Before anything else happens to it, the damaged session is copied (REC-56)."),
    "REPAIR": ("Repair: the session", "Then its good lines take its place."),
    "COMPACT": ("Compaction", "A copy goes to `.history/`; then a checkpoint and what stays take its place (REC-44)."),
}


def pages() -> dict[str, str]:
    """Path below ``docs/`` -> text."""
    return {"reference/durability.md": _page()}


def _page() -> str:
    lines = [NOTICE, "", "# Durable steps", ""]
    lines += [_ABOUT, ""]
    for prefix, (title, about) in _GROUPS.items():
        lines += [f"## {title}", "", about, ""]
        steps = [step for step in Step if step.name.partition("_")[0] == prefix]
        lines += table(("Step", "What is done", "What a kill there leaves"), (_row(step) for step in steps))
    return "\n".join(lines).rstrip() + "\n"


def _row(step: Step) -> tuple[str, str, str]:
    return code(step.name), step.what, step.leaves
