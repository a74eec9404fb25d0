"""The text that logdump prints."""
