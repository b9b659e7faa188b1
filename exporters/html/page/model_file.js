'use strict';
// Reads model.miniqat (docs/integer-model.md), which the page holds in base64. The exporter has checked the model.

function bytesOfBase64(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/** `count` integers of `bits` bits from a stream of them, the lowest bits of a byte first. */
function unpacked(bytes, count, bits) {
  const values = new Uint8Array(count);
  let buffer = 0, available = 0, next = 0;
  for (let i = 0; i < count; ++i) {
    if (available < bits) {
      buffer |= bytes[next++] << available;
      available += 8;
    }
    values[i] = buffer & ((1 << bits) - 1);
    buffer >>= bits;
    available -= bits;
  }
  return values;
}

/** The numbers of a LIST: a typed array. */
function numbersAt({type, offset, count}, blob) {
  if (type === 'int32' || type === 'float32') {
    const view = new DataView(blob.buffer, blob.byteOffset + offset, 4 * count);
    const numbers = type === 'int32' ? new Int32Array(count) : new Float32Array(count);
    for (let i = 0; i < count; ++i)
      numbers[i] = type === 'int32' ? view.getInt32(4 * i, true) : view.getFloat32(4 * i, true);
    return numbers;
  }
  return unpacked(blob.subarray(offset), count, Number(type.slice('uint'.length)));
}

function isList(value) {
  return value !== null && typeof value === 'object' && 'offset' in value && 'type' in value && 'count' in value;
}

/** {mantissas, shifts} as a list of {mantissa, shift}; those of an Add, which share their shift, stay as they are. */
function multipliersOf({mantissas, shifts}) {
  return Array.from(mantissas, (mantissa, i) => ({mantissa, shift: shifts[i]}));
}

/** What the loops need of a layer beside its file: weights in units, less their zero points. */
function prepareLayer(layer) {
  const count = layer.bias.length;
  const perChannel = layer.weight_scales.length > 1;
  layer.weightShift = Math.max(0, 7 - layer.weight_bits);
  layer.weightZeroPoint = (channel) => layer.weight_zero_points[perChannel ? channel : 0];
  layer.multiplier = (channel) => layer.multipliers[perChannel ? channel : 0];
  layer.units = Int16Array.from(
      layer.weights, (weight, i) => (weight - layer.weightZeroPoint(i % count)) * 2 ** layer.weightShift);
}

/** A model whose operations name the tensors' objects: {name, shape, scale, zero_point, bits, index}. */
function readModel(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const headerSize = view.getUint32(12, true);
  const blob = bytes.subarray(24 + headerSize, bytes.length - 4);
  const header = new TextDecoder().decode(bytes.subarray(24, 24 + headerSize));
  const model = JSON.parse(header, (key, value) => isList(value) ? numbersAt(value, blob) : value);
  const byName = new Map(model.tensors.map((tensor, index) => [tensor.name, Object.assign(tensor, {index})]));
  model.input = byName.get(model.input);
  model.output = byName.get(model.output);
  for (const operation of model.operations) {
    operation.inputs = operation.inputs.map((name) => byName.get(name));
    operation.output = byName.get(operation.output);
    if (operation.multipliers?.shifts) operation.multipliers = multipliersOf(operation.multipliers);
    if (operation.weights) prepareLayer(operation);
  }
  return model;
}
