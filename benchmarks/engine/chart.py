"""The chart in the README: images per CPU second over the set of photos, by job and engine, as a hand-written SVG.

It is written by hand rather than by a plotting library: a few kilobytes, the same bytes for the same figures, real
text, and support for light and dark colour schemes.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from benchmarks.engine.engines import DARKROOM
from benchmarks.engine.findings import Findings, verdicts
from benchmarks.engine.goals import cells_in_set
from benchmarks.engine.rows import machine

_LIBRARIES = {"sharp": "sharp", "pillow": "Pillow", "libvips": "libvips"}

_WIDTH = 840
_MARGIN = 24
_GAP = 36  # between the two columns
_PANEL = (_WIDTH - 2 * _MARGIN - _GAP) // 2
_LABELS = 124  # the width of the engines' names in a panel
_VALUES = 44  # the width of the figures
_BAR = 14
_PITCH = 21
_TOP = 76
_PANEL_HEAD = 30
_BETWEEN_ROWS = 26
_FOOT = 44

_STYLE = """\
svg { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; font-size: 12px }
.card { fill: #ffffff; stroke: #d1d9e0 } .ink { fill: #1f2328 } .faint { fill: #59636e }
.title { font-size: 17px; font-weight: 600 } .head { font-size: 13px; font-weight: 600 } .end { text-anchor: end }
.bar { fill: #c3cbd4 } .line { stroke: #59636e; stroke-width: 1.5 } .own { fill: #c8442c } .strong { font-weight: 600 }
@media (prefers-color-scheme: dark) {
.card { fill: #0d1117; stroke: #3d444d } .ink { fill: #f0f6fc } .faint { fill: #9198a1 }
.bar { fill: #4a525c } .line { stroke: #9198a1 } .own { fill: #f0664a }
}"""


@dataclass(frozen=True, kw_only=True)
class Bar:
    """An engine's figures over the set."""

    least: float
    median: float
    most: float


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One job: its title, and each engine's figures in the order of the bars. `own` names the highlighted one."""

    title: str
    bars: Mapping[str, Bar]
    own: str


def of_findings(findings: Findings, jobs: Sequence[str]) -> str:
    """The chart of the named jobs on the set."""
    panels = [_panel_of(job, findings) for job in jobs]
    photos = len({cell.source.name for cell in findings.cells if cell.source.is_in_set})
    known = {library: version for versions in findings.versions.values() for library, version in versions.items()}
    libraries = ", ".join(f"{title} {known[name]}" for name, title in _LIBRARIES.items() if name in known)
    return drawn(
        panels,
        title="Images per CPU second, beside Darkroom",
        subtitle=f"More is better. Bars: the median of up to {photos} photos; lines: from their worst to their best.",
        footnote=f"{libraries}; {machine()}, one core. By make bench-engine.",
    )


def _panel_of(job: str, findings: Findings) -> Panel:
    figures: dict[str, list[float]] = {}
    cells = cells_in_set(findings.cells, job)
    for cell in cells:
        for verdict in verdicts(cell, findings.engines, findings.timed):
            if not verdict.engine.only_wide_gamut:
                figures.setdefault(verdict.engine.title, []).append(1 / verdict.ratio)
    return Panel(
        title=cells[0].job.title[0].upper() + cells[0].job.title[1:],
        bars={
            title: Bar(least=min(values), median=statistics.median(values), most=max(values))
            for title, values in figures.items()
        },
        own=DARKROOM.title,
    )


def drawn(panels: Sequence[Panel], *, title: str, subtitle: str, footnote: str) -> str:
    """The panels in two columns, each with its own scale."""
    parts = [
        _text(title, _MARGIN, 34, "ink title"),
        _text(subtitle, _MARGIN, 54, "faint"),
    ]
    y = _TOP
    for row in range(0, len(panels), 2):
        pair = panels[row : row + 2]
        for column, panel in enumerate(pair):
            parts += _panel(panel, _MARGIN + column * (_PANEL + _GAP), y)
        y += _PANEL_HEAD + max(len(panel.bars) for panel in pair) * _PITCH + _BETWEEN_ROWS
    height = y - _BETWEEN_ROWS + _FOOT
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    parts.append(_text(footnote, _MARGIN, height - 18, "faint"))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title)}">',
            f"<style>{_STYLE}</style>",
            f'<rect class="card" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="8"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _panel(panel: Panel, x: int, y: int) -> list[str]:
    room = _PANEL - _LABELS - _VALUES
    most = max(bar.most for bar in panel.bars.values())
    parts = [_text(panel.title, x, y + 14, "ink head")]
    for place, (name, bar) in enumerate(panel.bars.items()):
        is_own = name == panel.own
        top = y + _PANEL_HEAD + place * _PITCH
        length = max(2, round(room * bar.median / most))
        left, right = round(room * bar.least / most), round(room * bar.most / most)
        middle = top + _BAR // 2
        colour = "own" if is_own else "bar"
        start = x + _LABELS
        parts += [
            _text(name, start - 8, top + 11, "ink strong end" if is_own else "ink end"),
            f'<rect class="{colour}" x="{start}" y="{top}" width="{length}" height="{_BAR}" rx="2"/>',
            _text(f"{bar.median:.2f}", start + room + 8, top + 11, "ink strong" if is_own else "faint"),
        ]
        if right > left:
            parts.append(f'<path class="line" d="M{start + left} {middle}H{start + right}"/>')
    return parts


def _text(text: str, x: int, y: int, classes: str) -> str:
    return f'<text class="{classes}" x="{x}" y="{y}">{escape(text)}</text>'
