"""The command line: a client of the API, and the commands that start something here.

Client commands import httpx, typer and rich only.
"""
