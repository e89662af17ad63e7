"""Use cases and the loops that make them true: load, decide, apply.

Prohibited: Kubernetes' JSON, SQL, HTTP. No network call inside a transaction.
"""
