"""Decides who may start, where, and explains the rest: `plan(snapshot, now) -> Plan`.

Prohibited: I/O, clocks, randomness, logging, any state that can be seen from outside. Same snapshot, same plan.

order -> need (compiled request) -> books (free capacity) -> feasible (would it fit) -> rank (which is best)
-> candidates (the index) -> reserve (the head's promise) -> passing (one pass) -> explain, remedy -> plan.
"""

from podwarden.scheduling.plan import plan, preview, refusal

__all__ = ["plan", "preview", "refusal"]
