"""Templates and workload files: YAML in, validated specs out, every fault with its line.

Prohibited: network, the database, the cluster.
"""
