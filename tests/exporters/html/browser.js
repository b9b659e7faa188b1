'use strict';
// The last script of a page in the hands of browser_test.cpp: runs pictures, uses the page as a person does, and leaves in
// the element "found" a JSON text with the outputs and everything that is wrong.

(async () => {
  const complaints = [];
  let narrow = 0;
  const expect = (what, found, expected) => {
    if (found !== expected) complaints.push(`${what}: ${found}, not ${expected}`);
  };
  /** Frames of a screen that nobody sees come when they like: no check waits for one. */
  const press = (key, held = {}) => {
    dispatchEvent(new KeyboardEvent('keydown', {key, ...held}));
    refresh();
  };
  addEventListener('error', ({message}) => complaints.push(message));
  addEventListener('unhandledrejection', ({reason}) => complaints.push(String(reason)));

  /** Bytes in hexadecimal: the outputs of the first model. */
  function runPictures() {
    const bytes = bytesOfBase64(byId('pictures').textContent), model = models[0], size = elements(model.input.shape);
    let outputs = '';
    for (let at = 0; at < bytes.length; at += size)
      for (const byte of runModel(model, bytes.subarray(at, at + size)).tensors[model.output.index])
        outputs += byte.toString(16).padStart(2, '0');
    return outputs;
  }

  const winner = (model, bytes) => String(largest(runModel(model, inputOf(model, bytes)).tensors[model.output.index]));

  function checkTestPictures() {
    for (const [i, {bytes}] of sources.tests.entries()) {
      press(String((i + 1) % 10));
      expect(`class of picture ${i}`, byId('verdict').textContent, winner(currentModel(), bytes));
      expect(`bars of picture ${i}`, byId('bars').children.length, 10);
    }
  }

  function checkLayers() {
    const {operations} = currentModel();
    expect('cards', byId('layers').children.length, operations.length + 1);
    choose(INPUT);
    for (const [i, {name, output}] of operations.entries()) {
      press('.');
      const integer = String(currentRun().tensors[output.index][state.index]);
      expect(`operation ${i}`, state.operation, i);
      expect(`number of ${name}`, byId('number').querySelector('.steps tr:last-child td.value').textContent, integer);
      expect(`title of ${name}`, byId('number').querySelector('h2').textContent.endsWith(` = ${integer}`), true);
      expect(`map of ${name}`, byId('map').width > 0 && byId('map').height > 0, true);
    }
    press(',');
    expect('operation before the last', state.operation, operations.length - 2);
    choose(0);
    chooseIndex(0);
    press('ArrowDown');
    expect('index below the first', state.index, operations[0].output.shape[1] * operations[0].output.shape[2]);
    press(']');
    expect('channel', byId('channel').textContent, `channel 1 of ${operations[0].output.shape[2]}`);
    // AltGr, which a browser may report as Ctrl with Alt, and Option.
    const channels = `of ${operations[0].output.shape[2]}`;
    press(']', {ctrlKey: true, altKey: true});
    expect('channel by AltGr', byId('channel').textContent, `channel 2 ${channels}`);
    press('[', {altKey: true});
    expect('channel by Option', byId('channel').textContent, `channel 1 ${channels}`);
    press('a', {ctrlKey: true});
    expect('a key of the browser', byId('sums').getAttribute('aria-pressed'), 'false');
    press('A');
    expect('accumulators', byId('sums').getAttribute('aria-pressed'), 'true');
    press('a');
  }

  /** The longest texts of the steps fit a phone; windows of a browser without a screen are wider than that. */
  function checkNarrowSteps() {
    if (innerWidth > 620) return;
    const table = byId('number').querySelector('.steps'), PHONE = 360, MARGINS = 24;
    table.replaceWith(stepsTable({sum: -2147483648, mantissa: 2147483647, shift: 62, steps: requantizationSteps(-2147483648, 2147483647, 62, 128, [0, 255])}));
    const shown = byId('number').querySelector('.steps');
    shown.style.width = 'min-content';
    if (shown.offsetWidth > PHONE - MARGINS) complaints.push(`steps of ${shown.offsetWidth} pixels`);
    ++narrow;
  }

  function checkModels() {
    expect('slider', byId('slider-box').hidden, false);
    expect('rows of the comparison', byId('comparison').rows.length, models.length + 1);
    byId('slider').value = 1;
    byId('slider').dispatchEvent(new Event('input'));
    expect('name of the second model', byId('model-name').textContent, models[1].label);
    expect('class of the second model', byId('verdict').textContent, winner(models[1], state.bytes));
    press('m');
    expect('model', state.model, 2 % models.length);
  }

  /** A small stroke in a corner comes to the middle, 20 pixels high. */
  function checkDrawing() {
    press('c');
    expect('a clear pad', state.bytes.every((byte) => byte === 0), true);
    const {left, top, width} = sources.pad.getBoundingClientRect();
    for (const [type, y] of [['pointerdown', 0.1], ['pointermove', 0.2], ['pointermove', 0.3], ['pointerup', 0.3]])
      sources.pad.dispatchEvent(new PointerEvent(type, {clientX: left + 0.15 * width, clientY: top + y * width}));
    refresh();
    const ink = inkOf({width: 28, height: 28, channels: 1, data: state.bytes});
    expect('column of the stroke', Math.round(ink.centreX), 14);
    expect('row of the stroke', Math.round(ink.centreY), 14);
    expect('height of the stroke', Math.abs(ink.height - 20) <= 1, true);
    expect('class of the stroke', byId('verdict').textContent, winner(currentModel(), state.bytes));
  }

  /** A dark square on a white, wide picture. */
  async function checkFile() {
    const canvas = made('canvas', '');
    canvas.width = 280, canvas.height = 140;
    const context = canvas.getContext('2d');
    context.fillStyle = '#fff';
    context.fillRect(0, 0, 280, 140);
    context.fillStyle = '#000';
    context.fillRect(120, 50, 40, 40);
    for (const paper of ['white', 'transparent']) {
      if (paper === 'transparent') {
        for (const [x, y, width, height] of [[0, 0, 280, 50], [0, 90, 280, 50], [0, 50, 120, 40], [160, 50, 120, 40]])
          context.clearRect(x, y, width, height);
      }
      const file = await new Promise((resolve) => canvas.toBlob(resolve));
      await sources.openFile(file);
      refresh();
      expect(`the middle of a ${paper} picture`, state.bytes[14 * 28 + 14], 255);
      expect(`the corner of a ${paper} picture`, state.bytes[0], 0);
      expect(`the ink of a ${paper} picture`, inkOf({width: 28, height: 28, channels: 1, data: state.bytes})?.width, 8);
    }
    press('i');
    expect('the corner, inverted', state.bytes[0], 255);
  }

  function checkThemes() {
    const paper = () => getComputedStyle(document.body).backgroundColor;
    const before = paper();
    press('t');
    expect('another paper', paper() !== before, true);
    press('t');
    expect('the paper as before', paper(), before);
  }

  // The browser's virtual time flies when nothing happens, and does not see its threads, which read files. This slows it down
  // until all is done.
  const brake = setInterval(() => {}, 1);
  const outputs = runPictures();
  for (const check of [checkTestPictures, checkLayers, checkNarrowSteps, checkModels, checkDrawing, checkFile, checkThemes]) await check();
  const requests = performance.getEntriesByType('resource').filter(({name}) => !name.startsWith('data:'));
  for (const {name} of requests) complaints.push(`a request for ${name}`);
  clearInterval(brake);
  byId('found').textContent = JSON.stringify({outputs, complaints, narrow});
})();
