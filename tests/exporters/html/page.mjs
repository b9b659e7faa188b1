// Runs the JavaScript of an exported page (miniqat export --format html) in Node, without its view:
//
//   node page.mjs --list FILE      a line "PAGE PICTURES COUNT OUT" for each of many runs
//
// PICTURES holds COUNT examples of raw bytes. OUT gets, for each model of the page and each picture, all tensors of the
// model in their order. Compares the first page's rounding with BigInt, and some numbers of every operation and its
// accumulators with what the page explains of them. Prints a JSON line about each run; exit status 1 with a line on stderr
// when something is wrong.

import fs from 'node:fs';

const SCRIPTS = ['arithmetic.js', 'model_file.js', 'engine.js', 'explain.js'];

/** What stands in a script element of the page. */
function scriptText(html, id) {
  const begin = html.match(new RegExp(`<script [^>]*id="${id}">`));
  if (!begin) throw new Error(`the page has no script ${id}`);
  const from = begin.index + begin[0].length;
  return html.slice(from, html.indexOf('</script>', from));
}

/** The functions of the page, in a scope of their own. (A context of node:vm is several times slower.) */
function load(html) {
  const scripts = SCRIPTS.map((id) => scriptText(html, id)).join('\n');
  return new Function(`${scripts}
return {roundedProduct, requantize, bytesOfBase64, readModel, runModel, explain};`)();
}

/** A pseudo-random generator of 32-bit integers (xorshift). */
function generator(state) {
  return () => {
    state ^= state << 13, state ^= state >>> 17, state ^= state << 5;
    return state;
  };
}

function checkRounding({roundedProduct, requantize}) {
  const random = generator(7);
  const sums = [0, 1, -1, 0xffff, 0x10000, -0x10000, 2 ** 31 - 1, -(2 ** 31)];
  const mantissas = [0, 2 ** 30, 2 ** 31 - 1, 2 ** 30 + 2 ** 16];
  for (let i = 0; i < 40; ++i) sums.push(random() >> (random() & 31)), mantissas.push(2 ** 30 + (random() >>> 2));
  for (let shift = 1; shift <= 62; ++shift)
    for (const mantissa of mantissas)
      for (const sum of sums) {
        const exact = (BigInt(sum) * BigInt(mantissa) + (1n << BigInt(shift - 1))) >> BigInt(shift);
        const found = roundedProduct(sum, mantissa, shift);
        const what = `${sum} * ${mantissa} >> ${shift}`;
        if (exact > -(2n ** 53n) && exact < 2n ** 53n && BigInt(found) !== exact)
          throw new Error(`${what} is ${exact}, not ${found}`);
        const place = exact + 100n, integer = place < 3n ? 3 : place > 250n ? 250 : Number(place);
        if (requantize(sum, {mantissa, shift}, 100, [3, 250]) !== integer) throw new Error(`${what} is not at ${integer}`);
      }
}

/** How many numbers of each operation are explained. */
const EXPLAINED = 12;

function checkExplanations({explain}, model, {tensors, sums}, random) {
  model.operations.forEach((operation, i) => {
    const y = tensors[operation.output.index], x = operation.inputs.map((input) => tensors[input.index]);
    for (let k = 0; k < EXPLAINED; ++k) {
      const index = (random() >>> 0) % y.length, story = explain(operation, x, index);
      const integer = story.steps.at(-1).value;
      if (integer !== y[index]) throw new Error(`${operation.name} [${index}] is ${y[index]}, explained as ${integer}`);
      if (story.sum !== sums[i]?.[index])
        throw new Error(`${operation.name} [${index}] has the sum ${sums[i]?.[index]}, explained as ${story.sum}`);
    }
  });
}

function run([pageFile, picturesFile, countText, outFile], isFirst) {
  const html = fs.readFileSync(pageFile, 'utf8'), page = load(html);
  const data = JSON.parse(scriptText(html, 'data')), count = Number(countText);
  const bytes = fs.readFileSync(picturesFile), size = bytes.length / count;
  const random = generator(5), out = [];
  if (isFirst) checkRounding(page);
  const start = performance.now();
  for (const entry of data.models) {
    const model = page.readModel(page.bytesOfBase64(entry.model));
    for (let i = 0; i < count; ++i) {
      const picture = Uint8Array.from(bytes.subarray(i * size, (i + 1) * size));
      const result = page.runModel(model, entry.input_from_byte ? picture.map((byte) => entry.input_from_byte[byte]) : picture);
      out.push(...result.tensors);
      if (i < 3) checkExplanations(page, model, result, random);
    }
  }
  fs.writeFileSync(outFile, Buffer.concat(out));
  console.log(JSON.stringify({models: data.models.length, pictures: count, seconds: (performance.now() - start) / 1000}));
}

try {
  fs.readFileSync(process.argv[3], 'utf8').trim().split('\n').forEach((line, i) => run(line.split(' '), i === 0));
} catch (error) {
  console.error(`page.mjs: ${error.message.split('\n')[0]}`);
  process.exit(1);
}
