"""The only room that speaks Kubernetes: pure rendering and reading, and the client that carries both.

Prohibited: decisions, the database, other rooms' words in object names. Errors leave as podwarden.errors.
"""
