// Runs ONNX models in ONNX Runtime (npm's onnxruntime-node):
//
//   node onnxruntime.mjs MODEL IMAGES COUNT OUT [--threads N] [--batch N] [--optimized DIR]
//   node onnxruntime.mjs --list FILE ...      a line "MODEL IMAGES COUNT OUT" for each of many runs
//
// IMAGES holds COUNT examples, raw uint8 integers or float32 numbers, as the model takes. OUT gets the outputs of all, raw float32 (little-endian). Prints one
// JSON line for each run; its "seconds" are those of inference alone, after a run to warm up. DIR gets the graph that
// the runtime made of a model, under the model's file name. Exit status 1 with a line on stderr when something is
// wrong, 77 when onnxruntime-node is not installed.

import {readFile, writeFile} from 'node:fs/promises';
import path from 'node:path';
import {parseArgs} from 'node:util';

const FAILED = 1;
const NOT_INSTALLED = 77;
// On CPUs without VNNI the runtime adds two products in 16 bits, which overflow with int8 weights, unless it is told to
// be exact.
const EXACT = {session: {x64quantprecision: '1'}};
const LOG_FATAL_ONLY = 4;

class Failure extends Error {}

function positive(text, what) {
  if (!/^[1-9][0-9]{0,8}$/.test(text)) throw new Failure(`${what} is a positive number, not "${text}"`);
  return Number(text);
}

function runOf([model, images, count, out, ...more]) {
  if (out === undefined || more.length > 0) throw new Failure('MODEL IMAGES COUNT OUT are needed, and no more');
  return {model, images, count: positive(count, 'COUNT'), out};
}

async function commandLine() {
  const {values, positionals} = parseArgs({
    allowPositionals: true,
    options: {
      list: {type: 'string'},
      threads: {type: 'string', default: '1'},
      batch: {type: 'string', default: '64'},
      optimized: {type: 'string'},
    },
  });
  const lines = values.list ? (await readFile(values.list, 'utf8')).split('\n').filter((line) => line) : [];
  return {
    runs: values.list ? lines.map((line) => runOf(line.split(' '))) : [runOf(positionals)],
    threads: positive(values.threads, '--threads'),
    batch: positive(values.batch, '--batch'),
    optimized: values.optimized,
  };
}

async function loadRuntime() {
  // Its telemetry, switched on by default, leaves files in the user's cache and looks up its maker's host.
  process.env.ORT_DISABLE_TELEMETRY = '1';
  try {
    return (await import('onnxruntime-node')).default;
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    console.error('onnxruntime.mjs: onnxruntime-node is not installed; scripts/install-runtimes does that');
    process.exit(NOT_INSTALLED);
  }
}

/** Name and shape of a model's one input or output, and how many numbers an example has. */
function only(names, metadata, what, ...types) {
  if (names.length !== 1) throw new Failure(`the model has ${names.length} ${what}s, not one`);
  const [info] = metadata;
  if (!types.includes(info.type)) throw new Failure(`the model's ${what} is ${info.type}, not ${types.join(' or ')}`);
  const extents = info.shape.slice(1);
  if (!extents.every(Number.isInteger)) throw new Failure(`the model's ${what} has open extents: [${info.shape}]`);
  return {name: names[0], type: info.type, extents, size: extents.reduce((a, b) => a * b, 1)};
}

async function open(ort, model, {threads, optimized}) {
  const session = await ort.InferenceSession.create(await readFile(model), {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
    logSeverityLevel: LOG_FATAL_ONLY,
    extra: EXACT,
    ...(optimized ? {optimizedModelFilePath: path.join(optimized, path.basename(model))} : {}),
  });
  const input = only(session.inputNames, session.inputMetadata, 'input', 'uint8', 'float32');
  const output = only(session.outputNames, session.outputMetadata, 'output', 'float32');
  return {session, input, output};
}

async function perform(ort, {model, images, count, out}, {batch, ...settings}) {
  const {session, input, output} = await open(ort, model, settings);
  const bytes = Uint8Array.from(await readFile(images));
  const Elements = input.type === 'uint8' ? Uint8Array : Float32Array;
  const needed = count * input.size * Elements.BYTES_PER_ELEMENT;
  if (bytes.length !== needed)
    throw new Failure(`${images} has ${bytes.length} bytes; ${count} examples of ${input.size} take ${needed}`);
  const numbers = new Elements(bytes.buffer);

  const infer = async (first, n) => {
    const slice = numbers.subarray(first * input.size, (first + n) * input.size);
    const feeds = {[input.name]: new ort.Tensor(input.type, slice, [n, ...input.extents])};
    return (await session.run(feeds))[output.name].data;
  };
  await infer(0, Math.min(batch, count));

  const outputs = new Float32Array(count * output.size);
  const start = process.hrtime.bigint();
  for (let first = 0; first < count; first += batch)
    outputs.set(await infer(first, Math.min(batch, count - first)), first * output.size);
  const seconds = Number(process.hrtime.bigint() - start) / 1e9;

  await writeFile(out, new Uint8Array(outputs.buffer));
  console.log(JSON.stringify({
    runtime: 'onnxruntime',
    version: ort.env.versions.node ?? ort.env.versions.common,
    dtype: 'float32',
    outputs_per_example: output.size,
    seconds,
  }));
}

try {
  const ort = await loadRuntime();
  const {runs, ...settings} = await commandLine();
  for (const run of runs) await perform(ort, run, settings);
} catch (error) {
  console.error(`onnxruntime.mjs: ${error.message.replace(/\s*\n\s*/g, ' ')}`);
  process.exit(FAILED);
}
