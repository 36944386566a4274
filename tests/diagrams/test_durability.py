"""The page of the durable steps names every one of them, once."""

from diagrams import durability
from localagent.sessions.disk import Step


def test_every_step_has_its_row() -> None:
    (page,) = durability.pages().values()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    assert sorted(row[0].strip("| `") for row in rows) == sorted(Step.__members__)
    for row in rows:
        step = Step[row[0].strip("| `")]
        assert [row[1], row[2].removesuffix(" |")] == [step.what, step.leaves]
