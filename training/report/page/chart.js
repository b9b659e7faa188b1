'use strict';
// Curves over steps, as SVG.

/** Round numbers, at most about `most`, between the two. */
function ticks(low, high, most) {
  const rough = (high - low) / most;
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const list = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) list.push(Number((i * step).toPrecision(12)));
  return list;
}

const tickText = (value) => Math.abs(value) >= 10000 ? short(value) : String(value);

/** A scale from numbers to pixels. */
const scaleOf = (low, high, from, to) => (value) => from + (value - low) / ((high - low) || 1) * (to - from);

const polyline = (points, x, y) => points.map(([step, value], i) => `${i ? 'L' : 'M'}${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join('');

/** Too low for texts inside. */
const SMALL = 160;

/** Steps at which something changed. */
function drawMarks(marks, x, top, bottom, last, hasText) {
  return marks.filter(({step}) => step <= last).map(({step, text}, i) => [
    svg('line', {class: 'mark', x1: x(step), x2: x(step), y1: top, y2: bottom}, svg('title', {}, `step ${step}: ${text}`)),
    hasText ? svg('text', {class: 'mark-text', x: x(step) + (x(step) > 280 ? -4 : 4), y: top + 11 + 12 * (i % 3),
      'text-anchor': x(step) > 280 ? 'end' : 'start'}, text.length > 34 ? `${text.slice(0, 32)}…` : text) : null,
  ]);
}

/**
 * `series`: {name, colour, points: [[step, value], ...], dashed}. `bands`: the same with [[step, low, high], ...].
 * Options: title, marks, format of the values, zero (whether 0 belongs to the picture), the most that a value can be.
 */
function chart(series, {title, marks = [], format = tickText, bands = [], zero = false, most = Infinity, height = 210}) {
  const width = 440, left = 52, right = 10, top = 14, bottom = height - 24;
  const values = [...series.flatMap(({points}) => points.map((point) => point[1])), ...bands.flatMap(({points}) => points.flatMap((point) => [point[1], point[2]]))].filter(Number.isFinite);
  const steps = [...series, ...bands].flatMap(({points}) => points.map((point) => point[0]));
  if (values.length === 0) return null;
  let low = Math.min(...values, zero ? 0 : Infinity), high = Math.max(...values, zero ? 0 : -Infinity);
  if (low === high) [low, high] = [low - Math.abs(low) * 0.05 - 1e-9, high + Math.abs(high) * 0.05 + 1e-9];
  high = Math.min(high, most);
  const last = Math.max(...steps);
  const x = scaleOf(0, last, left, width - right), y = scaleOf(low, high, bottom, top);
  const drawing = picture(width, height, title,
    ticks(low, high, 5).map((value) => [
      svg('line', {class: 'grid', x1: left, x2: width - right, y1: y(value), y2: y(value)}),
      svg('text', {x: left - 6, y: y(value) + 4, 'text-anchor': 'end'}, format(value))]),
    ticks(0, last, 6).map((step) => svg('text', {x: x(step), y: bottom + 17, 'text-anchor': 'middle'}, tickText(step))),
    svg('line', {class: 'axis', x1: left, x2: width - right, y1: bottom, y2: bottom}),
    bands.map(({points, colour: ink}) => points.length === 1 ?
      svg('line', {x1: x(points[0][0]), x2: x(points[0][0]), y1: y(points[0][1]), y2: y(points[0][2]), stroke: ink, 'stroke-width': 4, opacity: 0.5}) :
      svg('path', {d: `${polyline(points.map(([step, lowest]) => [step, lowest]), x, y)}${polyline(points.map(([step, , highest]) => [step, highest]).reverse(), x, y).replace('M', 'L')}Z`, fill: ink, opacity: 0.25})),
    bands.flatMap(({points, colour: ink}) => points.length === 1 ? [] : [1, 2].map((end) =>
      svg('path', {class: 'band-edge', d: polyline(points.map((point) => [point[0], point[end]]), x, y), stroke: ink}))),
    drawMarks(marks, x, top, bottom, last, height > SMALL),
    series.map(({points, colour: ink, dashed, name}) => points.length === 1 ?
      svg('circle', {cx: x(points[0][0]), cy: y(points[0][1]), r: 4, fill: ink}, svg('title', {}, `${name}: ${format(points[0][1])}`)) :
      svg('path', {class: 'curve', d: polyline(points, x, y), stroke: ink, 'stroke-dasharray': dashed ? '5 4' : null}, svg('title', {}, name))));
  const names = series.filter(({name}) => name);
  return html('figure', {class: 'chart'}, html('figcaption', {}, title), drawing,
    names.length > 1 || names.some(({name}) => name !== title) ? html('p', {class: 'legend'}, names.map(({name, colour: ink, dashed}) =>
      html('span', {}, html('i', {class: dashed ? 'dashed' : null, style: `--ink: ${ink}`}), name))) : null);
}
