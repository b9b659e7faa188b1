'use strict';
// Tensors as pictures: small maps of all channels, and a large one of a single channel with its integers.

/** The layout of a tensor: images as they are, all else in rows of 16. */
function layoutOf({shape}) {
  if (shape.length === 3) return {height: shape[0], width: shape[1], channels: shape[2]};
  const count = elements(shape), width = Math.min(16, count);
  return {height: Math.ceil(count / width), width, channels: 1, count};
}

/** The element at a place of the layout; -1 behind the last. */
function elementAt({width, channels, count}, row, column, channel) {
  const element = (row * width + column) * channels + channel;
  return count !== undefined && element >= count ? -1 : element;
}

/** The page's colours as [red, green, blue]: that of 0, those far above and below. */
function mapColours() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim().match(/[0-9a-f]{2}/gi).map((hex) => parseInt(hex, 16));
  return {zero: colour('--paper'), above: colour('--above'), below: colour('--below')};
}

/** A number between -1 and 1 as a colour. */
function shade({zero, above, below}, ratio) {
  const end = ratio < 0 ? below : above;
  return zero.map((from, i) => from + Math.min(1, Math.abs(ratio)) * (end[i] - from));
}

/** Values as numbers between -1 and 1: integers by their grid, accumulators by the largest of them. */
function ratiosOf(values, tensor, areSums) {
  if (!areSums) {
    const most = Math.max(2 ** tensor.bits - 1 - tensor.zero_point, tensor.zero_point);
    return (i) => (values[i] - tensor.zero_point) / most;
  }
  const most = values.reduce((largest, value) => Math.max(largest, Math.abs(value)), 1);
  return (i) => values[i] / most;
}

/** All channels side by side, a pixel for each integer. */
function drawChannels(canvas, tensor, values, colours) {
  const layout = layoutOf(tensor), {height, width, channels} = layout, gap = channels > 1 ? 1 : 0;
  const across = Math.ceil(Math.sqrt(channels * height / width)), down = Math.ceil(channels / across);
  canvas.width = across * (width + gap) - gap;
  canvas.height = down * (height + gap) - gap;
  const context = canvas.getContext('2d'), image = context.createImageData(canvas.width, canvas.height);
  const ratio = ratiosOf(values, tensor, false);
  for (let channel = 0; channel < channels; ++channel)
    for (let row = 0; row < height; ++row)
      for (let column = 0; column < width; ++column) {
        const element = elementAt(layout, row, column, channel);
        if (element < 0) continue;
        const y = Math.floor(channel / across) * (height + gap) + row, x = (channel % across) * (width + gap) + column;
        const [red, green, blue] = shade(colours, ratio(element));
        image.data.set([red, green, blue, 255], 4 * (y * canvas.width + x));
      }
  context.putImageData(image, 0, 0);
}

/** The part of a map that is drawn with its integers: at most this many rows and columns around the chosen one. */
const MOST_CELLS = 28;

function visiblePart(chosen, extent) {
  const start = Math.max(0, Math.min(chosen - MOST_CELLS / 2, extent - MOST_CELLS));
  return {start, end: Math.min(extent, start + MOST_CELLS)};
}

/**
 * One channel with its numbers, the chosen element framed. Returns a function from a place on the canvas, in CSS pixels, to
 * an element (-1: none).
 */
function drawIntegers(canvas, tensor, values, chosen, areSums, colours) {
  const layout = layoutOf(tensor), {height, width, channels} = layout;
  const channel = chosen % channels, place = Math.floor(chosen / channels);
  const rows = visiblePart(Math.floor(place / width), height), columns = visiblePart(place % width, width);
  const across = columns.end - columns.start, down = rows.end - rows.start;
  const most = values.reduce((digits, value) => Math.max(digits, String(value).length), 1);
  // As large as fits beside each other, in readable bounds: a digit is 0.62 of the font wide.
  const room = canvas.parentElement.clientWidth / across - 5;
  const font = Math.max(11, Math.min(18, Math.floor(room / (0.62 * most))));
  const cellWidth = Math.ceil(0.62 * font * most) + 4, cellHeight = Math.max(font + 6, Math.min(cellWidth, 28));
  const scale = window.devicePixelRatio || 1;
  canvas.width = across * cellWidth * scale;
  canvas.height = down * cellHeight * scale;
  canvas.style.width = `${across * cellWidth}px`;
  const context = canvas.getContext('2d'), ratio = ratiosOf(values, tensor, areSums);
  context.scale(scale, scale);
  context.font = `${font}px ui-monospace, monospace`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  const cells = [];
  for (let row = rows.start; row < rows.end; ++row)
    for (let column = columns.start; column < columns.end; ++column) {
      const element = elementAt(layout, row, column, channel);
      if (element >= 0) cells.push({element, x: (column - columns.start) * cellWidth, y: (row - rows.start) * cellHeight});
    }
  for (const {element, x, y} of cells) {
    const colour = shade(colours, ratio(element));
    context.fillStyle = `rgb(${colour.join(' ')})`;
    context.fillRect(x, y, cellWidth, cellHeight);
    const [red, green, blue] = colour;
    context.fillStyle = 0.299 * red + 0.587 * green + 0.114 * blue > 128 ? '#000' : '#fff';
    context.fillText(values[element], x + cellWidth / 2, y + cellHeight / 2 + 1);
  }
  const frame = cells.find(({element}) => element === chosen);
  context.lineWidth = 3;
  context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue('--mark');
  context.strokeRect(frame.x + 1.5, frame.y + 1.5, cellWidth - 3, cellHeight - 3);
  // Where the map is wider than its place, the frame stays in sight.
  const scroll = canvas.parentElement, latest = frame.x, earliest = frame.x + cellWidth - scroll.clientWidth;
  scroll.scrollLeft = Math.max(earliest, Math.min(latest, scroll.scrollLeft));
  return (x, y) => elementAt(layout, rows.start + Math.min(down - 1, Math.floor(y / cellHeight)),
                             columns.start + Math.min(across - 1, Math.floor(x / cellWidth)), channel);
}

/** The element `rows` below and `columns` beside another one, in its channel and within the tensor. */
function neighbour(tensor, element, rows, columns) {
  const layout = layoutOf(tensor), {height, width, channels} = layout, place = Math.floor(element / channels);
  const row = Math.floor(place / width) + rows, column = place % width + columns;
  if (row < 0 || row >= height || column < 0 || column >= width) return element;
  const next = elementAt(layout, row, column, element % channels);
  return next < 0 ? element : next;
}
