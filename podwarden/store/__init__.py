"""The control plane's memory: SQLAlchemy models, migrations, one repository a noun, secrets at rest.

Prohibited: network calls, planning, Kubernetes. Nothing outside this package sees the database library.
"""
