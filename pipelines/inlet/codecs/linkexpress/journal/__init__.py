"""Usage journals of the Linkexpress Transactional Replication option. The codec is files.py."""
