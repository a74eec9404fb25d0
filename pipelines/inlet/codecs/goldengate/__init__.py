"""Oracle GoldenGate."""
