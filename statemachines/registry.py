"""The one list that engine, tests, explorer, observer, diagrams, docs and exports walk."""

from collections.abc import Mapping
from typing import Final

from statemachines.activity import ACTIVITY, CARD
from statemachines.approval import APPROVAL
from statemachines.attachment import ATTACHMENT
from statemachines.channel import CHANNEL
from statemachines.client_call import CLIENT_CALL
from statemachines.connection import CONNECTION
from statemachines.joint import JOINT
from statemachines.message import MESSAGE
from statemachines.operation import OPERATION
from statemachines.output import OUTPUT
from statemachines.persistence import PERSISTENCE
from statemachines.rows import JointRow, MachineSpec
from statemachines.run import RUN
from statemachines.snapshot import SNAPSHOTS

_ORDER = (
    CONNECTION,
    ATTACHMENT,
    OPERATION,
    RUN,
    PERSISTENCE,
    CHANNEL,
    APPROVAL,
    CLIENT_CALL,
    MESSAGE,
    ACTIVITY,
    CARD,
    *SNAPSHOTS,
    OUTPUT,
)

MACHINES: Final[Mapping[str, MachineSpec]] = {spec.name: spec for spec in _ORDER}
"""Name -> machine, in reading order."""

COUPLINGS: Final[Mapping[str, tuple[JointRow, ...]]] = {
    name: tuple(row for row in JOINT if row.machine == name) for name in MACHINES
}
"""Machine -> the coupling rows that start at it."""
