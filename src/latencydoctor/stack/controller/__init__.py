"""Watches the settings file, compiles it for Triton and brings it into effect; run with `python -m`."""
