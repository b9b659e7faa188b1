'use strict';
// Answers that are no classes: numbers beside their targets, anomalies, labels; and examples that are numbers.

/** Points of several networks over two axes: {name, colour, points: [[x, y], ...], isLine}. `guide`: a line of two points. */
function plot(series, {title, label, xTitle, yTitle, guide, mark = null, range = null}) {
  const width = 440, height = 300, left = 58, right = 12, top = 12, bottom = height - 40;
  const all = series.flatMap(({points}) => points);
  if (all.length === 0) return null;
  const span = (values) => {
    const low = Math.min(...values), high = Math.max(...values), room = (high - low || Math.abs(high) || 1) * 0.04;
    return [low - room, high + room];
  };
  const [[xLow, xHigh], [yLow, yHigh]] = range ?? [span([...all.map(([x]) => x), ...(guide ?? []).map(([x]) => x)]), span([...all.map(([, y]) => y), ...(guide ?? []).map(([, y]) => y)])];
  const x = scaleOf(xLow, xHigh, left, width - right), y = scaleOf(yLow, yHigh, bottom, top);
  return html('figure', {class: 'chart plot'}, html('figcaption', {}, title),
    picture(width, height, label,
      ticks(yLow, yHigh, 5).map((value) => [
        svg('line', {class: 'grid', x1: left, x2: width - right, y1: y(value), y2: y(value)}),
        svg('text', {x: left - 6, y: y(value) + 4, 'text-anchor': 'end'}, tickText(value))]),
      ticks(xLow, xHigh, 6).map((value) => svg('text', {x: x(value), y: bottom + 15, 'text-anchor': 'middle'}, tickText(value))),
      svg('line', {class: 'axis', x1: left, x2: width - right, y1: bottom, y2: bottom}),
      svg('text', {x: (left + width - right) / 2, y: height - 6, 'text-anchor': 'middle'}, xTitle),
      svg('text', {x: -(top + bottom) / 2, y: 12, transform: 'rotate(-90)', 'text-anchor': 'middle'}, yTitle),
      guide ? svg('path', {class: 'guide', d: polyline(guide, x, y)}) : null,
      mark === null ? null : svg('line', {class: 'guide', x1: x(mark), x2: x(mark), y1: top, y2: bottom}),
      series.map(({name, colour: ink, points, isLine}, i) => isLine ?
        svg('path', {class: 'curve', d: polyline(points, x, y), stroke: ink}, svg('title', {}, name)) :
        svg('path', {class: i + 1 === series.length ? 'dots' : 'dots below', d: points.map((point) => `M${x(point[0]).toFixed(1)} ${y(point[1]).toFixed(1)}h0`).join(''), stroke: ink}, svg('title', {}, name)))),
    html('p', {class: 'legend'}, series.map(({name, colour: ink}) => html('span', {}, html('i', {style: `--ink: ${ink}`}), name))));
}

/** The networks in their colours, the last one on top. */
const coloured = (networks) => networks.map((network, i) => ({...network, colour: colour(i)}));
const three = (value) => known(value) ? value.toFixed(3) : MISSING;

/** Without a name of its own an output has its number. */
const outputName = (name) => /^\d+$/.test(name) ? `output ${name}` : name;

function numberPlots({name: given, targets, networks}) {
  const name = outputName(given);
  const titled = coloured(networks).map(({name: network, colour: ink, predictions, r2}) => ({name: `${network}: R² ${three(r2)}`, colour: ink,
    points: targets.map((target, i) => [target, predictions[i]]).filter((point) => point.every(known))}));
  const found = titled.map((network) => network.name).join('; ');
  const low = Math.min(...targets), high = Math.max(...targets);
  return html('div', {class: 'charts plots'},
    plot(titled, {title: `${name}: predicted against true`, label: `Predicted against true values of ${name}, ${counted(targets.length, 'example')}. ${found}.`,
      xTitle: 'true', yTitle: 'predicted', guide: [[low, low], [high, high]]}),
    plot(titled.map((network) => ({...network, points: network.points.map(([target, predicted]) => [target, predicted - target])})),
      {title: `${name}: residuals`, label: `Predicted minus true values of ${name}, over the true ones.`, xTitle: 'true', yTitle: 'predicted − true', guide: [[low, 0], [high, 0]]}));
}

function numbersFound(run, {outputs}) {
  const shown = outputs[0].targets.length, all = lastAnswers(run).examples;
  return [html('p', {class: 'hint'}, `In the units of the data. The dashed line is a perfect answer.${shown < all ? ` ${whole(shown)} examples are drawn, evenly chosen.` : ''}`),
    outputs.map(numberPlots)];
}

/** The part up to a share of 0.1 of false alarms is that of the partial AUC. */
function anomaliesFound(run, {curves}) {
  if (curves.length === 0) return html('p', {class: 'hint'}, 'The data have no anomalies to tell from normal examples.');
  const titled = coloured(curves).map(({name, colour: ink, points: list, auc, partial_auc: partial}) => ({name: `${name}: AUC ${three(auc)}, partial ${three(partial)}`, colour: ink, points: list, isLine: true}));
  return [html('p', {class: 'hint'}, 'The share of the anomalies that are found, against the share of normal examples that are false alarms. The diagonal is guessing. Left of the line at 0.1 lies the part of the partial AUC.'),
    html('div', {class: 'charts plots'}, plot(titled, {title: 'ROC curve of the reconstruction error', label: `ROC curve: found anomalies against false alarms. ${titled.map(({name}) => name).join('; ')}.`,
      xTitle: 'false alarms', yTitle: 'found anomalies', guide: [[0, 0], [1, 1]], mark: 0.1, range: [[0, 1], [0, 1.02]]}))];
}

