"""Counts and latencies: kept where requests are answered, added up and told by the doors."""

from .exposition import CONTENT_TYPE, expose
from .families import Distribution, Family, Histogram, Kind, merge
from .requests import RequestMetrics

__all__ = [
    "CONTENT_TYPE",
    "Distribution",
    "Family",
    "Histogram",
    "Kind",
    "RequestMetrics",
    "expose",
    "merge",
]
