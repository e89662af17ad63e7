"""PodWarden: GPU work on a handful of machines, with a queue that explains itself."""

__version__ = "0.1.0"
