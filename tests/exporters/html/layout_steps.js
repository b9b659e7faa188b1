'use strict';
// What layout.js does with an exported page between two looks at it.

function layoutSteps() {
  const press = (key) => dispatchEvent(new KeyboardEvent('keydown', {key}));
  const scroller = document.getElementById('map').parentElement;
  const cards = [...document.querySelectorAll('#layers button')].flatMap((_, i) => [
    () => document.querySelectorAll('#layers button')[i].click(),
    () => press('a'),
    () => { scroller.scrollLeft = scroller.scrollWidth; },
    () => press('a'),
  ]);
  const byName = (id) => () => document.getElementById(id).click();
  return [...cards, () => press('m'), byName('help-button')];
}
