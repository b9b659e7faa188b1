'use strict';
// One integer of an operation's output, computed a second time from its definition, step by step: what the page shows of
// a chosen number. BigInt takes the place of 64-bit integers. Nothing here comes from the loops of engine.js, so the two
// check each other.

/** The index along each axis of element i. */
function indicesOf(i, shape) {
  const indices = [];
  for (let axis = shape.length - 1; axis >= 0; --axis) {
    indices[axis] = i % shape[axis];
    i = Math.floor(i / shape[axis]);
  }
  return indices;
}

function placeOf(indices, shape) {
  return indices.reduce((place, index, axis) => place * shape[axis] + index, 0);
}

/** What an output pixel sees: {row, column, tap} of each input pixel under its window, padding left out. */
function seenPixels({inputs: [input], output, window, strides, dilations, paddings}, index) {
  const position = output.shape.length === 3 ? indicesOf(index, output.shape) : [0, 0];
  const seen = [];
  for (let tap = 0; tap < window[0] * window[1]; ++tap) {
    const [row, column] = indicesOf(tap, window)
        .map((k, axis) => position[axis] * strides[axis] - paddings[axis][0] + k * dilations[axis]);
    if (row >= 0 && row < input.shape[0] && column >= 0 && column < input.shape[1]) seen.push({row, column, tap});
  }
  return seen;
}

/** The steps from a sum to an integer, the last of which is the result. */
function requantizationSteps(sum, mantissa, shift, zeroPoint, [smallest, largest]) {
  const product = BigInt(sum) * BigInt(mantissa);
  return [
    {name: 'times m', formula: `· ${mantissa}`, value: product},
    ...roundingSteps(product, shift, zeroPoint, [smallest, largest]),
  ];
}

function roundingSteps(product, shift, zeroPoint, [smallest, largest]) {
  const half = 1n << BigInt(shift - 1);
  const shifted = (product + half) >> BigInt(shift);
  const placed = shifted + BigInt(zeroPoint);
  const result = placed < smallest ? smallest : placed > largest ? largest : Number(placed);
  return [
    {name: 'plus half', formula: `+ 2^${shift - 1}`, value: product + half},
    {name: 'shifted right', formula: `>> ${shift}`, value: shifted},
    {name: 'plus Z', formula: `+ ${zeroPoint}`, value: placed},
    {name: 'clamped', formula: `to ${smallest} … ${largest}`, value: result},
  ];
}

function layerTerms(layer, x, index) {
  const {inputs: [input], filter} = layer, channels = layer.bias.length, channel = index % channels;
  const term = (place, weight) => {
    const left = x[place] - input.zero_point;
    const right = (layer.weights[weight] - layer.weightZeroPoint(channel)) * 2 ** layer.weightShift;
    return {place, x: x[place], left, w: layer.weights[weight], right, product: left * right};
  };
  if (layer.type === 'FullyConnected')
    return Array.from(x, (value, i) => term(i, i * channels + channel));
  if (layer.type === 'DepthwiseConv2d') {
    const from = Math.floor(channel / filter[3]);
    return seenPixels(layer, index).map(
        ({row, column, tap}) => term(placeOf([row, column, from], input.shape), tap * channels + channel));
  }
  const terms = [];
  for (const {row, column, tap} of seenPixels(layer, index))
    for (let i = 0; i < filter[2]; ++i)
      terms.push(term(placeOf([row, column, i], input.shape), (tap * filter[2] + i) * channels + channel));
  return terms;
}

function explainLayer(layer, [x], index) {
  const channel = index % layer.bias.length, terms = layerTerms(layer, x, index);
  const sum = terms.reduce((total, {product}) => total + product, layer.bias[channel]);
  const {mantissa, shift} = layer.multiplier(channel);
  return {bias: layer.bias[channel], terms, sum, mantissa, shift,
          steps: requantizationSteps(sum, mantissa, shift, layer.output.zero_point, layer.clamp)};
}

function explainAdd({inputs, output, multipliers, clamp}, x, index) {
  const terms = inputs.map((input, k) => {
    const left = x[k][index] - input.zero_point, right = multipliers.mantissas[k];
    return {place: index, x: x[k][index], left, right, product: left * right};
  });
  const sum = terms[0].product + terms[1].product;
  return {terms, sum, shift: multipliers.shift,
          steps: roundingSteps(BigInt(sum), multipliers.shift, output.zero_point, clamp)};
}

