"""Messages of the JSON formatter."""
