"""The only code that changes a serving stack."""
