"""`python -m podwarden.cli`: the same as `podwarden`."""

from podwarden.cli.main import main

main()
