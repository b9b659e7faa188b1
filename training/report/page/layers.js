'use strict';
// Each layer: what quantization does to its numbers.

/** What a layer loses first: its own noise. Layers without a number come last, in the network's order. */
function byLoss(layers) {
  const key = ({snr_alone_db: own, weights}) => own ?? weights?.snr_db ?? Infinity;
  return layers.map((layer, i) => ({...layer, place: i + 1})).sort((a, b) => key(a) - key(b) || a.place - b.place);
}

/** The measured loss increase of a layer's weights or output at the bits that it has, and all widths for the hint. */
function sensitivityOf(sensitivity, name, kind, bits) {
  if (!sensitivity) return null;
  sensitivity.byName ??= new Map(sensitivity.quantizers.map((one) => [`${one.kind} ${one.layer}`, one]));
  const found = sensitivity.byName.get(`${kind} ${name}`);
  if (!found) return null;
  return {at: found.alone.find((one) => one.bits === bits) ?? null, alone: found.alone};
}

function signed(value) {
  if (!known(value)) return MISSING;
  const digits = Math.abs(value).toFixed(4);
  return Number(digits) === 0 ? digits : `${value < 0 ? '−' : '+'}${digits}`;
}

const bitsOf = ({cost, output_bits: out, weights}) => `${weights ? weights.bits : cost ? 'float' : MISSING} → ${out ?? 'float'}`;

function layerTable(layers, sensitivity) {
  const columns = [
    {title: 'layer', left: true, value: (layer) => html('a', {href: `#${layer.anchor}`}, layer.name)},
    {title: '#', value: ({place}) => String(place), hint: 'place in the network'},
    {title: 'bits', value: bitsOf, hint: 'of the weights and of the output'},
    {title: 'SNR, equal inputs', value: (layer) => decibels(layer.snr_alone_db), hint: 'dB of the output: this layer alone quantized'},
    {title: 'SNR, from the input', value: (layer) => decibels(layer.snr_from_picture_db), hint: 'dB of the output: all layers quantized'},
    {title: 'SNR, weights', value: ({weights}) => decibels(weights?.snr_db), hint: 'dB of the weights'},
    {title: 'clipped', value: ({weights, output}) => `${weights ? share(weights.clipped, weights.values) : MISSING} / ${output ? share(output.clipped, output.values) : MISSING}`, hint: 'share of the weights and of the outputs beyond the grid'},
    {title: 'unused', value: ({weights, output}) => `${weights?.unused ?? MISSING} / ${output?.unused ?? MISSING}`, hint: 'integers that no weight and no output became'},
    {title: 'bytes', value: ({cost}) => whole(cost?.parameter_bytes)},
    {title: 'MACs × bits', value: ({cost}) => short(cost?.bit_operations)},
  ];
  if (sensitivity) columns.push({title: 'loss, weights', value: (layer) => signed(sensitivityOf(sensitivity, layer.name, 'weights', layer.weights?.bits)?.at?.loss_increase), hint: 'loss increase with these weights alone quantized, as `miniqat sensitivity` measured'},
    {title: 'loss, output', value: (layer) => signed(sensitivityOf(sensitivity, layer.name, 'activations', layer.output_bits)?.at?.loss_increase), hint: 'the same of the output'});
  return table(columns, layers);
}

/** The layers of several quantized runs beside one another: bits, and the noise of each alone. */
function layerComparison(runs) {
  const quantized = runs.filter((run) => run.layers.some((layer) => known(layer.snr_alone_db)));
  if (quantized.length < 2) return null;
  const names = [...new Set(quantized.flatMap((run) => run.layers.map(({name}) => name)))];
  const layersOf = quantized.map((run) => new Map(run.layers.map((layer) => [layer.name, layer])));
  const text = (layer) => layer ? `${bitsOf(layer)}: ${decibels(layer.snr_alone_db)}` : MISSING;
  return [html('h4', {}, 'Layers: bits of weights and output, and the SNR of the output in dB given equal inputs'),
    table([{title: 'layer', left: true, value: (name) => name}, ...quantized.map((run, i) => (
      {title: run.name, value: (name) => text(layersOf[i].get(name))}))], names)];
}

function sampleTable({samples}) {
  if (samples.length === 0) return null;
  const row = (title, cells) => html('tr', {}, html('th', {class: 'left'}, title), cells.map((cell) => html('td', {}, cell)));
  return html('div', {class: 'scroll'}, html('table', {class: 'samples'}, html('tbody', {},
    row('weight', samples.map(([index]) => `[${index}]`)),
    row('float', samples.map(([, value]) => real(value, 3))),
    row('integer', samples.map(([, , integer]) => String(integer))),
    row('stands for', samples.map(([, , , rounded]) => real(rounded, 3))))));
}

