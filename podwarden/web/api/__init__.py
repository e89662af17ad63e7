"""JSON API v1."""
