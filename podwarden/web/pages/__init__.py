"""Pages: one file each. A page is one template; its live part is the block `live` of the same template.

No decision is made here: a view asks the control plane as the API does, and writes sentences.
"""
