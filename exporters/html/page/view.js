'use strict';
// The page: what is chosen, and everything that shows it.

const INPUT = -1;
const data = JSON.parse(document.getElementById('data').textContent);
const models = data.models.map((entry) => ({...entry, ...readModel(bytesOfBase64(entry.model))}));
/** `operation` is the chosen one (INPUT: the picture itself), `index` a number of its output. */
const state = {model: 0, bytes: null, runs: [], operation: INPUT, index: 0, areSums: false};
const byId = (id) => document.getElementById(id);

function currentModel() {
  return models[state.model];
}

function currentRun() {
  return state.runs[state.model];
}

function chosenTensor() {
  const model = currentModel();
  return state.operation === INPUT ? model.input : model.operations[state.operation].output;
}

/** Each model has an integer for a byte of the picture: the byte itself, or by its own table. */
function inputOf(model, bytes) {
  return model.input_from_byte ? bytes.map((byte) => model.input_from_byte[byte]) : bytes;
}

function classNameOf(model, i) {
  return model.class_names?.[i] ?? String(i);
}

/** Runs all models on the picture. */
function run() {
  state.runs = models.map((model) => {
    const start = performance.now();
    const result = runModel(model, inputOf(model, state.bytes));
    const scores = result.tensors[model.output.index];
    return {...result, scores, winner: largest(scores), milliseconds: performance.now() - start};
  });
}

const MOST_BARS = 12;

function showAnswer() {
  const model = currentModel(), {scores, winner} = currentRun();
  byId('verdict').textContent = classNameOf(model, winner);
  let shown = Array.from(scores.keys());
  if (shown.length > MOST_BARS) shown = shown.sort((a, b) => scores[b] - scores[a]).slice(0, MOST_BARS);
  byId('bars').replaceChildren(...shown.map((i) => {
    const fill = made('div', 'fill'), bar = made('div', i === winner ? 'bar first' : 'bar');
    fill.style.width = `${100 * scores[i] / (2 ** model.output.bits - 1)}%`;
    bar.append(made('span', 'name', classNameOf(model, i)), made('div', 'track', fill),
               made('span', 'value', String(scores[i])));
    return bar;
  }));
}

function showComparison() {
  const table = byId('comparison');
  table.hidden = models.length < 2;
  const titles = made('tr', '', ...['model', 'class', 'accuracy', 'kB', 'ms'].map((title) => made('th', '', title)));
  table.replaceChildren(titles, ...models.map((model, i) => {
    const {winner, milliseconds} = state.runs[i];
    const accuracy = model.accuracy === undefined ? '' : `${(100 * model.accuracy).toFixed(2)}%`;
    return made('tr', i === state.model ? 'current' : '', cell(model.label), cell(classNameOf(model, winner)),
                cell(accuracy), cell(Math.round(model.weight_bytes / 1000)), cell(milliseconds.toFixed(milliseconds < 10 ? 1 : 0)));
  }));
}

/** A card for the input and each operation; clicks choose. Made anew for each model. */
function makeCards() {
  const model = currentModel();
  const entries = [{name: 'input', type: 'picture', output: model.input}, ...model.operations];
  byId('layers').replaceChildren(...entries.map((entry, i) => {
    const weights = entry.weight_bits ? `, weights ${entry.weight_bits}` : '';
    const card = made('button', '', made('b', '', ...brokenName(entry.name)), made('small', '', entry.type),
                      made('small', '', entry.output.shape.join(' × ')),
                      made('small', '', `bits: ${entry.output.bits}${weights}`), document.createElement('canvas'));
    card.type = 'button';
    card.title = entry.name;
    card.addEventListener('click', () => choose(i - 1));
    return card;
  }));
}

function showCards() {
  const model = currentModel(), {tensors} = currentRun(), colours = mapColours();
  Array.from(byId('layers').children).forEach((card, i) => {
    const tensor = i === 0 ? model.input : model.operations[i - 1].output;
    drawChannels(card.querySelector('canvas'), tensor, tensors[tensor.index], colours);
    card.setAttribute('aria-pressed', i - 1 === state.operation);
  });
}

let elementUnder = null;

function showIntegers() {
  const model = currentModel(), tensor = chosenTensor(), {tensors, sums} = currentRun();
  const accumulators = state.operation === INPUT ? null : sums[state.operation];
  const areSums = state.areSums && accumulators !== null;
  const {channels} = layoutOf(tensor);
  byId('map-title').textContent =
      `${state.operation === INPUT ? 'input' : model.operations[state.operation].name}: ` +
      (areSums ? 'accumulators' : `integers 0 … ${2 ** tensor.bits - 1}, zero point ${tensor.zero_point}`);
  byId('channel').textContent = `channel ${state.index % channels} of ${channels}`;
  byId('channel-before').disabled = byId('channel-after').disabled = channels === 1;
  byId('sums').disabled = accumulators === null;
  byId('sums').setAttribute('aria-pressed', areSums);
  const values = areSums ? accumulators : tensors[tensor.index];
  elementUnder = drawIntegers(byId('map'), tensor, values, state.index, areSums, mapColours());
}

