"""Small pictures over two axes as SVG, for the pages of docs/course: the same numbers give the same bytes."""

import html

WIDTH, HEIGHT = 640, 340
LEFT, RIGHT, TOP, BOTTOM = 62, 18, 46, 50

STYLE = """<style>
  svg { font: 13px sans-serif }
  .ground { fill: #ffffff } text { fill: #222222 }
  .rule { stroke: #dddddd } .axis { stroke: #222222 }
  .line { fill: none; stroke-width: 2 } .thin { fill: none; stroke-width: 1 } .dashed { stroke-dasharray: 6 4 }
  .blue { stroke: #1f6fb4; fill: #1f6fb4 } .orange { stroke: #c25b00; fill: #c25b00 }
  .green { stroke: #2a7f3b; fill: #2a7f3b } .grey { stroke: #777777; fill: #777777 }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #16191d } text { fill: #e6e6e6 }
    .rule { stroke: #3a3f45 } .axis { stroke: #e6e6e6 }
    .blue { stroke: #6cb4f2; fill: #6cb4f2 } .orange { stroke: #ff9d4d; fill: #ff9d4d }
    .green { stroke: #7bd18d; fill: #7bd18d } .grey { stroke: #a0a0a0; fill: #a0a0a0 }
  }
  .line, .thin { fill: none } .solid, .word { stroke: none } text.ground { fill: #ffffff }
  @media (prefers-color-scheme: dark) { text.ground { fill: #16191d } }
</style>"""


class Axis:
    """From one number to another, with marks: numbers, or pairs of number and word."""

    def __init__(self, title, start, end, ticks):
        self.title, self.start, self.end = title, start, end
        self.ticks = [tick if isinstance(tick, tuple) else (tick, f"{tick:g}") for tick in ticks]

    def share(self, value):
        """0 at the start, 1 at the end; what lies beyond is moved to the edge."""
        return min(max((value - self.start) / (self.end - self.start), 0.0), 1.0)


class Chart:
    """A picture that grows by its methods; svg() is the file. Colours: blue, orange, green, grey."""

    def __init__(self, title, x, y):
        self.title, self.x, self.y, self.body = title, x, y, []

    def left(self, value):
        return LEFT + self.x.share(value) * (WIDTH - LEFT - RIGHT)

    def top(self, value):
        return HEIGHT - BOTTOM - self.y.share(value) * (HEIGHT - TOP - BOTTOM)

    def line(self, points, colour, style="line"):
        path = " ".join(f"{self.left(x):.1f},{self.top(y):.1f}" for x, y in points)
        self.body.append(f'<polyline class="{style} {colour}" points="{path}"/>')

    def dots(self, points, colour, radius=4):
        for x, y in points:
            self.body.append(f'<circle class="{colour} solid" cx="{self.left(x):.1f}" cy="{self.top(y):.1f}" r="{radius}"/>')

    def bars(self, points, width, colour):
        """Upright bars from 0, `width` wide in units of x, and centred."""
        for x, y in points:
            left, right, top = self.left(x - width / 2), self.left(x + width / 2), self.top(y)
            self.body.append(f'<rect class="{colour} solid" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
                             f'height="{self.top(max(0, self.y.start)) - top:.1f}"/>')

    def marks(self, values, colour, low, high):
        """Upright strokes at values of x, from `low` to `high` of y."""
        for value in values:
            self.line([(value, low), (value, high)], colour, "thin")

    def label(self, x, y, words, colour, anchor="start"):
        self.body.append(f'<text class="{colour} word" x="{self.left(x):.1f}" y="{self.top(y):.1f}" '
                         f'text-anchor="{anchor}">{html.escape(words)}</text>')

    def legend(self, entries):
        """(words, colour) in a line below the title."""
        left = LEFT
        for words, colour in entries:
            self.body.append(f'<rect class="{colour} solid" x="{left}" y="28" width="12" height="8"/>'
                             f'<text x="{left + 17}" y="37">{html.escape(words)}</text>')
            left += 36 + 7 * len(words)

    def svg(self):
        bottom = HEIGHT - BOTTOM
        text = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
                f"<title>{html.escape(self.title)}</title>", STYLE,
                f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>',
                f'<text x="{WIDTH / 2:g}" y="17" text-anchor="middle" font-weight="bold">{html.escape(self.title)}</text>']
        for value, words in self.x.ticks:
            x = self.left(value)
            text.append(f'<line class="rule" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}"/>'
                        f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{html.escape(words)}</text>')
        for value, words in self.y.ticks:
            y = self.top(value)
            text.append(f'<line class="rule" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
                        f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{html.escape(words)}</text>')
        text.append(f'<line class="axis" x1="{LEFT}" y1="{bottom}" x2="{WIDTH - RIGHT}" y2="{bottom}"/>'
                    f'<line class="axis" x1="{LEFT}" y1="{TOP}" x2="{LEFT}" y2="{bottom}"/>')
        middle = (LEFT + WIDTH - RIGHT) / 2
        text.append(f'<text x="{middle:g}" y="{HEIGHT - 10}" text-anchor="middle">{html.escape(self.x.title)}</text>')
        upright = (TOP + bottom) / 2
        text.append(f'<text transform="translate(14 {upright:g}) rotate(-90)" text-anchor="middle">{html.escape(self.y.title)}</text>')
        return "\n".join(text + self.body) + "\n</svg>\n"
