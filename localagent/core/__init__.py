"""The backend without its I/O: bytes, worker messages and time in, frames and commands out.

Pure: no clock, no threads, no sockets, no randomness. ``now`` is an argument (milliseconds on a monotonic clock) and
identifiers come from a function that the caller supplies. See :class:`localagent.core.connection.Connection`.
"""
