"""The executable reference for magi-code.local-agent, version 1: a backend, a client, tools that judge others."""
