"""Trail files: their records, headers, tokens and column areas."""
