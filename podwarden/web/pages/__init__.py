"""Server-rendered pages, one file a page."""
