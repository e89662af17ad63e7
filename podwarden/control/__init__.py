"""Use cases and loops: what people ask for, and what makes it come true.

Every loop is load -> decide -> apply: it reads the cluster's latest observation and the index of active
workloads, decides with pure code, and applies through `store` (one guarded transaction) and `kube`. One
process acts per cluster (`leader`); any process answers questions and takes orders.

Prohibited: a network call inside a transaction, policy (it lives in `scheduling`), Kubernetes' JSON, SQL,
reading the clock anywhere but through `clock`.
"""
