"""Settings of the property tests: a loaded machine is no reason to fail."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("codec", deadline=None)
settings.load_profile("codec")
