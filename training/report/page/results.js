'use strict';
// The result of a run in one line and one table, how it was made, and runs side by side.

const rowOf = (run, name) => run.results.find((row) => row.name === name);
const ownRow = (run) => run.results.find((row) => row.is_run);
const answersOf = (run, name) => run.answers.find((answers) => answers.name === name);
/** The run at its end: integers if there are some. */
const lastAnswers = (run) => run.answers.at(-1);

/** What decides which of two networks is better: accuracy, or what else the task measures. */
const mainMeasure = (run) => run.measures[0];
const measureName = ({name}) => name.replace('^2', '²');
const valueText = ({is_share: isShare}, value) => !known(value) ? MISSING : isShare ? percent(value) : real(value, 4);
/** The figure that may be shown of a row: that of the test part if it is known. */
const measuredOf = (run, row) => row?.[`test_${mainMeasure(run).key}`] ?? row?.[`validation_${mainMeasure(run).key}`] ?? null;
const partOf = (run, row) => known(row?.[`test_${mainMeasure(run).key}`]) ? 'test' : 'validation';
/** The figure of a network that has answered for the page. */
const measured = (run, answers) => answers?.measures?.[mainMeasure(run).key] ?? null;
/** Behind a figure that is not one of all pictures. */
const ofFirst = (row) => known(row?.first_examples) ? ` (first ${whole(row.first_examples)})` : '';
/** "10,000 test pictures", "first 500 of 10,000 test pictures": those that the networks have answered for the page. */
const answered = (run, {examples}) => (examples < run.part_examples ? `first ${whole(examples)} of ` : '') + counted(Math.max(examples, run.part_examples ?? 0), `${run.part} ${run.noun}`);

/** Of a path its last part. */
const lastPart = (path) => path.split('/').at(-1);
const counted = (number, thing) => `${whole(number)} ${thing}${number === 1 ? '' : 's'}`;

function headline(run) {
  const {listed} = run, last = lastAnswers(run), row = last ? rowOf(run, last.name) : ownRow(run), inFloat = rowOf(run, 'float');
  const measure = mainMeasure(run), value = measured(run, last) ?? measuredOf(run, row);
  const words = [`${lastPart(listed.model)} ${listed.quantization} on ${lastPart(listed.dataset)}: `];
  if (!known(value)) return `${words[0]}no ${measureName(measure)} yet`;
  const part = `the ${last && last.examples < run.part_examples ? answered(run, last) : `${last ? run.part : partOf(run, row)} ${run.noun}s`}`;
  words.push(run.task === 'classify' ? `${percent(value)} of ${part}` : `${measureName(measure)} ${valueText(measure, value)} on ${part}`);
  if (last?.name === 'integers') words.push(' in integers');
  const before = inFloat && inFloat !== row ? measured(run, answersOf(run, 'float')) ?? measuredOf(run, inFloat) : null;
  if (known(before)) words.push(`, ${valueText(measure, before)} in float`);
  if (known(row?.parameter_bytes)) {
    words.push(`; ${bytes(row.parameter_bytes)} of parameters`);
    if (known(inFloat?.parameter_bytes) && inFloat !== row) words.push(` instead of ${bytes(inFloat.parameter_bytes)}`);
  }
  return words.join('');
}

function resultTable(run) {
  const has = (key) => run.results.some((row) => known(row[key]));
  const count = (row) => {
    const answers = answersOf(run, row.name);
    if (!answers) return MISSING;
    // The accuracy beside it may be a recorded one, of all pictures.
    return `${whole(answers.correct)} of ${answers.examples < run.part_examples ? 'the first ' : ''}${whole(answers.examples)}`;
  };
  const hint = 'mean over the classes of their accuracies: here some classes have more than twice the pictures of others';
  const isOfClasses = run.task === 'classify', [measure, ...more] = run.measures, title = isOfClasses ? '' : `${measureName(measure)}, `;
  const columns = [
    {title: 'network', left: true, value: (row) => row.name + (row.is_run ? ' *' : '')},
    {title: `${title}test`, value: (row) => valueText(measure, row[`test_${measure.key}`]) + (run.part === 'test' ? ofFirst(row) : '')},
    {title: 'balanced', value: (row) => percent(run.part === 'validation' ? row.validation_balanced_accuracy : row.test_balanced_accuracy), hint},
    ...(isOfClasses ? [] : more.map((other) => ({title: measureName(other), value: (row) => valueText(other, row[`${run.part}_${other.key}`])}))),
    {title: 'loss', value: (row) => fixed(row.test_loss), hint: `mean ${isOfClasses ? 'cross entropy' : 'loss'} of the test ${run.noun}s`},
    {title: `${title}validation`, value: (row) => valueText(measure, row[`validation_${measure.key}`]) + (run.part === 'validation' ? ofFirst(row) : '')},
    {title: 'right', value: count, hint: `counted for this page on the ${run.part} ${run.noun}s`},
    {title: 'bytes', value: (row) => whole(row.parameter_bytes), hint: 'weights packed to their bits, and 32 bits for each bias'},
    {title: 'MACs × bits', value: (row) => short(row.bit_operations), hint: 'of one example: multiply-adds × bits of the weight × bits of the input'},
    {title: 'time', value: (row) => duration(row.seconds), hint: 'of its calibration or training'},
  ].filter((column) => column.title !== `${title}validation` || has(`validation_${measure.key}`))
    .filter((column) => column.title !== 'right' || isOfClasses)
    .filter((column) => column.title !== 'balanced' || run.answers.some((answers) => answers.has_uneven_classes));
  return [table(columns, run.results, (row) => row.is_run ? 'own' : null),
    html('p', {class: 'hint'}, `* the network in the run. bytes: weights packed to their bits, 32 bits a bias. MACs × bits: of one ${run.noun}.`,
      run.results.some(({name}) => name === 'float') && run.answers.length > 1 ? ` float: ${run.float_run ? `the run ${run.float_run}` : 'the same variables, no quantizer at work'}.` : '')];
}

