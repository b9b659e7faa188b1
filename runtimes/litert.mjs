// Runs a TensorFlow Lite model in LiteRT (npm's @litertjs/core, the WebAssembly build):
//
//   node litert.mjs MODEL IMAGES COUNT OUT [--input-scale S --input-zero-point Z]
//   node litert.mjs --list FILE      a line "MODEL IMAGES COUNT OUT" for each of many runs
//
// IMAGES holds COUNT examples of raw uint8 integers. OUT gets the raw outputs of all: bytes of a model with uint8 or
// int8 output, float32 (little-endian) of one with float output. The integers of an int8 model are 128 less than ours,
// its input's (subtracted here) as well as its output's. A model with float input needs scale and zero point, to make
// the numbers that the integers stand for. Prints one JSON line about the run; exit status 1 with a line on stderr
// when something is wrong, 77 when @litertjs/core is not installed.

import fs from 'node:fs';
import {createRequire} from 'node:module';
import path from 'node:path';
import vm from 'node:vm';
import {parseArgs} from 'node:util';

const NOT_INSTALLED = 77;
const WASM_CPU = 'wasm';

/** The package is written for browsers: it loads its scripts as a worker does and looks for a `self`. */
function pretendToBeAWorker(directory) {
  const require = createRequire(path.join(directory, 'loader.js'));
  globalThis.self = globalThis;
  globalThis.importScripts = (script) => {
    Object.assign(globalThis, {require, __dirname: path.dirname(script), __filename: script});
    vm.runInThisContext(fs.readFileSync(script, 'utf8'), {filename: script});
  };
}

async function loadRuntime() {
  const require = createRequire(import.meta.url);
  let manifest;
  try {
    manifest = require.resolve('@litertjs/core/package.json');
  } catch {
    console.error('litert.mjs: @litertjs/core is not installed; scripts/install-runtimes does that');
    process.exit(NOT_INSTALLED);
  }
  const directory = path.join(path.dirname(manifest), 'wasm');
  pretendToBeAWorker(directory);
  const {loadLiteRt} = await import('@litertjs/core');
  // The runtime logs a lot; what it has to say of a failure is the last error.
  const print = console.error;
  const log = [];
  console.warn = console.error = (...words) => log.push(words.join(' '));
  const runtime = await loadLiteRt(directory);
  console.error = print;
  const lastError = () => log.findLast((line) => line.startsWith('ERROR'));
  return {runtime, lastError, version: JSON.parse(fs.readFileSync(manifest, 'utf8')).version};
}

/** A model compiled for the CPU. The package's own classes know no int8, so this speaks to what is below them. */
class Model {
  constructor(runtime, bytes) {
    this.wasm = runtime.liteRtWasm;
    this.environment = runtime.getDefaultEnvironment().liteRtEnvironment;
    this.data = this.wasm._malloc(bytes.length);
    this.wasm.HEAPU8.set(bytes, this.data);
    this.model = this.wasm.loadModel(this.environment, this.data, bytes.length);
    this.compiled = this.wasm.compileModel(this.environment, this.model,
                                           {accelerator: WASM_CPU, cpuOptions: {numThreads: 1}});
    this.inputType = this.model.getInputTensorType(0, 0);
    this.outputType = this.model.getOutputTensorType(0, 0);
    this.input = this.wasm.LiteRtTensorBuffer.createManaged(
        this.environment, this.wasm.LiteRtTensorBufferType.HOST_MEMORY, this.inputType, this.inputType.bytes());
  }

  dtypeOf(type) {
    const names = {1: 'float32', 3: 'uint8', 9: 'int8'};
    const element = type.elementType().value;
    if (!(element in names)) throw new Error(`the model has tensors of LiteRT's element type ${element}`);
    return names[element];
  }
  get inputDtype() { return this.dtypeOf(this.inputType); }
  get outputDtype() { return this.dtypeOf(this.outputType); }
  get inputBytes() { return this.inputType.bytes(); }
  get outputBytes() { return this.outputType.bytes(); }

  run(bytes, output) {
    const {READ, WRITE} = this.wasm.LiteRtTensorBufferLockMode;
    this.wasm.HEAPU8.set(bytes, this.input.lock(WRITE));
    this.input.unlock();
    const results = this.compiled.run(0, [this.input]);
    const data = results[0].lock(READ);
    output.set(this.wasm.HEAPU8.subarray(data, data + output.length));
    results[0].unlock();
    for (const result of results) result.delete();
  }
  delete() {
    for (const part of [this.input, this.inputType, this.outputType, this.compiled, this.model]) part.delete();
    this.wasm._free(this.data);
  }
}

/** Our integers as the bytes that the model takes. */
function converter(model, options) {
  if (model.inputDtype === 'uint8') return (integers) => integers;
  if (model.inputDtype === 'int8') return (integers) => integers.map((q) => q ^ 0x80);
  const scale = Number(options['input-scale']), zeroPoint = Number(options['input-zero-point']);
  if (!(scale > 0) || !Number.isInteger(zeroPoint))
    throw new Error('the model takes float32: give --input-scale and --input-zero-point');
  return (integers) => new Uint8Array(Float32Array.from(integers, (q) => (q - zeroPoint) * scale).buffer);
}

function runModel({runtime, version}, [modelFile, imagesFile, countText, outFile], options) {
  const count = Number(countText);
  if (!Number.isInteger(count) || count < 1) throw new Error(`COUNT is ${countText}`);
  const bytes = fs.readFileSync(modelFile);
  const images = fs.readFileSync(imagesFile);
  const model = new Model(runtime, bytes);
  const convert = converter(model, options);
  const pixels = model.inputBytes / (model.inputDtype === 'float32' ? 4 : 1);
  if (images.length !== count * pixels)
    throw new Error(`${imagesFile} has ${images.length} bytes; ${count} examples of ${pixels} have ${count * pixels}`);

  const outputs = new Uint8Array(count * model.outputBytes);
  model.run(convert(images.subarray(0, pixels)), outputs.subarray(0, model.outputBytes));  // Warms up.
  const start = performance.now();
  for (let i = 0; i < count; ++i)
    model.run(convert(images.subarray(i * pixels, (i + 1) * pixels)),
              outputs.subarray(i * model.outputBytes, (i + 1) * model.outputBytes));
  const seconds = (performance.now() - start) / 1000;
  fs.writeFileSync(outFile, outputs);
  console.log(JSON.stringify({
    runtime: 'LiteRT',
    version,
    dtype: model.outputDtype,
    outputs_per_example: model.outputBytes / (model.outputDtype === 'float32' ? 4 : 1),
    seconds,
  }));
  model.delete();
}

async function main() {
  const {positionals, values} = parseArgs({
    allowPositionals: true,
    options: {
      'input-scale': {type: 'string'},
      'input-zero-point': {type: 'string'},
      list: {type: 'string'},
    },
  });
  if (positionals.length !== (values.list ? 0 : 4))
    throw new Error('usage: litert.mjs MODEL IMAGES COUNT OUT, or litert.mjs --list FILE');
  const runs = values.list ? fs.readFileSync(values.list, 'utf8').trim().split('\n').map((line) => line.split(' '))
                           : [positionals];
  const loaded = await loadRuntime();
  for (const run of runs) {
    try {
      runModel(loaded, run, values);
    } catch (error) {
      const reason = error instanceof Error ? error.message : loaded.lastError() ?? 'LiteRT failed';
      throw new Error(`${run[0]}: ${reason}`);
    }
  }
}

main().catch((error) => {
  console.error(`litert.mjs: ${error.message.split('\n')[0]}`);
  process.exit(1);
});
