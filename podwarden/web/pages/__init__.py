"""Pages: one file each. A page is one template; its live part is a named block of the same template."""
