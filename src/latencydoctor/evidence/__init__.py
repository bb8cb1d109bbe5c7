"""Raw readings to evidence; pure."""
