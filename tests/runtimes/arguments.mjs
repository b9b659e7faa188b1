// What all judges share: their command line and their ways of ending.

export class Failure extends Error {}

const EXIT_FAILED = 1;
const EXIT_NOT_INSTALLED = 77;

// Runs main() and ends the process: 1 with one line on stderr when something is wrong, 77 when the runtime's package is
// not installed.
export async function run(name, main) {
  try {
    await main();
  } catch (error) {
    const missing = error.code === 'ERR_MODULE_NOT_FOUND';
    const text = missing ? `${error.message.split('\n')[0]}; scripts/install-runtimes installs it` : error.message;
    process.stderr.write(`${name}: ${text.replace(/\s*\n\s*/g, ' ')}\n`);
    process.exit(missing ? EXIT_NOT_INSTALLED : EXIT_FAILED);
  }
}

export function positive(text, what) {
  if (!/^[1-9][0-9]{0,8}$/.test(text ?? '')) throw new Failure(`${what} is a positive number, not "${text ?? ''}"`);
  return Number(text);
}

// MODEL IMAGES COUNT OUT, and options with a value each, by name: {threads: 1} has a default and takes `--threads N`.
export function parse(argv, options) {
  const places = [];
  const values = {...options};
  for (let i = 0; i < argv.length; ++i) {
    const key = argv[i].startsWith('--') ? argv[i].slice(2) : undefined;
    if (key === undefined) {
      places.push(argv[i]);
    } else if (!(key in options)) {
      throw new Failure(`no option ${argv[i]}`);
    } else {
      const value = argv[++i];
      if (value === undefined) throw new Failure(`--${key} takes a value`);
      values[key] = typeof options[key] === 'number' ? positive(value, `--${key}`) : value;
    }
  }
  if (places.length !== 4) throw new Failure('usage: MODEL IMAGES COUNT OUT [--option value ...]');
  const [model, images, count, out] = places;
  return {model, images, count: positive(count, 'COUNT'), out, ...values};
}

// The bytes of `count` examples of `size` bytes each.
export function examplesOf(bytes, path, count, size) {
  if (bytes.length !== count * size)
    throw new Failure(`${path} has ${bytes.length} bytes; ${count} examples of ${size} take ${count * size}`);
  return bytes;
}
