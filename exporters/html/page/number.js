'use strict';
// One chosen integer: its products, its accumulator, and the steps of its requantization.

/** An element with a class and children: texts or elements. */
function made(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

/** A name with places to break it. */
function brokenName(name) {
  return name.split(/(?<=[/_])/).flatMap((part) => [part, document.createElement('wbr')]);
}

/** In `box` is what scrolls, with one child: keeps the shades of the edges beyond which that goes on (page.css). */
function keepShades(box) {
  const scroll = box.firstElementChild;
  const update = () => {
    const {scrollLeft: left, scrollTop: top, scrollWidth, scrollHeight, clientWidth, clientHeight} = scroll;
    const beyond = {left, right: scrollWidth - clientWidth - left, top, bottom: scrollHeight - clientHeight - top};
    for (const [edge, pixels] of Object.entries(beyond)) box.style.setProperty(`--${edge}`, pixels > 1 ? '16px' : '0px');
  };
  scroll.addEventListener('scroll', update);
  const observer = new ResizeObserver(update);
  observer.observe(scroll);
  observer.observe(scroll.firstElementChild);
}

function cell(text, className = '') {
  return made('td', className, String(text));
}

/** Whether a real number lies above or below 0: a class of the style sheet. */
function side(number) {
  return number > 0 ? 'value above' : number < 0 ? 'value below' : 'value';
}

/** Products beyond these are left out of the table. Those with a real 0 come last, since they add nothing. */
const MOST_TERMS = 500;

function termsTable(operation, {terms, bias}) {
  const [second, factor] = {Mul: ['x₂', 'x₂ − Z'], Add: ['', 'm']}[operation.type] ?? ['w', 'w − Z'];
  const columns = [['place', 'input'], ['x', 'x'], ['left', 'x − Z'], ['w', second],
                   ['right', operation.weightShift ? `(${factor})·${2 ** operation.weightShift}` : factor],
                   ['product', 'product']].filter(([key]) => terms[0][key] !== undefined);
  const table = made('table', '', made('tr', '', ...columns.map(([, title]) => made('th', '', title))));
  if (bias !== undefined)
    table.append(made('tr', '', cell('bias'), ...columns.slice(2).map(() => cell('')), cell(bias, side(bias))));
  const sorted = [...terms.filter(({left}) => left !== 0), ...terms.filter(({left}) => left === 0)];
  const shape = operation.inputs[0].shape;
  for (const term of sorted.slice(0, MOST_TERMS)) {
    const cells = columns.map(([key]) => {
      if (key === 'place') return cell(indicesOf(term.place, shape).join(', '));
      return cell(term[key], key === 'product' ? side(term[key]) : 'value');
    });
    table.append(made('tr', term.left === 0 ? 'real-zero' : '', ...cells));
  }
  if (terms.length > MOST_TERMS) table.append(made('tr', '', cell(`… ${terms.length - MOST_TERMS} more`)));
  return table;
}

function stepsTable({sum, mantissa, shift, steps}) {
  const table = made('table', 'steps');
  const add = (name, formula, value) =>
      table.append(made('tr', '', cell(name), cell(formula, 'formula'), cell(value, 'value')));
  if (sum !== undefined) add('accumulator', '', sum);
  if (mantissa !== undefined)
    add('multiplier', `${mantissa} / 2^${shift}`, (mantissa / 2 ** shift).toPrecision(6));
  for (const {name, formula, value} of steps) add(name, formula, value);
  return table;
}

function realLine(tensor, integer) {
  const real = tensor.scale * (integer - tensor.zero_point);
  return made('p', 'formula',
              `real number: ${tensor.scale.toPrecision(6)} · (${integer} − ${tensor.zero_point}) = ${real.toPrecision(5)}`);
}

/** Fills `box` with the story of number `index` of an operation's output. `inputs` are the bytes of the operation's. */
function showNumber(box, operation, inputs, index) {
  const story = explain(operation, inputs, index), integer = story.steps.at(-1).value;
  const where = indicesOf(index, operation.output.shape).join(', ');
  const parts = [made('h2', '', `${operation.name} [${where}] = ${integer}`), stepsTable(story),
                 realLine(operation.output, integer)];
  if (story.terms.length > 0) {
    const table = made('div', 'shades', made('div', 'scroll terms', termsTable(operation, story)));
    parts.push(made('h2', '', `${story.terms.length} ${story.terms[0].right === undefined ? 'input' : 'product'}${story.terms.length === 1 ? '' : 's'}`), table);
    keepShades(table);
  }
  box.replaceChildren(...parts);
}

/** The same for the input: a byte of the picture becomes an integer. */
function showInput(box, tensor, byte, integer, index) {
  const where = indicesOf(index, tensor.shape).join(', ');
  box.replaceChildren(made('h2', '', `input [${where}] = ${integer}`),
                      made('p', '', `The picture's byte is ${byte}.`), realLine(tensor, integer));
}
