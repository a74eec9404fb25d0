"""`python -m inlet.cli`."""

from inlet.cli import main

main()
