"""Drawings of a report as SVG: one file a kind of figure."""

from reports.figures.panels import Curve, Legend, Panel, Point, panels
from reports.figures.quality_cost import quality_cost_figure

__all__ = ["Curve", "Legend", "Panel", "Point", "panels", "quality_cost_figure"]
