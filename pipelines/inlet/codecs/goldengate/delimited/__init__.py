"""Lines of the delimited text formatter."""