/** Flags break between one another only, not behind their hyphens. */
const unbroken = (command) => command.split(' ').flatMap((word, i) => [i > 0 ? ' ' : '', html('span', {class: 'word'}, word)]);

function factsOf(run, made) {
  const {listed, summary, config} = run;
  const facts = [
    ['command', run.command ? html('code', {title: 'as it was typed'}, unbroken(run.command)) : MISSING],
    ['state', listed.state],
    ['directory', run.path],
    ['seed', String(summary?.seed ?? config.seed ?? MISSING)],
    ['steps', `${whole(summary?.steps ?? run.curves.last_step)}, batches of ${config.batch_size}, ${config.optimizer}`],
    ['made with', [known(summary?.threads) ? counted(summary.threads, 'thread') : null, known(summary?.images_per_second) ? `${whole(summary.images_per_second)} ${run.noun}s/s` : null,
      known(summary?.peak_memory_mb) ? `${whole(summary.peak_memory_mb)} MB at most` : null].filter(known).join(', ') || MISSING],
    ...(run.skipped_files ? [['skipped files', skippedFiles(run.skipped_files)]] : []),
    ['made on', run.machine ? machineText(run.machine) : 'not recorded'],
    ['this page', `${machineText(made)}; ${made.time}`],
  ];
  return html('dl', {class: 'facts'}, facts.map(([name, value]) => [html('dt', {}, name), html('dd', {}, value)]));
}

/** Broken pictures that --skip-broken left out. */
const skippedFiles = (files) => html('details', {}, html('summary', {}, `${counted(files.length, 'file')} of the data, which could not be read`),
  html('ul', {}, files.map(({why}) => html('li', {}, why))));

const machineText = ({program, cpu, cores, threads, instruction_set: set, onednn, compiler}) =>
  [program, cpu, known(cores) ? counted(cores, 'core') : null, known(threads) ? counted(threads, 'thread') : null, set, `oneDNN ${onednn}`, compiler].filter(known).join(', ');

/** A figure beside those of other runs: it says so if it is not one of the test part. */
const comparable = (run, value, part) => known(value) && part === 'validation' ? `${valueText(mainMeasure(run), value)} (val.)` : valueText(mainMeasure(run), value);
const comparableRow = (run, row) => comparable(run, measuredOf(run, row), partOf(run, row)) + ofFirst(row);

function floatBeside(run) {
  const answers = answersOf(run, 'float');
  return answers?.examples === run.part_examples ? comparable(run, measured(run, answers), run.part) : comparableRow(run, rowOf(run, 'float'));
}

/** Runs in rows: figures before the long texts, so that a phone shows them. What they are is said where one is no accuracy. */
function comparisonTable(runs) {
  const figure = {title: 'figure', left: true, value: (run) => measureName(mainMeasure(run))};
  const rows = table([
    {title: 'run', left: true, look: 'name', value: ({name, number}) => [html('i', {class: 'swatch', style: `--ink: ${colour(number)}`}), name]},
    {title: 'float', look: 'accuracy', value: floatBeside},
    {title: 'simulated', look: 'accuracy', value: (run) => run.listed.bits ? comparableRow(run, ownRow(run)) : MISSING},
    {title: 'integers', look: 'accuracy', value: (run) => comparableRow(run, rowOf(run, 'integers'))},
    ...(runs.some(({task}) => task !== 'classify') ? [figure] : []),
    {title: 'bits', left: true, look: 'long', value: ({listed}) => listed.quantization},
    {title: 'bytes', value: (run) => whole(ownRow(run)?.parameter_bytes)},
    {title: 'MACs × bits', value: (run) => short(ownRow(run)?.bit_operations)},
    {title: 'time', value: ({listed}) => duration(listed.seconds)},
    {title: 'model', left: true, value: ({listed}) => lastPart(listed.model)},
    {title: 'state', left: true, value: ({listed}) => listed.state},
  ], runs);
  const hint = rows.textContent.includes('(val.)') ? html('p', {class: 'hint'}, '(val.): of the validation part. The other figures are those of the test part.') : null;
  return [rows, hint];
}

function resultSection(run, made) {
  return html('section', {class: 'result'}, html('p', {class: 'headline'}, headline(run)),
    run.notes.map((note) => html('p', {class: 'note'}, note)), resultTable(run), factsOf(run, made));
}
