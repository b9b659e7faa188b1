'use strict';
// Right and wrong answers, and what other ways to run the network say.

const className = (run, number) => known(number) ? run.class_names[number] ?? String(number) : 'none';

function confusionMatrix(run, answers) {
  const names = answers.confusion.map((_, i) => className(run, i));
  const most = Math.max(...answers.confusion.flatMap((row, i) => row.filter((_, k) => k !== i)), 1);
  return html('figure', {}, html('figcaption', {}, `confusion matrix, ${answers.name}: a row is a label, a column an answer`),
    html('div', {class: 'scroll'}, html('table', {class: 'confusion'},
      html('thead', {}, html('tr', {}, html('th'), names.map((name) => html('th', {title: name}, name)), html('th', {}, 'right'))),
      html('tbody', {}, answers.confusion.map((row, i) => html('tr', {}, html('th', {class: 'left', title: names[i]}, names[i]),
        row.map((count, k) => html('td', {class: i === k ? 'right' : count > 0 ? 'wrong' : 'none', style: i !== k && count > 0 ? `--share: ${Math.round(12 + 60 * count / most)}%` : null, title: `${names[i]} taken for ${names[k]}`}, count > 0 ? String(count) : '·')),
        html('td', {}, percent(answers.classes[i].accuracy, 1))))))));
}

function confusionList(run, answers) {
  return html('figure', {}, html('figcaption', {}, `most frequent confusions, ${answers.name}`),
    table([{title: 'label', left: true, value: ([label]) => className(run, label)}, {title: 'answer', left: true, value: ([, answer]) => className(run, answer)}, {title: `${run.noun}s`, value: ([, , count]) => whole(count)}], answers.confusions));
}

/** A picture's pixels as they are, on a canvas. */
function canvasOf({shape: [height, width, channels], pixels}) {
  const canvas = html('canvas', {width, height});
  const bytesOf = Uint8Array.from(atob(pixels), (character) => character.charCodeAt(0));
  const image = new ImageData(width, height);
  for (let i = 0; i < width * height; ++i) {
    for (let c = 0; c < 3; ++c) image.data[4 * i + c] = bytesOf[channels === 3 ? 3 * i + c : channels * i];
    image.data[4 * i + 3] = 255;
  }
  canvas.getContext('2d').putImageData(image, 0, 0);
  return canvas;
}

function lostPictures(run) {
  const {comparison} = run;
  if (!comparison) return null;
  const other = lastAnswers(run).name === 'integers' ? 'integers' : 'the simulation';
  const answer = ({predicted, score}) => `${className(run, predicted)}${known(score) ? ` ${percent(score, 1)}` : ''}`;
  const all = comparison.only_float_right;
  return html('div', {class: 'lost'}, html('h4', {}, `${run.noun === 'picture' ? 'Pictures' : 'Examples'} that float gets right and ${other === 'integers' ? 'the integers get' : 'the simulation gets'} wrong: ${whole(all)}`),
    html('p', {class: 'hint'}, `Both right: ${whole(comparison.both_right)}; only float: ${whole(all)}; only ${other}: ${whole(comparison.only_integers_right)}; both wrong: ${whole(comparison.both_wrong)}. The same class: ${whole(comparison.same_class)}.`,
      comparison.lost.length > 0 && comparison.lost.length < all ? ` The ${comparison.lost.length} most certain mistakes:` : ''),
    html('div', {class: run.noun === 'picture' ? 'pictures' : 'examples'}, comparison.lost.map((lost) => html('figure', {}, drawExample(lost),
      html('figcaption', {}, html('span', {}, `no. ${lost.index}`), html('span', {class: 'good'}, `float: ${answer(lost.float)}`), html('span', {class: 'bad'}, `${other}: ${answer(lost.integers)}`))))));
}

function answersSection(run) {
  if (run.answers.length === 0) return null;
  if (run.task !== 'classify') return outputsSection(run);
  const last = lastAnswers(run);
  return html('section', {class: 'answers'}, html('h3', {}, `Answers for ${last.examples < run.part_examples ? 'the ' : ''}${answered(run, last)}`),
    last.confusion ? confusionMatrix(run, last) : confusionList(run, last), lostPictures(run), worstExamples(run));
}

function agreementTable(run, {simulated, integer, runtimes}) {
  const isOfClasses = run.task === 'classify', measure = mainMeasure(run);
  return table([
    {title: '', left: true, value: ({name}) => name},
    {title: measureName(measure), value: (row) => valueText(measure, row[measure.key])},
    ...(isOfClasses ? [{title: 'same class', value: ({top1_agreement_with_integer: same, examples}) => share(Math.round(same * examples), examples)}] : []),
    {title: 'equal outputs', value: ({outputs}) => share(outputs.equal, outputs.count)},
    {title: 'largest difference', value: ({outputs}) => counted(outputs.largest_difference, 'step')},
  ], [simulated, {...integer, name: 'integer engine'}, ...runtimes]);
}

function verificationSection(run) {
  const found = run.verification;
  if (!found) return run.answers.some(({name}) => name === 'integers') ? html('section', {class: 'verification'}, html('h3', {}, 'Agreement'), html('p', {class: 'hint'}, 'Not measured: ', html('code', {}, run.verify_command), ' compares the integers with the simulation and with other runtimes.')) : null;
  const compared = ({equal, count, largest_difference: most}) => `${share(equal, count)}, ${most}`;
  return html('section', {class: 'verification'}, html('h3', {}, `Agreement on ${counted(found.examples, run.noun)}`),
    run.verification_is_current ? null : html('p', {class: 'note'}, 'The variables of the run have changed since this was measured.'),
    html('p', {class: 'hint'}, `Beside the integer engine, which ${found.reference_equal ? 'equals' : 'DIFFERS FROM'} its reference loops on ${counted(found.reference_examples, run.noun)}.`),
    agreementTable(run, found), [...found.left_out, ...found.failed].map((line) => html('p', {class: 'hint'}, line)),
    html('details', {open: found.layers.length <= 24 ? '' : null}, html('summary', {}, 'Layer by layer: integers of the engine that equal the simulation, and the largest difference in steps'),
      table([{title: 'operation', left: true, value: ({operation}) => operation}, {title: 'type', left: true, value: ({type}) => type},
        {title: 'given equal inputs', value: ({alone}) => compared(alone)}, {title: 'from the input on', value: ({end_to_end: all}) => compared(all)}], found.layers)));
}
