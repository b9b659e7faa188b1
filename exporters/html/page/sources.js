'use strict';
// Where pictures come from: the pen, files, the test pictures in the page.

/** Shows bytes [height, width, channels] on a canvas, a pixel each; channels other than 1 and 3 as the first alone. */
function drawBytes(canvas, bytes, [height, width, channels]) {
  const image = new ImageData(width, height);
  for (let i = 0; i < width * height; ++i)
    for (let c = 0; c < 4; ++c)
      image.data[4 * i + c] = c === 3 ? 255 : bytes[i * channels + (channels === 3 ? c : 0)];
  canvas.width = width;
  canvas.height = height;
  canvas.getContext('2d').putImageData(image, 0, 0);
}

/** Calls `onBytes` with the bytes of every new picture of `shape`. */
class Sources {
  constructor(shape, tests, onBytes) {
    this.shape = shape.length === 3 ? shape : [1, elements(shape), 1];
    this.drawable = shape.length === 3 && (shape[2] === 1 || shape[2] === 3);
    this.onBytes = onBytes;
    this.pad = document.getElementById('pad');
    this.pad.getContext('2d', {willReadFrequently: true});
    this.pen = null;
    this.isDrawing = false;
    this.bytes = new Uint8Array(elements(shape));
    this.tests = tests;
    this.addTestButtons();
    if (this.drawable) this.listen();
    document.getElementById('colour').hidden = shape[2] !== 3;
    for (const id of ['clear', 'open']) document.getElementById(id).disabled = !this.drawable;
  }

  addTestButtons() {
    const box = document.getElementById('tests');
    this.tests.forEach(({name, bytes}, i) => {
      const canvas = document.createElement('canvas'), button = made('button', '', canvas);
      drawBytes(canvas, bytes, this.shape);
      button.type = 'button';
      button.title = `${name} (key ${(i + 1) % 10})`;
      button.setAttribute('aria-label', `test picture ${i + 1}: ${name}`);
      button.addEventListener('click', () => this.chooseTest(i));
      box.append(button);
    });
  }

  listen() {
    const {pad} = this, file = document.getElementById('file');
    pad.addEventListener('pointerdown', (event) => this.penDown(event));
    pad.addEventListener('pointermove', (event) => this.penMoves(event));
    for (const end of ['pointerup', 'pointercancel']) pad.addEventListener(end, () => this.pen = null);
    file.addEventListener('change', () => {
      this.openFile(file.files[0]);
      // So that the same file can be chosen again.
      file.value = '';
    });
    addEventListener('dragover', (event) => {
      event.preventDefault();
      pad.classList.add('over');
    });
    addEventListener('dragleave', () => pad.classList.remove('over'));
    addEventListener('drop', (event) => {
      event.preventDefault();
      pad.classList.remove('over');
      this.openFile(event.dataTransfer.files[0]);
    });
  }

  /** An empty, black pad. */
  clear() {
    if (!this.drawable) return;
    this.pad.width = this.pad.height = 280;
    const context = this.pad.getContext('2d');
    context.fillRect(0, 0, 280, 280);
    this.isDrawing = true;
    this.readDrawing();
  }

  penPlace(event) {
    const box = this.pad.getBoundingClientRect();
    return [(event.clientX - box.left) * 280 / box.width, (event.clientY - box.top) * 280 / box.height];
  }

  penDown(event) {
    if (!this.isDrawing) this.clear();
    if (event.isTrusted) this.pad.setPointerCapture(event.pointerId);
    this.pen = this.penPlace(event);
    this.penMoves(event);
  }

  penMoves(event) {
    if (this.pen === null) return;
    const context = this.pad.getContext('2d'), to = this.penPlace(event);
    context.strokeStyle = this.shape[2] === 3 ? document.getElementById('colour').value : '#fff';
    context.lineWidth = 22;
    context.lineCap = context.lineJoin = 'round';
    context.beginPath();
    context.moveTo(...this.pen);
    context.lineTo(...to);
    context.stroke();
    this.pen = to;
    this.readDrawing();
  }

  readDrawing() {
    const [height, width, channels] = this.shape, side = this.pad.width;
    const picture = pictureOfPixels(this.pad.getContext('2d').getImageData(0, 0, side, side), channels);
    const box = {x: 0, y: 0, width: side, height: side};
    this.give(bytesOf(channels === 1 ? centred(picture, width, height) : scaled(picture, box, width, height)));
  }

  give(bytes) {
    this.bytes = bytes;
    this.onBytes(bytes);
  }

  /** Bytes that the pad shows, too. */
  show(bytes) {
    this.isDrawing = false;
    drawBytes(this.pad, bytes, this.shape);
    this.give(bytes);
  }

  chooseTest(i) {
    if (i < this.tests.length) this.show(this.tests[i].bytes);
  }

  invert() {
    this.show(this.bytes.map((byte) => 255 - byte));
  }

  /** The middle of a picture file; on paper, dark becomes bright. */
  async openFile(file) {
    if (!file) return;
    const [height, width, channels] = this.shape;
    let bitmap;
    try {
      bitmap = await createImageBitmap(file);
    } catch {
      document.getElementById('verdict').textContent = `${file.name} is not a picture`;
      return;
    }
    const side = Math.min(bitmap.width / width, bitmap.height / height);
    const sharp = Math.max(1, Math.min(8, Math.round(side)));
    const canvas = made('canvas', '');
    canvas.width = width * sharp;
    canvas.height = height * sharp;
    const context = canvas.getContext('2d');
    context.imageSmoothingQuality = 'high';
    // Paper, for drawings that are transparent where there is no ink.
    context.fillStyle = '#fff';
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(bitmap, (bitmap.width - side * width) / 2, (bitmap.height - side * height) / 2, side * width,
                      side * height, 0, 0, canvas.width, canvas.height);
    let picture = pictureOfPixels(context.getImageData(0, 0, canvas.width, canvas.height), channels);
    if (channels === 1 && hasBrightBorder(picture)) picture = inverted(picture);
    this.show(bytesOf(scaled(picture, {x: 0, y: 0, width: canvas.width, height: canvas.height}, width, height)));
  }
}
