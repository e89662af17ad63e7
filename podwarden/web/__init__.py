"""HTTP: the JSON API and the pages. Parses, authorises, calls one use case, answers.

Prohibited: decisions, the database, Kubernetes.
"""
