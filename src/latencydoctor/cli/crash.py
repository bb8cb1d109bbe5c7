"""What is left behind after an unexpected error: one file with versions and traceback, secrets taken out."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback
from pathlib import Path

from latencydoctor import __version__


def write(error: Exception) -> Path:
    """Write the details to a file only the user can read, and return its path."""
    from latencydoctor.evidence.redact import redact

    text = "".join(traceback.format_exception(error))
    head = f"latencydoctor {__version__}\npython {sys.version}\nplatform {platform.platform()}\n"
    handle, name = tempfile.mkstemp(prefix="latencydoctor-", suffix=".log")
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
        stream.write(redact(head + text))
    return Path(name)
