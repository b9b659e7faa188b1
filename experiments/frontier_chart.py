"""The picture of experiments/frontier: a row of panels for each data set, accuracy over two costs. Errors and costs have
logarithmic axes. The same points give the same bytes."""

import dataclasses
import html
import math

from course_chart import STYLE

COLOURS = ("blue", "orange", "green")
WIDTH, LEFT, GAP, RIGHT = 880, 58, 26, 14
HEAD, ROW_HEAD, PANEL, FOOT, LINE = 100, 32, 330, 66, 19
PANEL_WIDTH = (WIDTH - LEFT - GAP - RIGHT) / 2
COSTS = {"bytes": "parameter bytes", "work": "multiply-adds × weight bits × input bits"}

# Behind that of course_chart, whose lines it makes thinner.
MORE_STYLE = """<style>
  svg { font-size: 14px } .small { font-size: 13px } .digit, .bold { font-weight: bold }
  .digit { font-size: 11px } .head { font-size: 17px }
  .path, .bar { fill: none; stroke-width: 1.5 } .path { opacity: 0.6 } .broken { stroke-dasharray: 4 4 }
  .beam { fill: none; stroke-width: 3 } .inverse, .name, .quiet { stroke: none }
  .halo { stroke: #ffffff; stroke-width: 4; paint-order: stroke }
  .hollow { fill: #ffffff; stroke-width: 1.5 } .edged { stroke: #ffffff; stroke-width: 1 }
  .inverse { fill: #ffffff } .quiet { fill: #666666 }
  @media (prefers-color-scheme: dark) {
    .hollow, .inverse { fill: #16191d } .edged, .halo { stroke: #16191d } .quiet { fill: #a0a0a0 }
  }
</style>"""


@dataclasses.dataclass
class Point:
    """`kind`: float, calibrated, trained or another. `bits`: 32 in float. `ends`: bits of the weights of the first and last
    layer. `mean` and `error` (of the mean) in %. `work`: multiply-adds x bits. `words`: beside the point."""
    kind: str
    bits: int
    ends: int
    mean: float
    error: float
    seeds: int
    is_simulated: bool
    bytes: int
    work: int
    words: str = ""

    @property
    def is_calibrated(self):
        return self.kind == "calibrated"

    @property
    def has_wide_ends(self):
        return self.ends > self.bits


@dataclasses.dataclass
class Published:
    """Accuracies of others for a network, from `low` to `high`. `work` is None where it does not follow."""
    low: float
    high: float
    words: str
    bytes: int
    work: int | None


@dataclasses.dataclass
class Network:
    name: str
    points: list
    published: list

    def lines(self):
        """Points that a line joins, a line for each kind and kind of ends: 8 bits belong to both, float to trained ones."""
        for kind in dict.fromkeys(point.kind for point in self.points if point.kind != "float"):
            for wide in (False, True):
                own = [p for p in self.points if p.kind == kind and p.bits < 8 and p.has_wide_ends == wide]
                common = [p for p in self.points if p.kind == kind and p.bits == 8 or p.kind == "float" and kind == "trained"]
                if own and not own[0].words:
                    yield sorted(own + common, key=lambda p: p.bits)

    def title(self):
        seeds = sorted({point.seeds for point in self.points})
        if not seeds:
            return f"{self.name} (by others)"
        return f"{self.name} ({' to '.join(map(str, dict.fromkeys((seeds[0], seeds[-1]))))} seed{'s' * (seeds[-1] > 1)})"


@dataclasses.dataclass
class DataSet:
    """`levels`: accuracies of others in % with their words. `best`, `worst`: the ends of the axis of accuracies."""
    title: str
    networks: list
    levels: list
    best: float
    worst: float
    ticks: tuple

    def notes(self):
        """What the panels do not show, in lines."""
        below, simulated = {}, {}
        for network in self.networks:
            for point in network.points:
                if point.mean < self.worst:
                    below.setdefault((point.kind, point.bits), []).append(point.mean)
                if point.is_simulated:
                    simulated.setdefault(point.kind, {})[network.name] = True
        parts = [" to ".join(f"{mean:.1f}%" for mean in dict.fromkeys((min(means), max(means)))) + f" with {bits} bits"
                 for (_, bits), means in sorted(below.items())]
        kinds = " and ".join(sorted({kind for kind, _ in below}))
        return ([f"Simulated, not integers: {kind} {', '.join(names)}." for kind, names in sorted(simulated.items())] +
                [f"Below the axis, {kinds}: {', '.join(parts)}."] * bool(parts))


