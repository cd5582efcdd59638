"""Properties are judged by their answers, not by the clock: a busy machine must not fail them."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
