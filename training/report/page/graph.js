'use strict';
// A graph as SVG: quantizers in colour, the bits of the numbers on the edges.

const ROLES = {input: 'input', layer: 'layer', weights: 'quantizer of weights', activations: 'quantizer of activations', parameter: 'weights', op: 'other op'};

/** The lines in a node's box. */
function textOf(node) {
  const parts = node.name.split('/'), last = parts.at(-1);
  // The scopes that tell layers apart, as many as there is room for.
  const most = node.role === 'op' ? 1 : [3, 2].find((count) => parts.slice(-count).join('/').length <= 26) ?? 1;
  const name = parts.slice(-most).join('/'), lines = [name.length > 26 ? `${name.slice(0, 24)}…` : name];
  if (node.role === 'weights' || node.role === 'activations') return [...lines, node.detail.split(', ')[0]];
  if (!last.toLowerCase().includes(node.type.toLowerCase()) && node.role !== 'input' && node.role !== 'parameter') lines.push(node.type);
  if (node.detail && node.role !== 'op') lines.push(node.detail);
  return lines;
}

function drawEdge(path, bits, showsBits) {
  const [start, ...rest] = path, end = rest.at(-1);
  let from = {x: start.x, y: start.y + start.height / 2}, d = `M${from.x.toFixed(1)} ${from.y.toFixed(1)}`;
  rest.forEach((point, i) => {
    const to = {x: point.x, y: i === rest.length - 1 ? point.y - point.height / 2 : point.y}, bend = (to.y - from.y) / 2;
    d += `C${from.x.toFixed(1)} ${(from.y + bend).toFixed(1)} ${to.x.toFixed(1)} ${(to.y - bend).toFixed(1)} ${to.x.toFixed(1)} ${to.y.toFixed(1)}`;
    from = to;
  });
  const tip = {x: end.x, y: end.y - end.height / 2};
  const first = rest[0], middle = {x: (start.x + first.x) / 2, y: (start.y + start.height / 2 + first.y - first.height / 2) / 2};
  return [
    svg('path', {class: bits < 32 ? 'edge integer' : 'edge', d}),
    svg('path', {class: 'tip', d: `M${tip.x} ${tip.y}l-4 -7h8Z`}),
    showsBits ? svg('text', {class: bits < 32 ? 'bits integer' : 'bits', x: middle.x + 4, y: middle.y + 4}, bits < 32 ? String(bits) : 'float') : null,
  ];
}

/** Too long for one sheet of paper. */
const isLong = ({nodes}) => nodes.length > 60;

/** Heights at which a drawing is cut into sheets of paper, the first of which has a heading: between rows of boxes. */
function cutsBetween(boxes, width, height) {
  const sheet = 930 * Math.max(1, width / 660), heading = 0.2 * sheet;
  const cuts = [];
  let last = 0, bottom = 0, free = 0;
  for (const {top, height: tall} of [...boxes].sort((a, b) => a.top - b.top)) {
    if (top > bottom) {
      if (top - last > sheet - (cuts.length === 0 ? heading : 0) && free > last) cuts.push(last = free);
      free = top - 10;
    }
    bottom = Math.max(bottom, top + tall);
    if (bottom - last > sheet - (cuts.length === 0 ? heading : 0) && free > last) cuts.push(last = free);
  }
  return [0, ...cuts, height];
}

/** Copies of the drawing's parts, [{element, top, bottom}], for paper, each on the sheets that it is on. A browser that cuts a picture by itself cuts through boxes, and leaves its caption behind. */
function sheetsOf(parts, cuts, width, title) {
  const sheets = cuts.slice(1).map(() => []);
  for (const {element, top, bottom} of parts) {
    let low = 0;
    for (let high = sheets.length - 1; low < high;) {
      const middle = low + high >> 1;
      if (cuts[middle + 1] < top) low = middle + 1;
      else high = middle;
    }
    for (let i = low; i < sheets.length && (i === low || cuts[i] <= bottom + 6); ++i) sheets[i].push(element.cloneNode(true));
  }
  return cuts.slice(1).map((to, i) => html('figure', {class: 'sheet'},
    html('figcaption', {}, `${title}, part ${i + 1} of ${cuts.length - 1}`),
    svg('svg', {viewBox: `-6 ${cuts[i] - 6} ${(width + 40).toFixed(0)} ${to - cuts[i]}`, width: (width + 40).toFixed(0), height: to - cuts[i], 'aria-hidden': true}, sheets[i])));
}