class Logarithm:
    """An axis from one number to another."""

    def __init__(self, start, end, place, length):
        self.start, self.end, self.place, self.length = start, end, place, length

    def at(self, value):
        return self.place + self.length * math.log(value / self.start) / math.log(self.end / self.start)

    def ticks(self):
        """1, 10, 100 ..., or 1, 2, 5, 10 ... where these are few."""
        decades = range(math.floor(math.log10(self.start)), math.ceil(math.log10(self.end)) + 1)
        steps = (1,) if self.end > 150 * self.start else (1, 2, 5)
        return [10 ** d * s for d in decades for s in steps if self.start <= 10 ** d * s <= self.end]


def short(number, unit):
    size, prefix = next(pair for pair in ((10 ** 9, "G"), (10 ** 6, "M"), (10 ** 3, "k"), (1, "")) if number >= pair[0])
    return f"{number // size} {prefix}{unit}".strip()


def words_at(x, y, words, style="small", anchor="start"):
    chosen = f' class="{style}"' if style else ""
    return f'<text{chosen} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(words)}</text>'


def stroke(style, x1, y1, x2, y2):
    return f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


class Panel:
    """One cost of a data set."""

    def __init__(self, data, cost, left, top):
        self.data, self.cost, self.left, self.top = data, cost, left, top
        self.right, self.bottom = left + PANEL_WIDTH, top + PANEL
        costs = [value for network in data.networks for one in [*network.points, *network.published]
                 if (value := getattr(one, cost)) is not None]
        self.x = Logarithm(min(costs) / 1.35, max(costs) * 1.35, left, PANEL_WIDTH)
        self.y = Logarithm(100 - data.best, 100 - data.worst, top, PANEL)

    def height(self, accuracy):
        return self.y.at(100 - accuracy)

    def place(self, point):
        return self.x.at(getattr(point, self.cost)), self.height(point.mean)

    def frame(self):
        text = []
        for value in self.x.ticks():
            x = self.x.at(value)
            text += [stroke("rule", x, self.top, x, self.bottom),
                     words_at(x, self.bottom + 18, short(value, "B" if self.cost == "bytes" else ""), anchor="middle")]
        for value in self.data.ticks:
            y = self.height(value)
            text.append(stroke("rule", self.left, y, self.right, y))
            if self.left == LEFT:
                text.append(words_at(LEFT - 7, y + 4, f"{value:g}%", anchor="end"))
        return [*text, stroke("axis", self.left, self.bottom, self.right, self.bottom),
                stroke("axis", self.left, self.top, self.left, self.bottom),
                words_at((self.left + self.right) / 2, self.bottom + 39, COSTS[self.cost], "", "middle")]

    def body(self):
        """In layers: lines, what others have, calibrated points, the others."""
        coloured = list(zip(self.data.networks, COLOURS))
        text = [part for accuracy, words in self.data.levels for part in self._level(accuracy, words)]
        text += [self._line(line, colour) for network, colour in coloured for line in network.lines()]
        text += [part for network, colour in coloured for one in network.published if getattr(one, self.cost) is not None
                 for part in self._published(one, colour)]
        points = [(point, colour) for network, colour in coloured for point in network.points if point.mean >= self.data.worst]
        points.sort(key=lambda pair: (not pair[0].is_calibrated, pair[0].has_wide_ends))
        return text + [part for point, colour in points for part in self._point(point, colour)]

    def _level(self, accuracy, words):
        y = self.height(accuracy)
        return [stroke("grey broken", self.left, y, self.right, y),
                words_at(self.right - 4, y + 15, words, "small quiet halo", "end")]

    def _line(self, points, colour):
        path = " ".join("{:.1f},{:.1f}".format(*self.place(point)) for point in points)
        broken = " broken" if points[0].is_calibrated else ""
        return f'<polyline class="{colour} path{broken}" points="{path}"/>'

    def _published(self, one, colour):
        x, high, low = self.x.at(getattr(one, self.cost)), self.height(one.high), self.height(one.low)
        path = f"M{x - 14:.1f},{high:.1f}h28"
        if one.low < one.high:
            path += f"M{x - 14:.1f},{low:.1f}h28M{x:.1f},{high:.1f}V{low:.1f}"
        beam = f'<path class="{colour} beam" d="{path}"/>'
        # Seven units a letter: words stay inside.
        space = 7 * len(one.words)
        if one.low == one.high and x + 18 + space < self.right:
            return [beam, words_at(x + 18, high + 10, one.words, f"small name {colour} halo")]
        y = high - 7 if one.low < one.high else high + 22
        return [beam, words_at(min(x, self.right - 4 - space / 2), y, one.words, f"small name {colour} halo", "middle")]

    def _point(self, point, colour):
        x, y = self.place(point)
        if point.error:
            yield stroke(f"{colour} bar", x, self.height(point.mean + point.error), x, self.height(point.mean - point.error))
        yield mark(x, y, point, colour)
        if point.words:
            yield words_at(x + 13, y + 4, point.words, f"small name {colour} halo")


