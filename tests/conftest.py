"""Where tests find real traces, and what they all share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TRACES = Path(os.environ.get("DOVETAIL_TRACES", ROOT.parent / "shared" / "traces"))

needs_traces = pytest.mark.skipif(
    not (TRACES / "papers").is_dir(),
    reason=f"real traces are not at {TRACES}: set DOVETAIL_TRACES to the folder that holds them",
)
