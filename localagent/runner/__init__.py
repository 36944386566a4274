"""The agent: what runs a turn. Called by the shell with plain arguments, a session handle and a sink."""
