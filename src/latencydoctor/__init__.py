"""Finds the cause of an inference-latency incident, fixes it as a transaction and proves the fix."""

__version__ = "0.1.0"
