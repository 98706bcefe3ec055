"""An engine whose library is not installed."""

from __future__ import annotations

raise ImportError("no such library")
