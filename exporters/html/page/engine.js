'use strict';
// Every operation of integer models in plain loops on one picture, as docs/integer-model.md defines them. x are the bytes
// of the inputs, y those of the output; images are [height, width, channels], the channel last. What an operation sums up
// before it requantizes, it also leaves in `sums`, for those who look.

function elements(shape) {
  return shape.reduce((product, extent) => product * extent, 1);
}

/** Calls visit(output pixel, tap, input pixel) wherever the window of an operation does not lie on padding. */
function forEachTap(operation, visit) {
  const [inputHeight, inputWidth] = operation.inputs[0].shape;
  // A pool over the whole image has an output without height and width.
  const [outputHeight, outputWidth] = operation.output.shape.length === 3 ? operation.output.shape : [1, 1];
  const [windowHeight, windowWidth] = operation.window;
  const [rowStride, columnStride] = operation.strides;
  const [rowDilation, columnDilation] = operation.dilations;
  const [[top], [left]] = operation.paddings;
  for (let oy = 0; oy < outputHeight; ++oy)
    for (let ox = 0; ox < outputWidth; ++ox)
      for (let ky = 0; ky < windowHeight; ++ky) {
        const iy = oy * rowStride - top + ky * rowDilation;
        if (iy < 0 || iy >= inputHeight) continue;
        for (let kx = 0; kx < windowWidth; ++kx) {
          const ix = ox * columnStride - left + kx * columnDilation;
          if (ix < 0 || ix >= inputWidth) continue;
          visit(oy * outputWidth + ox, ky * windowWidth + kx, iy * inputWidth + ix);
        }
      }
}

function requantizeLayer(layer, sums, y) {
  const channels = layer.bias.length;
  for (let i = 0; i < y.length; ++i)
    y[i] = requantize(sums[i], layer.multiplier(i % channels), layer.output.zero_point, layer.clamp);
}

/** Adds `count` inputs times their weights, a row of output channels for each, to one output pixel's sums. */
function addProducts(layer, x, from, count, firstWeight, sums, to) {
  const {units} = layer, channels = layer.bias.length, zeroPoint = layer.inputs[0].zero_point;
  for (let i = 0; i < count; ++i) {
    const value = x[from + i] - zeroPoint;
    if (value === 0) continue;
    const row = firstWeight + i * channels;
    for (let o = 0; o < channels; ++o) sums[to + o] += value * units[row + o];
  }
}

function runConvolution(layer, [x], y, sums) {
  const [, , inputs, channels] = layer.filter;
  for (let i = 0; i < y.length; ++i) sums[i] = layer.bias[i % channels];
  forEachTap(layer, (output, tap, input) =>
      addProducts(layer, x, input * inputs, inputs, tap * inputs * channels, sums, output * channels));
  requantizeLayer(layer, sums, y);
}

function runDepthwise(layer, [x], y, sums) {
  const {units} = layer, [, , inputs, multiplicity] = layer.filter;
  const channels = inputs * multiplicity, zeroPoint = layer.inputs[0].zero_point;
  for (let i = 0; i < y.length; ++i) sums[i] = layer.bias[i % channels];
  forEachTap(layer, (output, tap, input) => {
    for (let i = 0; i < inputs; ++i) {
      const value = x[input * inputs + i] - zeroPoint;
      for (let o = i * multiplicity; o < (i + 1) * multiplicity; ++o)
        sums[output * channels + o] += value * units[tap * channels + o];
    }
  });
  requantizeLayer(layer, sums, y);
}

function runFullyConnected(layer, [x], y, sums) {
  sums.set(layer.bias);
  addProducts(layer, x, 0, x.length, 0, sums, 0);
  requantizeLayer(layer, sums, y);
}

function runAdd({inputs: [a, b], output, multipliers, clamp}, [xa, xb], y, sums) {
  const [ma, mb] = multipliers.mantissas;
  for (let i = 0; i < y.length; ++i) {
    sums[i] = (xa[i] - a.zero_point) * ma + (xb[i] - b.zero_point) * mb;
    y[i] = requantizeShort(sums[i], multipliers.shift, output.zero_point, clamp);
  }
}

/** Where a tensor of `shape` has what belongs to number i of one of shape `stretched`: an axis of 1 has one place. */
function stretchedPlace(i, stretched, shape) {
  let place = 0, stride = 1;
  for (let axis = stretched.length - 1; axis >= 0; --axis) {
    if (shape[axis] !== 1) place += (i % stretched[axis]) * stride;
    i = Math.floor(i / stretched[axis]);
    stride *= shape[axis];
  }
  return place;
}

function runMul({inputs: [a, b], output, multiplier, clamp}, [xa, xb], y, sums) {
  for (let i = 0; i < y.length; ++i) {
    sums[i] = (xa[stretchedPlace(i, output.shape, a.shape)] - a.zero_point) *
        (xb[stretchedPlace(i, output.shape, b.shape)] - b.zero_point);
    y[i] = requantize(sums[i], multiplier, output.zero_point, clamp);
  }
}

