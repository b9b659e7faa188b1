'use strict';
// HTML and SVG elements, and numbers as text.

const SVG = 'http://www.w3.org/2000/svg';

function withContent(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes))
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) element.append(child);
  return element;
}

const html = (tag, attributes = {}, ...children) => withContent(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => withContent(document.createElementNS(SVG, tag), attributes, children);

/** A picture that takes the width of its place, up to its own. `label` says what it shows. */
const picture = (width, height, label, ...children) =>
  svg('svg', {viewBox: `0 0 ${width} ${height}`, style: `max-width: ${width}px`, role: 'img', 'aria-label': label}, children);

/** Of a network with more layers than this, what takes long to draw waits until it is seen. */
const MANY = 100;
const waiting = new Map();
const watcher = new IntersectionObserver((entries) => {
  for (const {isIntersecting, target} of entries) if (isIntersecting) fillNow(target);
}, {rootMargin: '800px'});

function fillNow(element) {
  const fill = waiting.get(element);
  waiting.delete(element);
  watcher.unobserve(element);
  fill?.(element);
}

/** `fill(element)` is called once: when the element comes near to the window, or goes to paper. */
function whenSeen(element, fill) {
  waiting.set(element, fill);
  watcher.observe(element);
  return element;
}
addEventListener('beforeprint', () => { while (waiting.size > 0) [...waiting.keys()].forEach(fillNow); });

const MISSING = '–';
const known = (value) => value !== null && value !== undefined;

const withCommas = (number) => String(number).replace(/\B(?=(\d{3})+(?!\d))/g, ',');
const whole = (number) => known(number) ? withCommas(Math.round(number)) : MISSING;
const percent = (share, digits = 2) => known(share) ? `${(100 * share).toFixed(digits)}%` : MISSING;
const decibels = (value) => known(value) ? value.toFixed(1) : MISSING;
const fixed = (value, digits = 4) => known(value) ? value.toFixed(digits) : MISSING;

/** A share that is not 0 never looks like 0, one below 1 never like all. */
function share(count, all) {
  if (!known(count) || !all) return MISSING;
  if (count === 0) return '0%';
  const value = 100 * count / all;
  if (count < all && value > 99.99) return '> 99.99%';
  return value < 0.01 ? '< 0.01%' : `${value.toFixed(2)}%`;
}

/** "1.23 M": three digits, for large counts. */
function short(number) {
  if (!known(number)) return MISSING;
  for (const [unit, size] of [['G', 1e9], ['M', 1e6], ['k', 1e3]])
    if (Math.abs(number) >= size) return `${(number / size).toPrecision(3)} ${unit}`;
  return String(number);
}

const bytes = (number) => known(number) ? `${short(number)}B`.replace(/(\d)B$/, '$1 B') : MISSING;

function duration(seconds) {
  if (!known(seconds)) return MISSING;
  if (seconds < 100) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
  const two = (number) => String(number).padStart(2, '0');
  return hours > 0 ? `${hours}:${two(minutes % 60)} h` : `${minutes}:${two(Math.floor(seconds % 60))} min`;
}

/** A float32 in few digits. */
const real = (value, digits = 5) => known(value) ? String(Number(value.toPrecision(digits))) : MISSING;

/** `columns`: {title, value(row), left, look, hint}; a number column stands right, `look` is a further class of its cells. */
function table(columns, rows, classOf = () => null) {
  const cell = (tag, {left, look}, content, hint) => html(tag, {class: [left ? 'left' : null, look].filter(known).join(' ') || null, title: hint}, content);
  return html('div', {class: 'scroll'}, html('table', {},
    html('thead', {}, html('tr', {}, columns.map((column) => cell('th', column, column.title, column.hint)))),
    html('tbody', {}, rows.map((row) => html('tr', {class: classOf(row)},
      columns.map((column) => cell('td', column, column.value(row))))))));
}

/** Colours of runs and of curves: in style sheets, so that they follow the theme. */
const colour = (number) => `var(--c${number % 8})`;
