"""Evidence to a diagnosis; pure."""