/** One of many layers is drawn when somebody comes to see it. */
function drawGraph(graph, title) {
  if (graph.nodes.length === 0) return null;
  if (graph.nodes.length <= 10 * MANY) return drawNow(graph, title);
  return whenSeen(html('figure', {class: 'graph waiting'}), (figure) => figure.replaceWith(drawNow(graph, title)));
}

function drawNow({nodes, edges}, title) {
  const LINE = 14, texts = nodes.map(textOf);
  const sizes = texts.map((lines, i) => ({width: 16 + 6.6 * Math.max(...lines.map((line) => line.length)), height: 8 + LINE * lines.length, isInput: nodes[i].role === 'input'}));
  const {places, paths, width, height} = layOut(sizes, edges);
  const showsBits = edges.some(([, , bits]) => bits < 32);
  const boxes = places.map(({x, y}, i) => ({left: x - sizes[i].width / 2, top: y - sizes[i].height / 2, ...sizes[i]}));
  const parts = [
    ...paths.map((path, i) => ({element: svg('g', {}, drawEdge(path, edges[i][2], showsBits)), top: path[0].y, bottom: path.at(-1).y})),
    ...nodes.map((node, i) => ({top: boxes[i].top, bottom: boxes[i].top + boxes[i].height, element: svg('g', {class: `node role-${node.role}${node.is_output ? ' output' : ''}`},
      svg('title', {}, `${node.name} (${node.type}${node.detail ? `; ${node.detail}` : ''})`),
      svg('rect', {x: boxes[i].left, y: boxes[i].top, width: sizes[i].width, height: sizes[i].height, rx: node.role === 'parameter' || node.role === 'input' ? sizes[i].height / 2 : 5}),
      texts[i].map((line, k) => svg('text', {x: places[i].x, y: boxes[i].top + 16 + LINE * k, 'text-anchor': 'middle', class: k === 0 ? 'name' : null}, line)))})),
  ];
  const drawing = svg('svg', {viewBox: `-6 -6 ${(width + 40).toFixed(0)} ${(height + 12).toFixed(0)}`, width: (width + 40).toFixed(0), height: (height + 12).toFixed(0), role: 'img', 'aria-label': title}, parts.map(({element}) => element));
  return html('figure', {class: 'graph'}, html('figcaption', {class: 'title'}, title), html('div', {class: 'graph-scroll', tabindex: 0}, drawing),
    isLong({nodes}) ? whenSeen(html('div', {class: 'sheets'}), (sheets) => sheets.append(...sheetsOf(parts, cutsBetween(boxes, width, height + 12), width, title))) : null);
}

function graphSection({graphs}) {
  const {before, after} = graphs, quantizers = after.nodes.filter(({role}) => role === 'weights' || role === 'activations').length;
  if (after.nodes.length === 0) return null;
  const roles = Object.entries(ROLES).filter(([role]) => [...before.nodes, ...after.nodes].some((node) => node.role === role));
  return html('section', {class: 'graphs'}, html('h3', {}, 'The graph'),
    html('p', {class: 'hint'}, quantizers > 0 ? `The rewrite put ${counted(quantizers, 'quantizer')} into it. A number on an edge: bits of the integers there; "float": 32-bit floating point, here in the middle of what an integer engine computes in one step. Ranges, biases and other vectors are left out.` : 'A float network: nothing was rewritten. Vectors are left out.'),
    html('p', {class: 'legend roles'}, roles.map(([role, text]) => html('span', {}, html('i', {class: `swatch role-${role}`}), text))),
    html('div', {class: isLong(after) ? 'side-by-side long' : 'side-by-side'}, drawGraph(before, 'before the rewrite'), quantizers > 0 || before.nodes.length === 0 ? drawGraph(after, 'after it, as evaluated') : null));
}
