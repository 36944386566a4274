"""Which cases can a fault show itself in? Those in which the backend without a fault runs what the fault replaces.

Up to the first call of a function that it replaces, a mutant is the backend without a fault; of a bound that it changes
in one module, up to the first call of a function there that names the bound. So a case in which no such function was
run needs no play: its checks hold, as they do without a fault. Where a fault replaces something else, such as an entry
of a table or a field, every case is played.
"""

import inspect
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import CO_COROUTINE, CO_GENERATOR
from types import CodeType, FrameType, ModuleType
from typing import Any, Final

from . import forks, tools
from .mutant import Mutant

_OURS: Final = ("localagent", "statemachines")
Places = frozenset[str]
"""Functions: file, line and name."""


def _place(code: CodeType) -> str:
    return f"{code.co_filename}:{code.co_firstlineno}:{code.co_qualname}"


def replaced(mutants: Iterable[Mutant]) -> Mapping[str, Places | None]:
    """Mutant -> the functions that its fault replaces; None when it replaces anything else."""
    return {mutant.name: _replaced(mutant) for mutant in mutants}


def _replaced(mutant: Mutant) -> Places | None:
    told, tells = os.pipe()
    pid = os.fork()
    if not pid:  # the fault must not stay in this process
        status = 1
        try:
            tools.REPLACED.clear()
            mutant.install()
            known = [_codes(*each) for each in tools.REPLACED]
            if known and all(known):
                os.write(tells, "\n".join(_place(code) for codes in known for code in codes).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(tells)
    with open(told, encoding="utf-8") as file:
        lines = file.read().split("\n")
    if os.waitpid(pid, 0)[1]:
        raise RuntimeError(f"{mutant.name} cannot be put in")
    return frozenset(filter(None, lines)) or None


def _codes(owner: object, name: str, value: Any) -> list[CodeType]:
    """What runs before it can matter that a place has another value; empty where that is not known.

    A function or property itself, unless it does not run when it is called (a generator, a cached answer); of another
    value of a module the functions that name it.
    """
    if isinstance(owner, ModuleType) and not callable(value) and not isinstance(value, ModuleType):
        return list(_naming(owner, name))
    parts = (value.fget, value.fset, value.fdel) if isinstance(value, property) else (value,)
    codes = [getattr(part, "__code__", None) for part in parts if part is not None]
    plain = all(isinstance(code, CodeType) and not code.co_flags & (CO_GENERATOR | CO_COROUTINE) for code in codes)
    return [code for code in codes if isinstance(code, CodeType)] if plain else []


def _naming(owner: ModuleType, name: str) -> Iterator[CodeType]:
    """The functions of ours that name a value of a module: its own, and those of modules that have that module."""
    for module in [each for each in sys.modules.values() if each.__name__.partition(".")[0] in _OURS]:
        if module is owner or any(each is owner for each in vars(module).values()):
            whole = compile(inspect.getsource(module), module.__file__ or "", "exec", dont_inherit=True)
            yield from (code for code in _inside(whole) if name in code.co_names)


def _inside(code: CodeType) -> Iterator[CodeType]:
    """The functions in a piece of code, at any depth; not the piece itself, which has run."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _inside(each)


def reached(play: Callable[[Mutant], object]) -> Places:
    """The functions of the backend that run, in any of its children, while ``play`` plays with this mutant."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as file:
        play(Mutant("no-fault-traced", forks.CONTROL.about, "", lambda: _trace(file.name)))
        return frozenset(filter(None, file.read().split("\n")))


def _trace(path: str) -> None:
    """Have this process write each function of ours when it first runs; at once, for it may be killed."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    seen: set[int] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and id(code) not in seen:
            seen.add(id(code))
            if frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
                os.write(file, f"{_place(code)}\n".encode())

    threading.setprofile(look)
    sys.setprofile(look)
