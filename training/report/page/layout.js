'use strict';
// Places for the nodes of a graph without cycles, in rows: each node below all that it reads.

/** `sizes`: {width, height, isInput} of each node. `edges`: [from, to, ...], from lower to higher numbers. Returns {places: [{x, y}], paths: [[{x, y}, ...]], width, height}; places are middles. */
function layOut(sizes, edges) {
  const GAP = 18, ROW = 30;
  const {rows, isLive} = rowsOf(sizes, edges);
  const nodes = sizes.map((size, i) => ({...size, row: rows[i], pull: isLive[i] ? 6 : 1, above: [], below: []}));
  // An edge over several rows goes through a node without size in each of them.
  const chains = edges.map(([from, to]) => {
    const chain = [nodes[from]];
    for (let row = rows[from] + 1; row < rows[to]; ++row) {
      const link = {width: 2, height: 0, row, pull: 2, above: [], below: []};
      nodes.push(link);
      chain.push(link);
    }
    chain.push(nodes[to]);
    for (let i = 0; i + 1 < chain.length; ++i) {
      chain[i].below.push(chain[i + 1]);
      chain[i + 1].above.push(chain[i]);
    }
    return chain;
  });
  const lines = [];
  for (const node of nodes) (lines[node.row] ??= []).push(node);
  orderRows(lines);
  placeRows(lines, GAP);
  let y = 0;
  for (const line of lines) {
    const height = Math.max(...line.map((node) => node.height), 4);
    for (const node of line) node.y = y + height / 2;
    y += height + ROW;
  }
  const left = nodes.reduce((least, node) => Math.min(least, node.x - node.width / 2), 0);
  for (const node of nodes) node.x -= left;
  return {
    places: nodes.slice(0, sizes.length).map(({x, y: middle}) => ({x, y: middle})),
    paths: chains.map((chain) => chain.map(({x, y: middle, height}) => ({x, y: middle, height}))),
    width: nodes.reduce((most, node) => Math.max(most, node.x + node.width / 2), 0),
    height: Math.max(y - ROW, 0),
  };
}

/** The longest way to each node; what does not depend on an input (weights, say) stands right above its reader. */
function rowsOf(sizes, edges) {
  const rows = sizes.map(() => 0), isLive = sizes.map(({isInput}) => isInput);
  const byTarget = [...edges].sort((a, b) => a[1] - b[1]), readers = sizes.map(() => []);
  for (const [from, to] of byTarget) {
    rows[to] = Math.max(rows[to], rows[from] + 1);
    isLive[to] ||= isLive[from];
    readers[from].push(to);
  }
  for (let i = sizes.length - 1; i >= 0; --i)
    if (!isLive[i] && readers[i].length > 0) rows[i] = Math.min(...readers[i].map((to) => rows[to])) - 1;
  const least = rows.reduce((a, b) => Math.min(a, b), 0);
  return {rows: rows.map((row) => row - least), isLive};
}

/** Fewer crossings: each node near the mean of its neighbours, down and up a few times. */
function orderRows(lines) {
  const number = () => lines.forEach((line) => line.forEach((node, i) => { node.order = i; }));
  number();
  const mean = (list, own) => list.length === 0 ? own : list.reduce((sum, node) => sum + node.order, 0) / list.length;
  for (let turn = 0; turn < 6; ++turn)
    for (const line of turn % 2 ? [...lines].reverse() : lines) {
      const key = new Map(line.map((node) => [node, mean(turn % 2 ? node.below : node.above, node.order)]));
      line.sort((a, b) => key.get(a) - key.get(b));
      line.forEach((node, i) => { node.order = i; });
    }
}

/** Middles: towards the neighbours' mean, without overlap, in the order of the row. */
function placeRows(lines, gap) {
  for (const line of lines) {
    let x = 0;
    for (const node of line) {
      node.x = x + node.width / 2;
      x += node.width + gap;
    }
    for (const node of line) node.x -= x / 2;
  }
  for (let turn = 0; turn < 24; ++turn)
    for (const line of turn % 2 ? [...lines].reverse() : lines) settle(line, gap);
}

function settle(line, gap) {
  const wish = (node) => {
    const near = [...node.above, ...node.below];
    // What leads from the input on pulls most, so that it is a straight line.
    const pull = near.reduce((sum, other) => sum + other.pull, 0);
    return pull === 0 ? node.x : near.reduce((sum, other) => sum + other.pull * other.x, 0) / pull;
  };
  const wishes = line.map(wish);
  const room = (i) => line[i - 1].width / 2 + gap + line[i].width / 2;
  const fromLeft = [...wishes], fromRight = [...wishes];
  for (let i = 1; i < line.length; ++i) fromLeft[i] = Math.max(wishes[i], fromLeft[i - 1] + room(i));
  for (let i = line.length - 2; i >= 0; --i) fromRight[i] = Math.min(wishes[i], fromRight[i + 1] - room(i + 1));
  line.forEach((node, i) => { node.x = (fromLeft[i] + fromRight[i]) / 2; });
}
