"""Settings and everything else that startup admits, once per child, all of it local.

=====================  ==========================================================================
:mod:`.snapshot`       what is admitted: the types that catalog, selection and runners read
:mod:`.admit`          all of it, in one order; the same without stopping at the first fault
:mod:`.model`          the keys of ``settings.json``, their types and defaults
:mod:`.rules`          what types cannot say
:mod:`.merge`          how project settings go over global ones
:mod:`.load`           both files, read once, judged, merged, judged again
:mod:`.source`         files opened without surprises, JSON without ambiguities
:mod:`.folders`        directories, likewise
:mod:`.faults`         what is wrong, for people: file, key, what was expected; never a value
:mod:`.explain`        every mismatch of a value with its type
:mod:`.credentials`    keys, from the environment and ``auth.json``
:mod:`.providers`      providers, whether they are ready, and which is selected
:mod:`.mcp`            definitions of MCP servers, and which of them are approved
:mod:`.knowledge`      instructions and skills
:mod:`.profiles`       subagent profiles and the primary agent
:mod:`.markdown`       front matter
:mod:`.schema`         the published JSON Schema
=====================  ==========================================================================
"""
