"""Steps name tables and types literally: what was released does not change with the code."""
