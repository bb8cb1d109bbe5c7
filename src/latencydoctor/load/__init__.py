"""Open-loop load from a child process."""
