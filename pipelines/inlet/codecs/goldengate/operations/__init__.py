"""What all message and text forms share: one operation, and the change that it becomes."""
