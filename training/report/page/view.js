'use strict';
// The page: runs one below another, behind their comparison.

const report = JSON.parse(document.getElementById('data').textContent);
report.runs.forEach((run, i) => { run.number = i; });

function runSection(run) {
  return html('section', {class: 'run', id: `run${run.number}`},
    html('h2', {}, report.runs.length > 1 ? html('i', {class: 'swatch', style: `--ink: ${colour(run.number)}`}) : null, run.name),
    resultSection(run, report.made), curvesSection(run), layersSection(run, report.sensitivity), graphSection(run), answersSection(run), verificationSection(run));
}

function comparisonSection(runs) {
  return html('section', {class: 'comparison'}, html('h2', {}, `${runs.length} runs`), comparisonTable(runs),
    html('div', {class: 'charts'}, curvesOf(runs)), layerComparison(runs),
    html('p', {}, 'In detail: ', runs.map((run, i) => [i > 0 ? ', ' : '', html('a', {href: `#run${run.number}`}, run.name)])));
}

function toggleTheme() {
  const root = document.documentElement, dark = matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = (root.dataset.theme ?? (dark ? 'dark' : 'light')) === 'dark' ? 'light' : 'dark';
}

document.getElementById('theme').addEventListener('click', toggleTheme);
addEventListener('keydown', ({key, ctrlKey, metaKey, altKey}) => { if (key.toLowerCase() === 't' && !ctrlKey && !metaKey && !altKey) toggleTheme(); });
// Paper cannot unfold anything.
addEventListener('beforeprint', () => { for (const details of document.querySelectorAll('details')) details.open = true; });

document.getElementById('main').append(...[report.runs.length > 1 ? comparisonSection(report.runs) : null, ...report.runs.map(runSection)].filter(known));
// The place that the address names is there only now.
if (location.hash !== '') document.getElementById(location.hash.slice(1))?.scrollIntoView({behavior: 'instant'});
