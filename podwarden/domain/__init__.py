"""Nouns and rules. Everything here is frozen and pure.

Prohibited: I/O, clocks, randomness, logging, knowledge of Kubernetes' JSON, of tables or of pages.
Time is always an argument, always timezone-aware UTC. Sizes are whole MiB, CPU is whole milli-cores.
"""