function labelsFound(run, {labels}) {
  const of = ({networks}, name) => networks.find((network) => network.name === name);
  const last = lastAnswers(run).name;
  const others = labels[0].networks.map(({name}) => name).filter((name) => name !== last);
  return [html('p', {class: 'hint'}, `Of ${last}, where a label holds with a probability of at least 0.5.`),
    table([{title: 'label', left: true, value: ({name}) => name}, {title: 'examples with it', value: ({examples}) => whole(examples)},
      ...['precision', 'recall', 'f1'].map((key) => ({title: key === 'f1' ? 'F1' : key, value: (label) => three(of(label, last)[key])})),
      {title: 'AUC', value: (label) => three(of(label, last).auc)},
      ...others.map((name) => ({title: `AUC, ${name}`, value: (label) => three(of(label, name).auc)}))], labels)];
}

/** Numbers of an example as lines, what a network gave back of it dashed. */
function drawLines({lines}) {
  const width = 280, height = 130, left = 46, right = 6, top = 8, bottom = height - 8;
  const values = lines.flatMap((line) => line.values).filter(known);
  const low = Math.min(...values), high = Math.max(...values), last = Math.max(...lines.map((line) => line.values.length - 1), 1);
  const x = scaleOf(0, last, left, width - right), y = scaleOf(low, high, bottom, top);
  const inputs = lines.filter(({output}) => !output).length;
  return picture(width, height, `${counted(lines.length, 'line')} of ${whole(last + 1)} numbers from ${real(low, 4)} to ${real(high, 4)}`,
    [low, high].map((value) => svg('text', {x: left - 5, y: y(value) + (value === low ? 0 : 8), 'text-anchor': 'end'}, real(value, 3))),
    svg('line', {class: 'grid', x1: left, x2: left, y1: top, y2: bottom}),
    lines.map(({name, values: list, output}, i) => svg('path', {class: 'curve thin', stroke: output && inputs === 1 ? colour(1) : colour(i % inputs), 'stroke-dasharray': output ? '4 3' : null,
      d: polyline(list.map((value, step) => [step, value]).filter(([, value]) => known(value)), x, y)}, svg('title', {}, [name, output ? 'output' : 'input'].filter((word) => word !== '').join(', ')))));
}

/** From the lowest number to the highest: dark blue, green, light yellow. */
const RAMP = [[24, 26, 72], [30, 104, 138], [96, 176, 112], [252, 232, 108]];
function rampAt(share) {
  const place = Math.min(share * (RAMP.length - 1), RAMP.length - 1.001), i = Math.floor(place);
  return RAMP[i].map((value, k) => Math.round(value + (place - i) * (RAMP[i + 1][k] - value)));
}

function drawMap({name, width, height, bytes: text}, {low, high}) {
  const numbers = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const canvas = html('canvas', {width, height, class: width > 2 * height ? 'map wide' : 'map', role: 'img', 'aria-label': `${name}: a map of ${width} by ${height} numbers from ${real(low, 4)} (dark) to ${real(high, 4)} (light)`, title: name});
  const image = new ImageData(width, height);
  numbers.forEach((number, i) => image.data.set([...rampAt(number / 255), 255], 4 * i));
  canvas.getContext('2d').putImageData(image, 0, 0);
  return canvas;
}

/** Whatever draw_example() has made of an example. */
function drawExample(drawing) {
  if (drawing.lines) return drawLines(drawing);
  if (drawing.maps) return drawing.maps.map((map) => drawMap(map, drawing));
  return drawing.pixels ? canvasOf(drawing) : null;
}

function howDrawn({worst: [{drawing}]}) {
  const words = [];
  if (drawing.lines?.some(({output}) => output)) words.push('Dashed: what the network gave back.');
  if (drawing.unit !== '') words.push('The numbers are standardised: in deviations from the mean of the training part.');
  if (drawing.maps) words.push(`Steps go to the right, channels upwards; dark is low, light is high.${drawing.maps.length > 1 ? ' The second picture is what the network gave back.' : ''}`);
  return words.length > 0 ? html('p', {class: 'hint'}, words.join(' ')) : null;
}

function worstExamples(run) {
  const {outputs} = run;
  if (!outputs || outputs.worst.length === 0) return null;
  const last = lastAnswers(run).name;
  return html('div', {class: 'worst'}, html('h4', {}, `The ${counted(outputs.worst.length, run.noun)} with the greatest loss, ${last}`), howDrawn(outputs),
    html('div', {class: 'examples'}, outputs.worst.map(({index, file, texts, drawing}) => html('figure', {}, drawExample(drawing),
      html('figcaption', {}, html('span', {}, `no. ${index}`, file ? ` ${file}` : ''), texts.map(([who, text]) => html('span', {}, `${who}: ${text}`)))))));
}

/** The answers of a task that is none of classes. */
function outputsSection(run) {
  const {outputs} = run, last = lastAnswers(run);
  return html('section', {class: 'answers'}, html('h3', {}, `Answers for ${last.examples < run.part_examples ? 'the ' : ''}${answered(run, last)}`),
    outputs.outputs ? numbersFound(run, outputs) : outputs.labels ? labelsFound(run, outputs) : anomaliesFound(run, outputs), worstExamples(run));
}
