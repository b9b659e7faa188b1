'use strict';
// What went on over the steps.

const points = (run, name) => run.curves.numbers[name] ?? [];

function curvesOf(runs) {
  const many = runs.length > 1;
  const of = (name, dashed) => runs.map((run) => ({name: many ? `${run.name}${dashed ? ` (${dashed})` : ''}` : dashed ?? '', colour: colour(run.number), points: points(run, name), dashed: dashed === 'validation'}))
    .filter((series) => series.points.length > 0);
  const marks = many ? [] : runs[0].curves.marks;
  // Of runs with several tasks each has its own.
  const measures = [...new Map(runs.map((run) => [mainMeasure(run).key, mainMeasure(run)])).values()];
  return [
    chart(of('loss'), {title: 'training loss', marks, zero: true}),
    ...measures.map((measure) => chart([...of(`test_${measure.key}`, 'test'), ...of(`validation_${measure.key}`, 'validation')],
      {title: measureName(measure), marks, ...(measure.is_share ? {most: 1, format: (value) => `${Number((100 * value).toFixed(4))}%`} : {})})),
    chart([...of('test_loss', 'test'), ...of('validation_loss', 'validation')], {title: 'loss after each epoch', marks}),
    chart(of('learning_rate'), {title: 'learning rate', marks, zero: true}),
  ];
}

function rangeCharts(run) {
  const quantizers = Object.entries(run.curves.ranges);
  if (quantizers.length === 0) return null;
  const several = quantizers.some(([, list]) => list.length > 1);
  return html('details', {class: 'ranges', open: quantizers.length <= 16 ? '' : null}, html('summary', {}, `Ranges of ${counted(quantizers.length, 'quantizer')}`),
    html('p', {class: 'hint'}, several ? 'Lowest and highest end over the steps; of a quantizer with a range for each channel, of all channels.' : 'The run recorded one range of each: lowest and highest end.'),
    html('div', {class: 'charts small'}, quantizers.map(([name, list], i) => {
      const draw = () => chart([], {title: name, bands: [{points: list, colour: colour(i)}], marks: run.curves.marks, zero: true, height: 150});
      if (quantizers.length <= 2 * MANY) return draw();
      return whenSeen(html('figure', {class: 'chart waiting'}, html('figcaption', {}, name)), (figure) => figure.replaceWith(draw() ?? ''));
    })));
}

function curvesSection(run) {
  const charts = curvesOf([run]).filter(known), ranges = rangeCharts(run);
  const marks = run.curves.marks;
  if (charts.length === 0 && ranges === null) return null;
  return html('section', {class: 'curves'}, html('h3', {}, 'Over the steps'),
    marks.length > 0 ? html('p', {class: 'hint'}, marks.map(({step, text}) => `Step ${whole(step)}: ${text}. `)) : null,
    html('div', {class: 'charts'}, charts), ranges);
}
