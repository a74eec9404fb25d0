"""Messages of the Avro formatters."""
