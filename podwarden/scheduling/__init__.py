"""Decides who may start, where, and explains the rest: `plan(snapshot, now) -> Plan`.

Prohibited: I/O, clocks, randomness, logging, any state that can be seen from outside. Same snapshot, same plan.
"""
