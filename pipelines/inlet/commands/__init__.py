"""What each command of `inlet` does, without its words on the command line."""
