// ONNX Runtime's side of bench-integer (peer_side.py): node onnxruntime_side.mjs MODEL BATCH THREADS
//
// Prints "ready BATCH" and then, for each line "go N" on standard input, the seconds of N runs of a model of uint8 on a
// batch of noise. The runtime is that of runtimes/, with the settings of runtimes/onnxruntime.mjs.

import {createRequire} from 'node:module';
import {createInterface} from 'node:readline';

const [model, batch, threads] = process.argv.slice(2);
process.env.ORT_DISABLE_TELEMETRY = '1';
const ort = createRequire(new URL('../runtimes/', import.meta.url))('onnxruntime-node');
const session = await ort.InferenceSession.create(model, {
  intraOpNumThreads: Number(threads),
  interOpNumThreads: 1,
  executionMode: 'sequential',
  graphOptimizationLevel: 'all',
  extra: {session: {x64quantprecision: '1'}},
});
const shape = [Number(batch), ...session.inputMetadata[0].shape.slice(1)];
const noise = Uint8Array.from({length: shape.reduce((a, b) => a * b)}, () => Math.random() * 256);
const feeds = {[session.inputNames[0]]: new ort.Tensor('uint8', noise, shape)};
for (let i = 0; i < 3; ++i) await session.run(feeds);
console.log(`ready ${batch}`);
for await (const line of createInterface({input: process.stdin})) {
  const start = process.hrtime.bigint();
  for (let i = Number(line.replace('go ', '')); i > 0; --i) await session.run(feeds);
  console.log(Number(process.hrtime.bigint() - start) / 1e9);
}