function explainMul({inputs: [a, b], output, multiplier: {mantissa, shift}, clamp}, [xa, xb], index) {
  const indices = indicesOf(index, output.shape);
  const [place, other] = [a, b].map(({shape}) => placeOf(indices.map((i, axis) => shape[axis] === 1 ? 0 : i), shape));
  const left = xa[place] - a.zero_point, right = xb[other] - b.zero_point;
  return {terms: [{place, x: xa[place], left, w: xb[other], right, product: left * right}], sum: left * right,
          mantissa, shift, steps: requantizationSteps(left * right, mantissa, shift, output.zero_point, clamp)};
}

/** Of Rescale and Concat: one integer moves from its grid to the output's. */
function explainMove({output, clamp}, input, x, place, {mantissa, shift}) {
  const sum = x[place] - input.zero_point;
  return {terms: [{place, x: x[place], left: sum, product: sum}], sum, mantissa, shift,
          steps: requantizationSteps(sum, mantissa, shift, output.zero_point, clamp)};
}

function explainConcat(operation, x, index) {
  const {inputs, output, axis, multipliers} = operation, indices = indicesOf(index, output.shape);
  let k = 0;
  for (; indices[axis] >= inputs[k].shape[axis]; ++k) indices[axis] -= inputs[k].shape[axis];
  return explainMove(operation, inputs[k], x[k], placeOf(indices, inputs[k].shape), multipliers[k]);
}

/** The integers of one channel that a pool sees. */
function pooledTerms(pool, x, index) {
  const [input] = pool.inputs, channel = index % input.shape[2];
  return seenPixels(pool, index).map(({row, column}) => {
    const place = placeOf([row, column, channel], input.shape);
    const left = x[place] - input.zero_point;
    return {place, x: x[place], left, product: left};
  });
}

function explainAveragePool(pool, [x], index) {
  const terms = pooledTerms(pool, x, index), {mantissa, shift} = pool.multipliers[terms.length - 1];
  const sum = terms.reduce((total, {product}) => total + product, 0);
  return {terms, sum, mantissa, shift,
          steps: requantizationSteps(sum, mantissa, shift, pool.output.zero_point, pool.clamp)};
}

function explainMaxPool(pool, [x], index) {
  const terms = pooledTerms(pool, x, index);
  return {terms, steps: [{name: 'the largest', formula: `of ${terms.length}`, value: Math.max(...terms.map((t) => t.x))}]};
}

function explainCopy(x, place) {
  return {terms: [{place, x: x[place]}], steps: [{name: 'the same integer', formula: '', value: x[place]}]};
}

function explainPad({inputs: [input], output, paddings}, [x], index) {
  const indices = indicesOf(index, output.shape).map((i, axis) => i - paddings[axis][0]);
  if (indices.every((i, axis) => i >= 0 && i < input.shape[axis])) return explainCopy(x, placeOf(indices, input.shape));
  return {terms: [], steps: [{name: 'padding', formula: 'the zero point', value: output.zero_point}]};
}

function explainSlice({inputs: [input], output, starts, steps}, [x], index) {
  const indices = indicesOf(index, output.shape).map((i, axis) => starts[axis] + i * steps[axis]);
  return explainCopy(x, placeOf(indices, input.shape));
}

function explainLookup({table, function: name}, [x], index) {
  const entry = Math.min(x[index], table.length - 1);
  return {terms: [{place: index, x: x[index]}],
          steps: [{name: `table of ${name}`, formula: `entry ${entry}`, value: table[entry]}]};
}

/**
 * Number `index` of an operation's output, from the bytes of its inputs: `terms` {place in the input, x, left = x less
 * its zero point, w, right = w less its zero point in units, product} with their `bias` and `sum` where there are such, and
 * `steps` {name, formula, value}, the last of which has the integer.
 */
function explain(operation, x, index) {
  switch (operation.type) {
    case 'Add': return explainAdd(operation, x, index);
    case 'Mul': return explainMul(operation, x, index);
    case 'Rescale': return explainMove(operation, operation.inputs[0], x[0], index, operation.multiplier);
    case 'Concat': return explainConcat(operation, x, index);
    case 'AveragePool': return explainAveragePool(operation, x, index);
    case 'MaxPool': return explainMaxPool(operation, x, index);
    case 'Reshape': return explainCopy(x[0], index);
    case 'Pad': return explainPad(operation, x, index);
    case 'Slice': return explainSlice(operation, x, index);
    case 'Lookup': return explainLookup(operation, x, index);
    default: return explainLayer(operation, x, index);
  }
}
