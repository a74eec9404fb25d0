"""Fields as compiled walks read them."""
