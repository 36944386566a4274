"""What crosses the pipe: bytes to requests, structs to bytes. Pure: no clock, no I/O, no state but one buffer.

========================  ==============================================================================
:mod:`.names`             the fixed words: protocol, version, methods, capabilities
:mod:`.limits`            every bound, one frozen struct
:mod:`.codes`             every wire code, one enum
:mod:`.errors`            the exceptions of this room, and whose fault each is
:mod:`.ids`               the grammars, as patterns and predicates
:mod:`.measure`           how the contract measures: UTF-8 bytes, compact JSON bytes, containers
:mod:`.framing`           bytes in any cut to complete lines
:mod:`.codec`             a line to a request or a refusal; a request to checked params; a frame to a line
:mod:`.params`            params of the seventeen methods, as a client may send them
:mod:`.results`           results of the seventeen methods, as the backend writes them
:mod:`.events`            ``data`` of the ten events
:mod:`.messages`          envelopes and the registries METHODS, RESULTS, EVENTS
:mod:`.client_tools`      the contents of a client tool registry, and the bounds of a call
========================  ==============================================================================

A line travels ``LineBuffer.feed`` > ``parse`` > (the core: duplicate id, quota, method, state) > ``params_of``;
an answer travels ``response`` / ``error`` / ``event`` > ``encode``.
"""