function runRescale({inputs: [input], output, multiplier, clamp}, [x], y, sums) {
  for (let i = 0; i < y.length; ++i) {
    sums[i] = x[i] - input.zero_point;
    y[i] = requantize(sums[i], multiplier, output.zero_point, clamp);
  }
}

/** Where the integers of a Concat's inputs go: visit(input, place in it, place in the output). */
function forEachPiece({inputs, output, axis}, visit) {
  const blocks = elements(output.shape.slice(0, axis)), inner = elements(output.shape.slice(axis + 1));
  const row = output.shape[axis] * inner;
  let first = 0;
  inputs.forEach((input, k) => {
    const piece = input.shape[axis] * inner;
    for (let block = 0; block < blocks; ++block)
      for (let i = 0; i < piece; ++i) visit(k, block * piece + i, block * row + first + i);
    first += piece;
  });
}

function runConcat(operation, x, y, sums) {
  const {inputs, output, multipliers, clamp} = operation;
  forEachPiece(operation, (k, from, to) => {
    sums[to] = x[k][from] - inputs[k].zero_point;
    y[to] = requantize(sums[to], multipliers[k], output.zero_point, clamp);
  });
}

function runAveragePool(operation, [x], y, sums) {
  const {inputs: [input], output, multipliers, clamp} = operation;
  const channels = input.shape[2], counts = new Int32Array(y.length / channels);
  sums.fill(0);
  forEachTap(operation, (to, tap, from) => {
    ++counts[to];
    for (let c = 0; c < channels; ++c) sums[to * channels + c] += x[from * channels + c] - input.zero_point;
  });
  for (let i = 0; i < y.length; ++i)
    y[i] = requantize(sums[i], multipliers[counts[Math.floor(i / channels)] - 1], output.zero_point, clamp);
}

function runMaxPool(operation, [x], y) {
  const channels = operation.inputs[0].shape[2];
  y.fill(0);
  forEachTap(operation, (to, tap, from) => {
    for (let c = 0; c < channels; ++c)
      y[to * channels + c] = Math.max(y[to * channels + c], x[from * channels + c]);
  });
}

function runReshape(operation, [x], y) {
  y.set(x);
}

/** Place i of a tensor with shape `from`, whose every index becomes start + index * step of the shape `to`. */
function movedPlace(i, from, to, starts, steps) {
  let place = 0, stride = 1;
  for (let axis = from.length - 1; axis >= 0; --axis) {
    place += (starts[axis] + (i % from[axis]) * steps[axis]) * stride;
    i = Math.floor(i / from[axis]);
    stride *= to[axis];
  }
  return place;
}

function runPad({inputs: [input], output, paddings}, [x], y) {
  y.fill(output.zero_point);
  const before = paddings.map(([first]) => first), steps = paddings.map(() => 1);
  for (let i = 0; i < x.length; ++i) y[movedPlace(i, input.shape, output.shape, before, steps)] = x[i];
}

function runSlice({inputs: [input], output, starts, steps}, [x], y) {
  for (let i = 0; i < y.length; ++i) y[i] = x[movedPlace(i, output.shape, input.shape, starts, steps)];
}

function runLookup({table}, [x], y) {
  for (let i = 0; i < y.length; ++i) y[i] = table[Math.min(x[i], table.length - 1)];
}

const OPERATIONS = {
  Conv2D: runConvolution,
  DepthwiseConv2d: runDepthwise,
  FullyConnected: runFullyConnected,
  Add: runAdd,
  Mul: runMul,
  Rescale: runRescale,
  Concat: runConcat,
  AveragePool: runAveragePool,
  MaxPool: runMaxPool,
  Reshape: runReshape,
  Pad: runPad,
  Slice: runSlice,
  Lookup: runLookup,
};

/** Operations without a sum: they move, compare or look up integers. */
const SUMLESS = new Set(['MaxPool', 'Reshape', 'Pad', 'Slice', 'Lookup']);

/**
 * Runs a model on one picture, integers of its input's grid. Returns `tensors`, the bytes of each of the model's, and
 * `sums`, the accumulators of each operation (null without).
 */
function runModel(model, picture) {
  const tensors = model.tensors.map((tensor) => tensor === model.input ? picture : new Uint8Array(elements(tensor.shape)));
  const sums = model.operations.map((operation) => {
    const y = tensors[operation.output.index];
    const accumulators = SUMLESS.has(operation.type) ? null : new Int32Array(y.length);
    OPERATIONS[operation.type](operation, operation.inputs.map((input) => tensors[input.index]), y, accumulators);
    return accumulators;
  });
  return {tensors, sums};
}

/** The place of the largest integer, the first of several. */
function largest(values) {
  return values.reduce((best, value, i) => value > values[best] ? i : best, 0);
}
