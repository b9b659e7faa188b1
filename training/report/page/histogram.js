'use strict';
// The numbers of a tensor and their integers in one picture.

/** Whole numbers from `first` to `last`, so many that labels of `room` pixels fit at `step` pixels a number. */
function labelledIntegers(first, last, step, room) {
  let every = 1;
  while (every * step < room) every *= 2;
  const list = [];
  for (let q = Math.ceil(first / every) * every; q <= last; q += every) list.push(q);
  return list;
}

/** One area under the numbers, one bar for each integer (or group of them), and the grid on which the integers are. */
function gridHistogram(tensor, title) {
  const {floats, integers, quant_min: least, quant_max: most, integers_per_count: group} = tensor;
  const width = 320, height = 180, left = 8, right = 8, top = 8, bottom = 134;
  const end = floats.first + floats.width * floats.counts.length;
  const x = scaleOf(floats.first, end, left, width - right);
  // Both as numbers for each integer, so that a bar and the area over it mean the same.
  const density = floats.counts.map((count) => count / floats.width), bars = integers.map((count) => count / group);
  const highest = Math.max(...density, ...bars, 1);
  // Roots let the tails be seen beside a peak.
  const y = (value) => bottom - Math.sqrt(value / highest) * (bottom - top);
  const barWidth = x(group) - x(0);
  const lines = most - least <= 64;
  const area = density.map((value, i) => `L${x(floats.first + i * floats.width).toFixed(1)} ${y(value).toFixed(1)}H${x(floats.first + (i + 1) * floats.width).toFixed(1)}`).join('');
  const drawing = picture(width, height, title,
    svg('rect', {class: 'outside', x: left, y: top, width: x(least - 0.5) - left, height: bottom - top}),
    svg('rect', {class: 'outside', x: x(most + 0.5), y: top, width: width - right - x(most + 0.5), height: bottom - top}),
    bars.map((value, i) => value === 0 ? null : svg('rect', {class: 'bar', x: x(least + i * group - 0.5) + Math.min(1, barWidth / 8), width: barWidth - 2 * Math.min(1, barWidth / 8), y: y(value), height: bottom - y(value)},
      svg('title', {}, `${least + i * group}${group > 1 ? ` to ${least + (i + 1) * group - 1}` : ''}: ${whole(integers[i])}`))),
    svg('path', {class: 'numbers', d: `M${left} ${bottom}${area}L${width - right} ${bottom}Z`}),
    lines ? Array.from({length: most - least + 1}, (_, i) => svg('line', {class: 'grid-line', x1: x(least + i), x2: x(least + i), y1: top, y2: bottom + 5})) : null,
    svg('line', {class: 'axis', x1: left, x2: width - right, y1: bottom, y2: bottom}),
    labelledIntegers(least, most, x(1) - x(0), 3 + 6.7 * String(most).length).map((q) => svg('text', {x: x(q), y: bottom + 16, 'text-anchor': 'middle', class: 'integer'}, String(q))),
    known(tensor.scale) ? labelledIntegers(least, most, x(1) - x(0), 38).map((q) =>
      svg('text', {x: x(q), y: bottom + 30, 'text-anchor': 'middle', class: 'real'}, String(Number(((q - tensor.zero_point) * tensor.scale).toPrecision(2))))) : null,
    svg('text', {x: left, y: height - 3, class: 'real'}, known(tensor.scale) ? 'integers, and the numbers that they stand for' : 'integers; each channel has its own scale'));
  return html('figure', {class: 'histogram'}, html('figcaption', {}, title), drawing);
}

/** Numbers without a grid. */
function floatHistogram(tensor, title) {
  const {floats} = tensor, width = 320, height = 150, left = 8, right = 8, top = 8, bottom = 124;
  const highest = Math.max(...floats.counts, 1);
  const x = scaleOf(0, floats.counts.length, left, width - right);
  const y = (value) => bottom - Math.sqrt(value / highest) * (bottom - top);
  const area = floats.counts.map((value, i) => `L${x(i).toFixed(1)} ${y(value).toFixed(1)}H${x(i + 1).toFixed(1)}`).join('');
  const drawing = picture(width, height, title,
    svg('path', {class: 'numbers', d: `M${left} ${bottom}${area}L${width - right} ${bottom}Z`}),
    svg('line', {class: 'axis', x1: left, x2: width - right, y1: bottom, y2: bottom}),
    ticks(tensor.min, tensor.max, 6).map((value) => svg('text', {x: x((value - floats.first) / floats.width), y: bottom + 17, 'text-anchor': 'middle', class: 'real'}, String(value))));
  return html('figure', {class: 'histogram'}, html('figcaption', {}, title), drawing);
}
