"""The way of the schema, one file a step, oldest first. Run by `store/migrate.py`, never by hand."""
