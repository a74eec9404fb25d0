"""What `inlet inspect` shows of a trail, byte by byte."""
