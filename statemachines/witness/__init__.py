"""What the observer stands on (:mod:`statemachines.observe` is the way in).

``frames``   what a backend frame tells: which emit of which instance, on which input
``search``   the cheapest inputs, seen or supposed, that lead to a frame
``leaving``  the same for the exit of the process
``owed``     frames that must still be seen, and which may come before which
``facts``    the factual checks of admission: True, False, or None where frames do not show the answer
``amiss``    when no row explains a frame: what to say, and how to go on
``shapes``   keys and types of everything that crosses, with the clauses that fix them, and every code
``rules``    what must hold between a frame and the frames before it
``ledger``   the memory: what has been seen so far

The first six speak of the machines, the last three of contents. Left out: times (a trace has no clock the protocol
knows), the truth of texts, the contents of the blocks of cards, and whatever only the store, the settings or a
provider know.
"""