function tensorText(tensor) {
  const range = `${real(tensor.min)} to ${real(tensor.max)}`;
  if (!known(tensor.bits)) return `${counted(tensor.values, 'number')}, ${range}`;
  return `${tensor.text}; ${counted(tensor.values, 'number')}, ${range}; ${known(tensor.scale) ? `scale ${real(tensor.scale)}, zero point ${tensor.zero_point}` : `${tensor.grids} scales`}; ` +
    `${share(tensor.clipped, tensor.values)} clipped; ${tensor.unused} of ${tensor.quant_max - tensor.quant_min + 1} integers unused; SNR ${decibels(tensor.snr_db)} dB${tensor.nan > 0 ? `; ${counted(tensor.nan, 'NaN')} more` : ''}`;
}

function sensitivityTable(layer, sensitivity) {
  const kinds = ['weights', 'activations'].map((kind) => [kind, sensitivityOf(sensitivity, layer.name, kind, null)]).filter(([, found]) => found);
  if (kinds.length === 0) return null;
  return table([
    {title: 'quantized alone', left: true, value: ({kind}) => kind}, {title: 'bits', value: ({bits}) => String(bits)},
    {title: 'loss increase', value: ({loss_increase: increase}) => signed(increase)}, ...(kinds.some(([, {alone}]) => alone.some(({accuracy}) => known(accuracy))) ? [{title: 'accuracy', value: ({accuracy}) => percent(accuracy)}] : []),
    {title: 'SNR (dB)', value: ({snr_db: snr}) => decibels(snr)},
  ], kinds.flatMap(([kind, {alone}]) => alone.map((one) => ({kind, ...one}))));
}

const cardOf = (layer, ...content) => html('article', {class: 'layer-card', id: layer.anchor}, html('h4', {}, layer.name, html('small', {}, layer.type ? ` ${layer.type}` : ' between layers')), content);

function contentOf(layer, sensitivity) {
  const {weights, float_weights: plain, output, cost} = layer;
  const shape = (list) => list.join(' × ');
  return [
    html('p', {class: 'hint'}, [layer.weight_shape.length > 0 ? `weights ${shape(layer.weight_shape)}` : null, `output ${shape(layer.output_shape)}`,
      cost ? `${short(cost.multiply_adds)} MACs × ${cost.weight_bits} × ${cost.input_bits} bits, ${counted(cost.parameter_bytes, 'byte')}` : null,
      known(layer.snr_alone_db) ? `SNR of the output ${decibels(layer.snr_alone_db)} dB given equal inputs, ${decibels(layer.snr_from_picture_db)} dB from the input on` : null].filter(known).join('; ')),
    html('div', {class: 'histograms'},
      weights ? html('div', {}, gridHistogram(weights, 'weights'), html('p', {class: 'hint'}, tensorText(weights))) : null,
      plain ? html('div', {}, floatHistogram(plain, 'weights, in float'), html('p', {class: 'hint'}, tensorText(plain))) : null,
      output ? html('div', {}, gridHistogram(output, 'output'), html('p', {class: 'hint'}, tensorText(output))) : null),
    sampleTable(layer), sensitivityTable(layer, sensitivity),
  ];
}

/** Cards of more layers wait until somebody asks for them. */
const MOST_CARDS = 12;
/** Those of many layers have their names only until they are seen: links lead to them, and searches find them. */
function cardsOf(layers, sensitivity) {
  return html('div', {class: 'cards'}, layers.map((layer) => {
    if (layers.length <= MANY) return cardOf(layer, contentOf(layer, sensitivity));
    const card = cardOf(layer);
    card.classList.add('waiting');
    return whenSeen(card, () => {
      card.classList.remove('waiting');
      card.append(...contentOf(layer, sensitivity).filter(known));
    });
  }));
}

function layersSection(run, sensitivity) {
  if (run.layers.length === 0) return null;
  const layers = byLoss(run.layers).map((layer) => ({...layer, anchor: `run${run.number}-layer${layer.place}`}));
  const quantized = layers.some(({weights, output}) => weights || output);
  return html('section', {class: 'layers'}, html('h3', {}, quantized ? 'Layers, the largest loss first' : 'Layers'),
    quantized ? html('p', {class: 'hint'}, `SNR: signal-to-noise ratio of a layer's output in dB, beside the same network with no quantizer at work, on ${counted(run.layer_examples, run.noun)}. Given equal inputs only this layer is quantized; from the input on, all are. 6 dB are one bit.`) : null,
    layerTable(layers, sensitivity),
    quantized ? html('p', {class: 'legend'}, html('span', {}, html('i', {class: 'swatch numbers'}), 'numbers'), html('span', {}, html('i', {class: 'swatch bar'}), 'the integers that they become'), html('span', {}, html('i', {class: 'swatch grid'}), 'the grid'), html('span', {}, html('i', {class: 'swatch outside'}), 'clipped'), html('span', {}, 'heights are square roots of counts')) : null,
    cardsOf(layers.slice(0, MOST_CARDS), sensitivity),
    layers.length > MOST_CARDS ? html('details', {}, html('summary', {}, `The other ${layers.length - MOST_CARDS}`), cardsOf(layers.slice(MOST_CARDS), sensitivity)) : null);
}
