"""The durable store: sessions as append-only files that a crash cannot spoil and two processes cannot share (store.md).

Called with plain arguments, a clock, a cancel token; no threads are started here. What blocks is a worker's business.

=====================  =========================================================================================
:mod:`.store`          Store: create, open, renew
:mod:`.handle`         Handle: an attached session; append, refresh, page, release
:mod:`.journal`        the file of one session: reading, durable appending, change detection; Receipt
:mod:`.ownership`      the writer and the active lease of a session
:mod:`.leases`         lock files, judged and recovered (LEASE)
:mod:`.eventids`       unique ids in blocks (REC-09)
:mod:`.paths`          the root: where it is, what is made in it, its identity (ROOT)
:mod:`.files`          safe opening, whole-file replacement (REC-02, ROOT-10)
:mod:`.disk`           every step that changes the disk, by name: the fault points
:mod:`.lines`          bytes to lines, in bounded reads
:mod:`.records`        one record, one line: reading and writing (REC)
:mod:`.payloads`       the members of a payload that readers check
:mod:`.projection`     records to history entries (HISTP)
:mod:`.labels`         what a tool call is called in front of people (HISTP-09)
:mod:`.history`        entries cut into parts, an immutable snapshot, its pages (HIST)
:mod:`.listing`        Listing: the bounded snapshot of session.list (LIST)
:mod:`.discovery`      Discovery: the stepwise scan of session.discover (EXT-DISC)
:mod:`.inventory`      what those two share: names, signatures, one history in bounded reads
:mod:`.sketch`         what a listing shows of one history
:mod:`.facts`          title, time, directories, selection of a session (section 4)
:mod:`.scope`          the ceiling of a delegated session (REC-12)
:mod:`.inspect`        a store looked at from outside, offline: what a client would see, or why it is refused
:mod:`.repair`         damaged sessions brought back, every byte set aside (REC-56)
:mod:`.compaction`     a session started anew, its old bytes set aside (REC-44)
:mod:`.checkpoint`     what the removed records come to: the payload of the first record after it (REC-46)
:mod:`.damage`         what is wrong with a line that is no record, and the records that stand in it
:mod:`.instants`       RFC 3339 to the nanosecond
:mod:`.efforts`        the two spellings of an effort (SET-12)
:mod:`.worktree`       ``session_path``
:mod:`.clock`          time and cancellation from outside
:mod:`.errors`         what can go wrong, and what is then on the disk
=====================  =========================================================================================

Pure, without time, threads or files: records, payloads, projection, labels, history, facts, sketch, scope,
instants, efforts, damage, checkpoint.

A turn goes ``Store.open`` > ``Handle.append`` (a Receipt: durable) > ... > ``Handle.refresh`` (a revision) >
``Handle.page``. Records travel Draft > ``Pen`` > line > ``parse`` > Record > ``Projection`` and ``Facts``; entries
travel ``Projection.snapshot`` > ``Cutter.history`` > ``History.page``.
"""