def mark(x, y, point, colour):
    """The bits in a circle, in a square where all layers have them, or in a longer one for float."""
    style = f'class="{colour} {"hollow" if point.is_calibrated else "edged"}"'
    if point.kind != "float" and (point.has_wide_ends or point.bits >= 8):
        shape = f'<circle {style} cx="{x:.1f}" cy="{y:.1f}" r="7.5"/>'
    else:
        half = 10.5 if point.kind == "float" else 7
        shape = f'<rect {style} x="{x - half:.1f}" y="{y - 7:.1f}" width="{2 * half:g}" height="14" rx="2"/>'
    style = f"digit {colour} name" if point.is_calibrated else "digit inverse"
    return shape + words_at(x, y + 4, str(point.bits), style, "middle")


def legend():
    """What the marks mean, in two lines."""
    def sample(kind, bits, ends):
        return Point(kind, bits, ends, 0, 0, 1, False, 0, 0)

    text, y = [], 50
    for left, point, words in ((LEFT + 11, sample("trained", 4, 8), "trained at W4A4"),
                               (LEFT + 178, sample("calibrated", 4, 8), "calibrated at W4A4"),
                               (LEFT + 366, sample("trained", 4, 4),
                                "weights of the first and last layer, too (circle: 8 bits)")):
        text += [mark(left, y, point, "grey"), words_at(left + 16, y + 5, words, "")]
    y += 24
    text += [mark(LEFT + 11, y, sample("float", 32, 32), "grey"), words_at(LEFT + 27, y + 5, "in float", ""),
             f'<path class="grey beam" d="M{LEFT + 164},{y}h28"/>', words_at(LEFT + 200, y + 5, "published", ""),
             stroke("grey broken", LEFT + 352, y, LEFT + 380, y),
             words_at(LEFT + 388, y + 5, "published, for a network whose costs are not known", "")]
    return text


def row(data, top, i):
    text = [words_at(LEFT, top + 20, data.title, "bold")]
    left = LEFT + 100
    for network, colour in zip(data.networks, COLOURS):
        if network.points or network.published:
            text.append(words_at(left, top + 20, network.title(), f"bold name {colour}"))
            left += 30 + 8 * len(network.title())
    for j, cost in enumerate(COSTS):
        panel = Panel(data, cost, LEFT + j * (PANEL_WIDTH + GAP), top + ROW_HEAD)
        text += [f'<clipPath id="panel{i}{j}"><rect x="{panel.left:.1f}" y="{panel.top}" width="{PANEL_WIDTH:.1f}" '
                 f'height="{PANEL}"/></clipPath>', *panel.frame(), f'<g clip-path="url(#panel{i}{j})">', *panel.body(), "</g>"]
    return text + lines(data.notes(), top + ROW_HEAD + PANEL + 61)


def lines(words, top):
    return [words_at(LEFT, top + LINE * i, line, "small quiet") for i, line in enumerate(words)]


def picture(title, data_sets, notes):
    """`notes`: lines at the end."""
    text, top = [words_at(LEFT, 26, title, "bold head"), *legend()], HEAD
    for i, data in enumerate(data_sets):
        text += row(data, top, i)
        top += ROW_HEAD + PANEL + FOOT + LINE * len(data.notes())
    text += lines(notes, top + 4)
    height = top + LINE * len(notes)
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
                      f"<title>{html.escape(title)}</title>", STYLE, MORE_STYLE,
                      f'<rect class="ground" width="{WIDTH}" height="{height}"/>', *text]) + "\n</svg>\n"
