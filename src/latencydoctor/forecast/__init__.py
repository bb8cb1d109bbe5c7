"""Evidence and settings to expected latency; pure."""
