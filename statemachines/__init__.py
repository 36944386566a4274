"""The formal model of magi-code.local-agent, version 1: state machines as data.

Standard library only, no clock, no I/O, nothing from ``localagent``. Start at :mod:`statemachines.registry`.
"""
