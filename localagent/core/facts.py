"""The data beside the states: who is attached, what runs, which revisions are current. No rule stands here."""

from msgspec import Struct, field

from localagent.protocol.codes import Code
from localagent.protocol.names import CAPABILITIES
from localagent.protocol.params import InitializeParams, Params, ToolDescriptor
from localagent.protocol.results import Selection


class Startup(Struct):
    """What startup left: names and context, or the code of its failure."""

    job: int = 0
    request_id: str = ""
    form: InitializeParams | None = None
    tools: tuple[ToolDescriptor, ...] | None = None
    failure: Code | None = None
    provider: str | None = None
    model: str | None = None
    context_id: str | None = None
    refreshable: frozenset[str] | None = None


class Operation(Struct):
    """The request that the session worker works on."""

    job: int = 0
    request_id: str = ""
    method: str = ""
    params: Params | None = None


class Call(Struct):
    """A client tool call as it was published."""

    task_id: str | None
    subagent_id: str | None
    deadline: float


class Run(Struct):
    """The latest run. ``approvals`` maps an approval to the moment it expires."""

    job: int = 0
    run_id: str = ""
    session_id: str = ""
    code: Code | None = None
    revision: str | None = None
    selection: Selection | None = None
    approvals: dict[str, float] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)


class Facts(Struct):
    """Everything a classifier may look at, beside the request itself."""

    instance_id: str
    served: frozenset[str] = frozenset(CAPABILITIES)
    ids: set[str] = field(default_factory=set)
    startup: Startup = field(default_factory=Startup)
    operation: Operation = field(default_factory=Operation)
    run: Run = field(default_factory=Run)
    session_id: str | None = None
    selection: Selection | None = None
    revisions: dict[str, str] = field(default_factory=dict)
    """Snapshot name -> its current revision."""

    @property
    def negotiated(self) -> frozenset[str]:
        """Capabilities that the admitted initialization required."""
        form = self.startup.form
        return frozenset(form.required_capabilities) if form else frozenset()
