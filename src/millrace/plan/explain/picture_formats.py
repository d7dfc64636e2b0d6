"""A picture of the query graph as JSON, as DOT for Graphviz, and drawn as SVG; text is in `plan_text`.

Rules:
- What is drawn is the `QueryPicture`, all of it: what queries share has a double frame, an arc that is cut on Spark is
  thick and says how rows are spread, ETS arcs are dotted, and a node says what bounds its state.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from html import escape

from millrace.plan.explain.layered_layout import layers_of
from millrace.plan.explain.query_picture import PictureNode, QueryPicture

FORMATS = ("text", "json", "dot", "svg")
_WIDTH, _GAP, _LINE, _ROW, _MARGIN = 230, 140, 14, 26, 20
"""Pixels: the width of a box, the gap to the next layer, the height of a line, the gap below a box, the margin."""
_CHARACTERS = 36
"""Characters in a line of a box."""
_STYLE = """
text { font: 12px sans-serif; fill: #1b1b1b } .small { font-size: 10px; fill: #555 }
rect { fill: #fff; stroke: #555; rx: 5 } .stream rect { fill: #e8f1fb } .query rect { fill: #fdf3dc }
path { fill: none; stroke: #555 } .cut { stroke-width: 3 } .ets { stroke: #b45309; stroke-dasharray: 3 4 }
"""


def rendered(picture: QueryPicture, format: str) -> str:
    """A picture in one of the formats but text."""
    return {"json": _json, "dot": _dot, "svg": _svg}[format](picture)


def _json(picture: QueryPicture) -> str:
    return json.dumps(picture.data(), indent=1)


# DOT


def _dot(picture: QueryPicture) -> str:
    lines = [
        'digraph "millrace" {',
        "  rankdir=LR",
        '  node [shape=box, style=filled, fillcolor=white, fontname="sans"]',
    ]
    for node in picture.nodes:
        fill = {"stream": ', fillcolor="#e8f1fb"', "query": ', fillcolor="#fdf3dc"'}.get(node.kind, "")
        frames = ", peripheries=2" if len(node.queries) > 1 else ""
        label = "\n".join(_words(node))
        lines.append(f"  {_quoted(node.name)} [label={_quoted(label)}{fill}{frames}]")
    for arc in picture.arcs:
        cut = f" [label={_quoted(f'exchange {arc.exchange}')}, penwidth=3]" if arc.exchange else ""
        lines.append(f"  {_quoted(arc.producer)} -> {_quoted(arc.consumer)}{cut}")
    for stream, operator in picture.ets_arcs:
        lines.append(f'  {_quoted(stream)} -> {_quoted(operator)} [style=dotted, constraint=false, label="ETS"]')
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\l")
    return f'"{escaped}"'


def _words(node: PictureNode) -> list[str]:
    """The lines of a node: its name, what it does, what bounds its state, and which queries share it."""
    lines = [node.name, *textwrap.wrap(node.text, _CHARACTERS, max_lines=4, placeholder=" …")]
    lines += textwrap.wrap(f"state: {node.state}", _CHARACTERS) if node.state else []
    shared = f"shared by {', '.join(node.queries)}" if len(node.queries) > 1 else ""
    return lines + textwrap.wrap(shared, _CHARACTERS)


# SVG


def _svg(picture: QueryPicture) -> str:
    reads = {node.name: [arc.producer for arc in picture.arcs if arc.consumer == node.name] for node in picture.nodes}
    nodes = {node.name: node for node in picture.nodes}
    boxes: dict[str, tuple[int, int, int]] = {}
    for column, layer in enumerate(layers_of(reads)):
        top = _MARGIN
        for name in layer:
            height = _LINE * len(_words(nodes[name])) + 10
            boxes[name] = (_MARGIN + column * (_WIDTH + _GAP), top, height)
            top += height + _ROW
    width = max((left + _WIDTH for left, _, _ in boxes.values()), default=0) + _MARGIN
    height = max((top + tall for _, top, tall in boxes.values()), default=0) + _MARGIN
    body = [*_drawn_arcs(picture, boxes), *(_drawn_node(nodes[name], box) for name, box in boxes.items())]
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<style>{_STYLE}</style>'
    return "\n".join([head, *body, "</svg>"])


def _drawn_node(node: PictureNode, box: tuple[int, int, int]) -> str:
    left, top, height = box
    frame = f'<rect x="{left}" y="{top}" width="{_WIDTH}" height="{height}"/>'
    if len(node.queries) > 1:
        frame += f'<rect x="{left + 3}" y="{top + 3}" width="{_WIDTH - 6}" height="{height - 6}"/>'
    first, *others = _words(node)
    texts = [f'<text x="{left + 8}" y="{top + _LINE + 3}">{escape(first)}</text>']
    for place, line in enumerate(others, 2):
        texts.append(f'<text class="small" x="{left + 8}" y="{top + _LINE * place + 3}">{escape(line)}</text>')
    return f'<g class="{node.kind}"><title>{escape(node.text)}</title>{frame}{"".join(texts)}</g>'


def _drawn_arcs(picture: QueryPicture, boxes: dict[str, tuple[int, int, int]]) -> Iterator[str]:
    for arc in picture.arcs:
        start, end = _ends(boxes[arc.producer], boxes[arc.consumer])
        yield f'<path class="{"cut" if arc.exchange else "arc"}" d="{_curve(start, end)}"/>'
        if arc.exchange:
            x, y = (start[0] + end[0]) // 2 - 60, (start[1] + end[1]) // 2 - 6
            yield f'<text class="small" x="{x}" y="{y}">{escape(f"exchange {arc.exchange}")}</text>'
    for stream, operator in picture.ets_arcs:
        (x, y), end = _ends(boxes[stream], boxes[operator])
        yield f'<path class="ets" d="{_curve((x, y + 8), (end[0], end[1] + 8))}"><title>ETS arc</title></path>'


def _ends(producer: tuple[int, int, int], consumer: tuple[int, int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    return (producer[0] + _WIDTH, producer[1] + producer[2] // 2), (consumer[0], consumer[1] + consumer[2] // 2)


def _curve(start: tuple[int, int], end: tuple[int, int]) -> str:
    middle = (start[0] + end[0]) // 2
    return f"M{start[0]},{start[1]} C{middle},{start[1]} {middle},{end[1]} {end[0]},{end[1]}"
