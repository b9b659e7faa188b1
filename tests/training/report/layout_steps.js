'use strict';
// What layout.js does with a report between two looks at it, and what a phone shows of it at once: accuracies.

function layoutSteps() {
  return [
    () => document.querySelectorAll('details').forEach((details) => { details.open = true; }),
    () => document.querySelectorAll('.scroll, .graph-scroll').forEach((box) => { box.scrollLeft = 40; }),
  ];
}

function seenAtOnce() {
  const cells = [];
  for (const table of document.querySelectorAll('.comparison > .scroll:first-of-type table, .result table, .verification table, .layer-card table')) {
    const titles = [...table.querySelectorAll('thead th')].map(({textContent}) => textContent);
    titles.forEach((title, i) => {
      if (['test', 'float', 'simulated', 'integers', 'accuracy'].includes(title)) cells.push(...[...table.rows].map(({cells: row}) => row[i]));
    });
  }
  return cells.filter((cell) => cell?.checkVisibility() && (cell.closest('.scroll')?.scrollLeft ?? 0) === 0);
}
