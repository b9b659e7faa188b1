'use strict';
// The last script of a report in the hands of browser_test.cpp: looks at what was drawn, and leaves in the element "found"
// a JSON text with everything that is wrong.

(() => {
  const complaints = [];
  let narrow = 0, comparedLosses = 0, comparedValidations = 0, drawnExamples = 0;
  const expect = (what, found, expected) => {
    if (found !== expected) complaints.push(`${what}: ${found}, not ${expected}`);
  };
  const all = (root, selector) => [...root.querySelectorAll(selector)];
  const texts = (root, selector) => all(root, selector).map((element) => element.textContent);
  /** The rows of a table as objects, by the titles of its columns. */
  function rowsOf(table) {
    const titles = texts(table, 'thead th');
    const entries = (row) => [...row.cells].map((cell, i) => [titles[i], cell.textContent]);
    return [...table.tBodies[0].rows].map((row) => Object.fromEntries(entries(row)));
  }
  /** Whether a text is this number, rounded to so many digits; "–" where it is not known. */
  function expectNumber(what, text, value, digits) {
    if (value === null || value === undefined) expect(what, text, '–');
    else expect(what, Number(text.replaceAll(',', '').replace('−', '-').replace(/[%+]|( steps?)$/g, '')), Number(value.toFixed(digits)));
  }
  const times100 = (share) => share === null || share === undefined ? null : 100 * share;
  const sum = (list) => list.reduce((total, number) => total + number, 0);

  function checkResults(run, section) {
    const rows = rowsOf(section.querySelector('.result table'));
    const [measure] = run.measures, before = run.task === 'classify' ? '' : `${measure.name.replace('^2', '²')}, `;
    const inUnits = (value) => measure.is_share ? times100(value) : value;
    const expectMeasure = (what, text, value) => known(value) && !measure.is_share ? expect(what, Number(text), Number(value.toPrecision(4))) : expectNumber(what, text, inUnits(value), 2);
    expect(`${run.name}: rows`, rows.length, run.results.length);
    run.results.forEach((result, i) => {
      const row = rows[i], what = `${run.name}: ${result.name}`;
      const answers = run.answers.find(({name}) => name === result.name);
      expect(`${what}: name`, row.network.replace(' *', ''), result.name);
      expectMeasure(`${what}: test`, row[`${before}test`], result[`test_${measure.key}`]);
      expectNumber(`${what}: loss`, row.loss, result.test_loss, 4);
      if (row[`${before}validation`] !== undefined) expectMeasure(`${what}: validation`, row[`${before}validation`], result[`validation_${measure.key}`]);
      const isUneven = run.answers.some((one) => one.has_uneven_classes);
      expect(`${what}: has balanced`, row.balanced !== undefined, isUneven);
      if (isUneven) expectNumber(`${what}: balanced`, row.balanced, times100(result[`${run.part}_balanced_accuracy`]), 2);
      expectNumber(`${what}: bytes`, row.bytes, result.parameter_bytes, 0);
      if (run.task === 'classify') expect(`${what}: right`, row.right.replaceAll(',', ''), answers ? `${answers.correct} of ${answers.examples < run.part_examples ? 'the first ' : ''}${answers.examples}` : '–');
    });
    expect(`${run.name}: command`, section.querySelector('.facts code').textContent, run.command);
    expect(`${run.name}: notes`, texts(section, '.result .note').join('|'), run.notes.join('|'));
  }

  function checkCurves(run, section) {
    for (const [name, list] of Object.entries(run.curves.numbers))
      if (name === 'loss' && list.length > 1) expect(`${run.name}: points`, section.querySelector('.curve').getAttribute('d').split('L').length, list.length);
    const inReach = run.curves.marks.filter(({step}) => step <= run.curves.last_step).length;
    if (run.curves.numbers.loss) expect(`${run.name}: marks`, all(section.querySelector('.chart'), '.mark').length, inReach);
    expect(`${run.name}: ranges`, all(section, '.ranges .chart').length, Object.keys(run.curves.ranges).length);
  }

  function checkHistogram(what, tensor, drawing) {
    const bars = all(drawing, '.bar');
    expect(`${what}: bars`, bars.length, tensor.integers.filter((count) => count > 0).length);
    const counts = bars.map((bar) => Number(bar.querySelector('title').textContent.split(': ')[1].replaceAll(',', '')));
    expect(`${what}: numbers`, sum(counts), tensor.values);
    const levels = tensor.quant_max - tensor.quant_min + 1;
    if (levels <= 64) expect(`${what}: grid`, all(drawing, '.grid-line').length, levels);
    if (tensor.bits === 4 && tensor.quant_min === 1) {
      ++narrow;
      if (bars.length > 15) complaints.push(`${what}: ${bars.length} bars`);
    }
  }

  function checkLayers(run, section) {
    const cards = all(section, '.layer-card');
    expect(`${run.name}: layers`, cards.length, run.layers.length);
    for (const layer of run.layers) {
      const card = cards.find((one) => one.querySelector('h4').firstChild.textContent === layer.name);
      const drawings = all(card, '.histogram svg');
      [layer.weights, layer.output].filter((tensor) => tensor).forEach((tensor, i) => checkHistogram(`${run.name} ${layer.name}`, tensor, drawings[i]));
      for (const [, value] of all(card, '.samples tr').length > 0 ? layer.samples : [])
        if (!card.textContent.includes(String(Number(value.toPrecision(3))))) complaints.push(`${layer.name}: no ${value}`);
    }
    const noise = run.layers.map(({snr_alone_db: own}) => own).filter((own) => own !== null);
    if (noise.length === 0) return;
    const first = run.layers.find(({snr_alone_db: own}) => own === Math.min(...noise));
    expect(`${run.name}: first in the table`, section.querySelector('.layers tbody td').textContent, first.name);
    expect(`${run.name}: first card`, cards[0].querySelector('h4').firstChild.textContent, first.name);
    const in2Bits = run.layers.filter(({weights}) => weights?.bits === 2);
    if (in2Bits.length === 1) expect(`${run.name}: the layer in 2 bits comes first`, first.name, in2Bits[0].name);
    for (const row of rowsOf(section.querySelector('.layers table'))) {
      const layer = run.layers.find(({name}) => name === row.layer), what = `${run.name}: ${layer.name}`;
      expectNumber(`${what}: SNR`, row['SNR, equal inputs'], layer.snr_alone_db, 1);
      expectNumber(`${what}: SNR from the input`, row['SNR, from the input'], layer.snr_from_picture_db, 1);
      expectNumber(`${what}: SNR of weights`, row['SNR, weights'], layer.weights?.snr_db, 1);
      expectNumber(`${what}: bytes`, row.bytes, layer.cost?.parameter_bytes, 0);
      checkSensitivity(what, layer, row, cards.find((card) => card.querySelector('h4').firstChild.textContent === layer.name));
    }
  }

  function checkSensitivity(what, layer, row, card) {
    const found = report.sensitivity?.quantizers.filter(({layer: name}) => name === layer.name) ?? [];
    const rows = found.length > 0 ? rowsOf(all(card, 'table').at(-1)) : [];
    expect(`${what}: widths measured`, rows.length, sum(found.map(({alone}) => alone.length)));
    for (const {kind, alone} of found) {
      const bits = kind === 'weights' ? layer.weights?.bits : layer.output_bits;
      const shownLoss = row[kind === 'weights' ? 'loss, weights' : 'loss, output'];
      expectNumber(`${what}: loss of ${kind}`, shownLoss, alone.find((one) => one.bits === bits)?.loss_increase, 4);
      for (const one of alone) {
        const shown = rows.find((line) => line['quantized alone'] === kind && line.bits === String(one.bits));
        expectNumber(`${what}: ${kind} at ${one.bits} bits`, shown['loss increase'], one.loss_increase, 4);
        expectNumber(`${what}: accuracy of ${kind} at ${one.bits} bits`, shown.accuracy, times100(one.accuracy), 2);
        ++comparedLosses;
      }
    }
  }

  function checkVerification(run, section) {
    if (!run.verification) return;
    const {simulated, integer, runtimes, layers} = run.verification;
    const tables = all(section.querySelector('.verification'), 'table');
    const rows = rowsOf(tables[0]);
    [simulated, integer, ...runtimes].forEach((one, i) => {
      const {key, name, is_share: isShare} = run.measures[0], text = rows[i][name.replace('^2', '²')];
      if (isShare) expectNumber(`${run.name}: ${name} of way ${i}`, text, times100(one[key]), 2);
      else expect(`${run.name}: ${name} of way ${i}`, Number(text), Number(one[key].toPrecision(4)));
      expectNumber(`${run.name}: difference of way ${i}`, rows[i]['largest difference'], one.outputs.largest_difference, 0);
    });
    expect(`${run.name}: verified layers`, tables[1].tBodies[0].rows.length, layers.length);
  }

  function checkGraphs(run, section) {
    const drawn = run.graphs.after.nodes.some(({role}) => role === 'weights') ? [run.graphs.before, run.graphs.after] : [run.graphs.before];
    const drawings = all(section, '.graph-scroll svg');
    expect(`${run.name}: graphs`, drawings.length, drawn.length);
    drawn.forEach(({nodes, edges}, i) => {
      const boxes = all(drawings[i], '.node rect').map((box) => ['x', 'y', 'width', 'height'].map((key) => Number(box.getAttribute(key))));
      expect(`${run.name}: nodes of graph ${i}`, boxes.length, nodes.length);
      expect(`${run.name}: edges of graph ${i}`, all(drawings[i], '.edge').length, edges.length);
      if (i === 1) expect(`${run.name}: bits`, texts(drawings[i], '.bits').join(' '), edges.map(([, , bits]) => bits < 32 ? String(bits) : 'float').join(' '));
      boxes.forEach(([x, y, width, height], k) => {
        if (x < -1 || y < -1) complaints.push(`${run.name}: ${nodes[k].name} lies outside`);
        for (const [otherX, otherY, otherWidth, otherHeight] of boxes.slice(k + 1))
          if (x < otherX + otherWidth && otherX < x + width && y < otherY + otherHeight && otherY < y + height) complaints.push(`${run.name}: ${nodes[k].name} lies on another node`);
      });
      for (const [from, to] of edges)
        if (boxes[from][1] >= boxes[to][1]) complaints.push(`${run.name}: ${nodes[to].name} stands above what it reads`);
    });
  }

  /** A long graph on sheets of paper: together they show all of it, and cut through no box. */
  function checkSheets() {
    const nodes = Array.from({length: 200}, (_, i) => ({name: `node${i}`, type: 'Relu', role: i === 0 ? 'input' : 'op', detail: ''}));
    const edges = nodes.slice(1).map((_, i) => [i, i + 1, 32]);
    const figure = drawGraph({nodes, edges}, 'long');
    document.body.append(figure);
    expect('sheets before anything is printed', all(figure, '.sheet').length, 0);
    dispatchEvent(new Event('beforeprint'));
    const whole = figure.querySelector('.graph-scroll svg').viewBox.baseVal;
    const parts = all(figure, '.sheet svg').map(({viewBox}) => viewBox.baseVal);
    expect('several sheets', parts.length > 5 && parts.length < 20, true);
    expect('sheets together', parts.at(-1).y + parts.at(-1).height, whole.y + whole.height);
    parts.forEach(({y, height}, i) => {
      if (i > 0) expect(`beginning of sheet ${i}`, y, parts[i - 1].y + parts[i - 1].height);
      if (height > 930) complaints.push(`sheet ${i} has ${height} pixels`);
    });
    for (const box of all(figure, '.graph-scroll rect')) {
      const top = Number(box.getAttribute('y')), bottom = top + Number(box.getAttribute('height'));
      expect(`sheets with the box at ${top}`, parts.filter(({y, height}) => y <= top && bottom <= y + height).length, 1);
    }
    expect('boxes on all sheets', all(figure, '.sheet rect').length < 1.2 * nodes.length, true);
    expect('captions', texts(figure, '.sheet figcaption')[1], `long, part 2 of ${parts.length}`);
    // The parts are copies, which have the look of the drawing only if no rule asks for what lies around it.
    for (const {selectorText} of all(document, 'style').flatMap(({sheet}) => [...sheet.cssRules]))
      if (/svg .*text/.test(selectorText)) complaints.push(`${selectorText} does not reach the sheets`);
    figure.remove();
  }

  /** Accuracies beside one another say which pictures they are of. */
  function checkComparison() {
    rowsOf(document.querySelector('.comparison table')).forEach((row, i) => {
      const run = report.runs[i], result = (name) => run.results.find((one) => one.name === name);
      for (const [title, shown] of [['float', result('float')], ['simulated', run.listed.bits ? run.results.find((one) => one.is_run) : null], ['integers', result('integers')]]) {
        const {key, name, is_share: isShare} = run.measures[0];
        const value = shown?.[`test_${key}`] ?? shown?.[`validation_${key}`] ?? null;
        const isValidation = value !== null && shown[`test_${key}`] === null;
        if (isValidation) ++comparedValidations;
        const text = row[title].replace(' (val.)', '');
        if (run.task === 'classify') expectNumber(`${run.name}: ${title} beside others`, text, times100(value), 2);
        else expect(`${run.name}: ${title} beside others`, text, value === null ? '–' : isShare ? `${(100 * value).toFixed(2)}%` : String(Number(value.toPrecision(4))));
        expect(`${run.name}: the figure`, row.figure, report.runs.some(({task}) => task !== 'classify') ? name.replace('^2', '²') : undefined);
        expect(`${run.name}: ${title} of the validation part`, row[title].includes('(val.)'), isValidation);
      }
    });
  }

  /** Points, curves and tables of answers that are no classes. */
  function checkOutputs(run, section) {
    const {outputs, labels, curves} = run.outputs, place = section.querySelector('.answers');
    const dots = all(place, '.dots').map((path) => path.getAttribute('d').split('M').length - 1);
    const drawn = (outputs ?? []).flatMap(({targets, networks}) => [...networks, ...networks].map(() => targets.length));
    expect(`${run.name}: points`, dots.join(), drawn.join());
    const paths = all(place, '.plot .curve').map((path) => path.getAttribute('d').split('L').length);
    expect(`${run.name}: ROC curves`, paths.join(), (curves ?? []).map(({points: list}) => list.length).join());
    const legends = texts(place, '.plot .legend span').join('|');
    for (const {name, auc} of curves ?? []) expect(`${run.name}: AUC of ${name}`, legends.includes(`${name}: AUC ${auc.toFixed(3)}`), true);
    for (const {networks} of outputs ?? [])
      for (const {name, r2} of networks) expect(`${run.name}: R² of ${name}`, legends.includes(`${name}: R² ${r2.toFixed(3)}`), true);
    if (labels) {
      const rows = rowsOf(place.querySelector('table')), last = run.answers.at(-1).name;
      labels.forEach(({name, examples, networks}, i) => {
        const found = networks.find((network) => network.name === last);
        expect(`${run.name}: label`, rows[i].label, name);
        expectNumber(`${name}: examples`, rows[i]['examples with it'], examples, 0);
        for (const key of ['precision', 'recall']) expectNumber(`${name}: ${key}`, rows[i][key], found[key], 3);
        expectNumber(`${name}: AUC`, rows[i].AUC, found.auc, 3);
      });
    }
  }

  /** Each example is drawn, and says so to those who do not see it. */
  function checkExamples(run, section) {
    const figures = all(section, '.worst figure');
    expect(`${run.name}: worst examples`, figures.length, run.outputs?.worst.length ?? 0);
    figures.forEach((figure, i) => {
      const {drawing, texts: words} = run.outputs.worst[i], drawings = all(figure, '[role="img"]');
      expect(`${run.name}: drawings of ${i}`, drawings.length, drawing.maps?.length ?? 1);
      if (drawings.some((one) => !/\d numbers/.test(one.getAttribute('aria-label')))) complaints.push(`${run.name}: example ${i} has no words`);
      if (drawing.lines) expect(`${run.name}: lines of ${i}`, all(figure, '.curve').length, drawing.lines.length);
      for (const canvas of all(figure, 'canvas')) {
        const inks = new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data);
        if (inks.size < 10) complaints.push(`${run.name}: map ${i} has ${inks.size} levels`);
      }
      for (const [who, text] of words) if (!figure.textContent.includes(`${who}: ${text}`)) complaints.push(`${run.name}: no ${who}`);
      ++drawnExamples;
    });
  }

  function checkAnswers(run, section) {
    if (run.answers.length === 0) return;
    checkExamples(run, section);
    if (run.task !== 'classify') return checkOutputs(run, section);
    const last = run.answers.at(-1);
    const cells = all(section, '.confusion td[title]').map((cell) => Number(cell.textContent === '·' ? 0 : cell.textContent));
    expect(`${run.name}: confusions`, cells.join(), last.confusion.flat().join());
    expect(`${run.name}: pictures of the matrix`, sum(cells), last.examples);
    if (run.noun === 'picture') expect(`${run.name}: lost pictures`, all(section, '.pictures canvas').length, run.comparison?.lost.length ?? 0);
  }

  function checkPage() {
    for (const word of ['NaN', 'undefined', 'null', 'Infinity', '[object'])
      if (document.body.innerText.includes(word)) complaints.push(`the page says ${word}`);
    const one = /(?<![\d.,])1 (steps|quantizers|numbers|pictures|examples|recordings|bytes|layers|threads|cores|files|NaNs)\b/.exec(document.body.innerText);
    if (one) complaints.push(`the page says ${one[0]}`);
    for (const element of all(document, 'main svg *'))
      for (const {value} of element.attributes) if (/NaN|undefined|Infinity/.test(value)) complaints.push(`<${element.tagName}> has ${value.slice(0, 40)}`);
    const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    if (wide > 0) complaints.push(`the page is ${wide} pixels too wide`);
    const paper = () => getComputedStyle(document.body).backgroundColor, before = paper();
    dispatchEvent(new KeyboardEvent('keydown', {key: 't'}));
    expect('another paper', paper() !== before, true);
    dispatchEvent(new KeyboardEvent('keydown', {key: 't'}));
    expect('the paper as before', paper(), before);
    for (const {name} of performance.getEntriesByType('resource')) if (!name.startsWith('data:')) complaints.push(`a request for ${name}`);
  }

  const sections = all(document, 'section.run');
  expect('runs', sections.length, report.runs.length);
  const compared = all(document, '.comparison tbody'), quantized = report.runs.filter((run) => run.layers.some(({snr_alone_db: own}) => own !== null));
  expect('runs compared', compared[0]?.rows.length ?? 0, report.runs.length > 1 ? report.runs.length : 0);
  expect('layers compared', compared[1]?.rows.length ?? 0, quantized.length > 1 ? new Set(quantized.flatMap((run) => run.layers.map(({name}) => name))).size : 0);
  if (quantized.length > 1) {
    const [first] = quantized, {name, snr_alone_db: own} = first.layers.find(({snr_alone_db: noise}) => noise !== null);
    const row = [...compared[1].rows].find(({cells}) => cells[0].textContent === name);
    expect('a layer compared', row.cells[1].textContent.split(': ')[1], own.toFixed(1));
  }
  report.runs.forEach((run, i) => {
    for (const check of [checkResults, checkCurves, checkLayers, checkGraphs, checkAnswers, checkVerification]) check(run, sections[i]);
  });
  if (report.runs.length > 1) checkComparison();
  checkSheets();
  checkPage();
  document.getElementById('found').textContent = JSON.stringify({complaints, narrow, comparedLosses, comparedValidations, drawnExamples});
})();
