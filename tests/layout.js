'use strict';
// The script of a page that holds another one, in base64 in the element "page": shows it in frames as wide as a phone, a tablet
// and a screen, and leaves in the element "found" a JSON text with everything that is cut off, sticks out of its place, or
// goes on beyond an edge that has no shade. A page in a frame may have functions `layoutSteps`, after each of which it is
// looked at again, and `seenAtOnce`, whose elements must lie on the screen without scrolling.

(async () => {
  const WIDTHS = [360, 800, 1600];
  const text = new TextDecoder().decode(Uint8Array.from(atob(document.getElementById('page').textContent), (letter) => letter.charCodeAt(0)));
  const complaints = new Set();
  let looks = 0, shades = 0;

  const nameOf = (element) => {
    const words = (element.textContent ?? '').trim().replace(/\s+/g, ' ').slice(0, 40);
    const names = [element.tagName.toLowerCase(), element.id ? `#${element.id}` : '', ...[...element.classList].map((name) => `.${name}`)];
    return `<${names.join('')}> "${words}"`;
  };
  const scrolls = (style) => ['auto', 'scroll'].includes(style.overflowX) || ['auto', 'scroll'].includes(style.overflowY);
  const scrollerAround = (element) => {
    for (let outer = element.parentElement; outer !== null; outer = outer.parentElement)
      if (scrolls(outer.ownerDocument.defaultView.getComputedStyle(outer))) return outer;
    return null;
  };

  /** The edges beyond which the content goes on. */
  function edgesBeyond(box) {
    const {scrollLeft: left, scrollTop: top} = box;
    const pixels = {left, right: box.scrollWidth - box.clientWidth - left, top, bottom: box.scrollHeight - box.clientHeight - top};
    return Object.keys(pixels).filter((edge) => pixels[edge] > 1);
  }

  /** Those that a layer over the box darkens; null where there is none such, and a background under transparent content does it. */
  function shadedEdges(box) {
    const view = box.ownerDocument.defaultView, over = view.getComputedStyle(box.parentElement, '::after');
    if (over.content !== '""') return null;
    const [left, right, top, bottom] = over.backgroundSize.split(', ').map((size) => size.split(' '));
    const widths = {left: left[0], right: right[0], top: top[1], bottom: bottom[1]};
    return Object.keys(widths).filter((edge) => parseFloat(widths[edge]) > 0);
  }

  function lookAtShades(where, box) {
    const beyond = edgesBeyond(box), shaded = shadedEdges(box), style = box.ownerDocument.defaultView.getComputedStyle(box);
    shades += beyond.length;
    if (shaded !== null) {
      if (shaded.join() !== beyond.join()) complaints.add(`${where} goes on at [${beyond}], has shades at [${shaded}]`);
    } else if (beyond.length > 0) {
      const layers = style.backgroundAttachment.split(', ');
      const wanted = 4 * new Set(beyond.map((edge) => ['left', 'right'].includes(edge) ? 'x' : 'y')).size;
      if (!layers.includes('local') || layers.length < wanted) complaints.add(`${where} goes on at [${beyond}] without a shade`);
    }
  }

  function look(frame, width) {
    const {contentDocument: page, contentWindow: view} = frame;
    ++looks;
    for (const element of page.body.querySelectorAll('*')) {
      if (!(element instanceof view.HTMLElement) || ['SCRIPT', 'STYLE', 'CANVAS', 'INPUT', 'WBR'].includes(element.tagName)) continue;
      if (!element.checkVisibility() || element.getClientRects().length === 0) continue;
      const style = view.getComputedStyle(element), where = `${width} pixels: ${nameOf(element)}`;
      if (scrolls(style)) {
        lookAtShades(where, element);
      } else if (element.clientWidth > 0 && element.scrollWidth > element.clientWidth + 1) {
        complaints.add(`${where} has ${element.scrollWidth} pixels of content in ${element.clientWidth}`);
      } else if (['hidden', 'clip'].includes(style.overflowY) && element.scrollHeight > element.clientHeight + 1) {
        complaints.add(`${where} is ${element.scrollHeight} pixels high, cut at ${element.clientHeight}`);
      }
      const {right} = element.getBoundingClientRect();
      if (right > width + 0.5 && scrollerAround(element) === null) complaints.add(`${where} ends at ${Math.round(right)}`);
    }
    for (const element of view.seenAtOnce?.() ?? []) {
      const {right} = element.getBoundingClientRect(), box = scrollerAround(element);
      const end = Math.min(width, box === null ? width : box.getBoundingClientRect().right);
      if (right > end + 0.5) complaints.add(`${width} pixels: ${nameOf(element)} is seen only after scrolling`);
    }
  }

  /** Two frames of the screen: events of scrolling and of new sizes come before the next one is drawn. */
  const settled = (view) => new Promise((resolve) => view.requestAnimationFrame(() => view.requestAnimationFrame(() => setTimeout(resolve, 0))));
  // The browser's virtual time flies when nothing happens; this slows it down.
  const brake = setInterval(() => {}, 1);
  for (const width of WIDTHS) {
    const frame = document.createElement('iframe');
    frame.style = `border: 0; width: ${width}px; height: 900px`;
    const isLoaded = new Promise((resolve) => frame.addEventListener('load', resolve));
    frame.srcdoc = text;
    document.body.append(frame);
    await isLoaded;
    // As high as it is: no scroll bar takes some of the width.
    frame.style.height = `${frame.contentDocument.documentElement.scrollHeight + 2000}px`;
    for (const step of [() => {}, ...(frame.contentWindow.layoutSteps?.() ?? [])]) {
      step();
      await settled(frame.contentWindow);
      look(frame, width);
    }
    frame.remove();
  }
  clearInterval(brake);
  document.getElementById('found').textContent = JSON.stringify({complaints: [...complaints], looks, shades});
})().catch((error) => { document.getElementById('found').textContent = JSON.stringify({complaints: [String(error)]}); });
