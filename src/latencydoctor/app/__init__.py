"""Use cases over Protocols: they know what must happen, not who does it."""
