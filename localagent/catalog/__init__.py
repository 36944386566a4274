"""Model catalogs: the cached ones a client chooses from, why one is missing, and the refresh of one by its provider.

=================  =================================================================================
:mod:`.document`   one cache file: its form, its fingerprint, its status (CACHE-02 to CACHE-05)
:mod:`.support`    which efforts a model permits (CACHE-07, CACHE-08)
:mod:`.choices`    caches and settings become choices, statuses and notices; here selection looks up
:mod:`.keys`       who is ready now, and by which key
:mod:`.scan`       one bounded, safe look at all caches and at the readiness of their providers
:mod:`.catalog`    the one snapshot of a child: ``model.catalog``, ``model.catalog.status``, its guard
:mod:`.answers`    what providers answer becomes the entries of a cache
:mod:`.remote`     one bounded, cancellable HTTP request (httpx2, imported only when it is made)
:mod:`.selection`  what a session works with, and the rules by which that changes; pure
:mod:`.selector`   the selection of a child: attach, ``selection.set``, what a catalog or a turn observes
:mod:`.caches`     what a selection asks of the caches: the snapshot, or one provider's cache alone
:mod:`.refresh`    ``model.refresh``: authenticate, ask, judge, replace the cache
=================  =================================================================================

Reading never asks anybody anything (CAT-70 to CAT-76); only a refresh does, and only the provider that was named.
Called with plain arguments, a clock and a cancel token; errors are those of :mod:`localagent.sessions.errors`.
"""