function showChosenNumber() {
  const model = currentModel(), {tensors} = currentRun(), box = byId('number');
  if (state.operation === INPUT) {
    showInput(box, model.input, state.bytes[state.index], tensors[model.input.index][state.index], state.index);
  } else {
    const operation = model.operations[state.operation];
    showNumber(box, operation, operation.inputs.map((input) => tensors[input.index]), state.index);
  }
}

function showAll() {
  showAnswer();
  showComparison();
  showCards();
  showIntegers();
  showChosenNumber();
}

/** Chooses an operation, and the largest integer of its output. */
function choose(operation) {
  state.operation = Math.max(INPUT, Math.min(currentModel().operations.length - 1, operation));
  state.index = largest(currentRun().tensors[chosenTensor().index]);
  showAll();
}

/** The same by a key, which shows the card. */
function chooseBeside(step) {
  choose(state.operation + step);
  byId('layers').children[state.operation + 1].scrollIntoView({block: 'nearest'});
}

function chooseIndex(index) {
  state.index = index;
  showIntegers();
  showChosenNumber();
}

function chooseChannel(step) {
  const {channels} = layoutOf(chosenTensor()), channel = state.index % channels;
  chooseIndex(state.index - channel + (channel + step + channels) % channels);
}

/** The same number in another model, where that has it. */
function chooseModel(model) {
  state.model = model;
  byId('slider').value = model;
  byId('model-name').textContent = currentModel().label;
  makeCards();
  state.operation = Math.min(state.operation, currentModel().operations.length - 1);
  state.index = Math.min(state.index, elements(chosenTensor().shape) - 1);
  showAll();
}

let isStale = false;

/** Runs the models on a new picture, if there is one, and shows what they make of it. */
function refresh() {
  if (!isStale) return;
  isStale = false;
  run();
  showAll();
}

/** A new picture. While a pen moves, the models run once for each frame of the screen. */
function takePicture(bytes) {
  state.bytes = bytes;
  if (!isStale) requestAnimationFrame(refresh);
  isStale = true;
}

function changeTheme() {
  const root = document.documentElement;
  const isDark = getComputedStyle(root).colorScheme === 'dark' ||
      (!root.dataset.theme && matchMedia('(prefers-color-scheme: dark)').matches);
  root.dataset.theme = isDark ? 'light' : 'dark';
  showAll();
}

function toggleSums() {
  state.areSums = !state.areSums;
  showIntegers();
}

const sources = new Sources(currentModel().input.shape, data.pictures.map(
    ({name, bytes}) => ({name, bytes: bytesOfBase64(bytes)})), takePicture);

const KEYS = {
  c: () => sources.clear(),
  o: () => byId('open').click(),
  i: () => sources.invert(),
  a: toggleSums,
  t: changeTheme,
  m: () => chooseModel((state.model + 1) % models.length),
  ',': () => chooseBeside(-1),
  '.': () => chooseBeside(1),
  '[': () => chooseChannel(-1),
  ']': () => chooseChannel(1),
  '?': () => byId('help').showModal(),
  ArrowLeft: () => chooseIndex(neighbour(chosenTensor(), state.index, 0, -1)),
  ArrowRight: () => chooseIndex(neighbour(chosenTensor(), state.index, 0, 1)),
  ArrowUp: () => chooseIndex(neighbour(chosenTensor(), state.index, -1, 0)),
  ArrowDown: () => chooseIndex(neighbour(chosenTensor(), state.index, 1, 0)),
};

function pressKey(event) {
  const isForInput = event.target instanceof HTMLInputElement && event.key.startsWith('Arrow');
  // Brackets need AltGr or Option on many keyboards, which counts as Alt on some machines, with Ctrl on others.
  const isCommand = !'[]'.includes(event.key) && (event.ctrlKey || event.altKey);
  if (isCommand || event.metaKey || isForInput || byId('help').open) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const action = /^[0-9]$/.test(key) ? () => sources.chooseTest((Number(key) + 9) % 10) : KEYS[key];
  if (!action) return;
  event.preventDefault();
  action();
}

function listen() {
  addEventListener('keydown', pressKey);
  byId('clear').addEventListener('click', () => sources.clear());
  byId('open').addEventListener('click', () => byId('file').click());
  byId('invert').addEventListener('click', () => sources.invert());
  byId('theme').addEventListener('click', changeTheme);
  byId('help-button').addEventListener('click', KEYS['?']);
  byId('channel-before').addEventListener('click', () => chooseChannel(-1));
  byId('channel-after').addEventListener('click', () => chooseChannel(1));
  byId('sums').addEventListener('click', toggleSums);
  byId('slider').addEventListener('input', () => chooseModel(Number(byId('slider').value)));
  byId('map').addEventListener('click', (event) => {
    const element = elementUnder(event.offsetX, event.offsetY);
    if (element >= 0) chooseIndex(element);
  });
  addEventListener('resize', showIntegers);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', showAll);
}

function start() {
  byId('slider-box').hidden = models.length < 2;
  byId('slider').max = models.length - 1;
  state.bytes = sources.bytes;
  document.querySelectorAll('.shades').forEach(keepShades);
  run();
  chooseModel(0);
  listen();
  if (sources.tests.length > 0) sources.chooseTest(0);
  else sources.clear();
  refresh();
  choose(0);
}

start();
