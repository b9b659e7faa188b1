// Runs an ONNX model on images in ONNX Runtime:
//
//   node tests/runtimes/onnxruntime.mjs MODEL IMAGES COUNT OUT [--threads N] [--batch N] [--optimized FILE]
//
// IMAGES holds COUNT examples, raw uint8. Their outputs go to OUT, raw float32. Prints a line of JSON whose "seconds" are
// those of inference alone, after a run to warm up. FILE gets the graph that the runtime made of the model.

import {readFile, writeFile} from 'node:fs/promises';
import {Failure, examplesOf, parse, run} from './arguments.mjs';

// Without VNNI, weights of int8 overflow 16 bits in the runtime's sums of two products unless it is told to be exact.
const EXACT = {session: {x64quantprecision: '1'}};
const LOG_ERRORS_ONLY = 3;

// The one of a session's inputs or outputs, with how many numbers an example has.
function only(names, metadata, what, type) {
  if (names.length !== 1) throw new Failure(`the model has ${names.length} ${what}s, not one`);
  const [info] = metadata;
  if (info.type !== type) throw new Failure(`the model's ${what} is ${info.type}, not ${type}`);
  const extents = info.shape.slice(1);
  if (!extents.every(Number.isInteger)) throw new Failure(`the model's ${what} has open extents: [${info.shape}]`);
  return {name: names[0], extents, size: extents.reduce((a, b) => a * b, 1)};
}

await run('onnxruntime', async () => {
  const ort = (await import('onnxruntime-node')).default;
  const {model, images, count, out, threads, batch, optimized} =
      parse(process.argv.slice(2), {threads: 1, batch: 64, optimized: ''});
  const session = await ort.InferenceSession.create(await readFile(model), {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
    logSeverityLevel: LOG_ERRORS_ONLY,
    extra: EXACT,
    ...(optimized ? {optimizedModelFilePath: optimized} : {}),
  });
  const input = only(session.inputNames, session.inputMetadata, 'input', 'uint8');
  const output = only(session.outputNames, session.outputMetadata, 'output', 'float32');
  const bytes = examplesOf(await readFile(images), images, count, input.size);

  const infer = async (first, n) => {
    const slice = new Uint8Array(bytes.buffer, bytes.byteOffset + first * input.size, n * input.size);
    const feeds = {[input.name]: new ort.Tensor('uint8', slice, [n, ...input.extents])};
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
});
