"""Where Dovetail keeps files that it can make or fetch again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_home() -> Path:
    """Dovetail's cache directory: DOVETAIL_CACHE, else dovetail in XDG_CACHE_HOME, else ~/.cache/dovetail."""
    if own := os.environ.get("DOVETAIL_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dovetail"
