"""Messages of the XML formatter."""
