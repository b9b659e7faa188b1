'use strict';
// Pictures become the bytes that a data set would have: scaled, centred, grey or in colour. A picture here is
// {width, height, channels, data}, the channel last.

/** Red, green, blue and alpha of a canvas as a picture of 1 or 3 channels; grey is the luminance of BT.601. */
function pictureOfPixels({width, height, data}, channels) {
  const out = new Float32Array(width * height * channels);
  for (let i = 0; i < width * height; ++i) {
    const [red, green, blue] = data.subarray(4 * i, 4 * i + 3);
    if (channels === 1) out[i] = 0.299 * red + 0.587 * green + 0.114 * blue;
    else out.set([red, green, blue], 3 * i);
  }
  return {width, height, channels, data: out};
}

/** For each of `count` target pixels, the source pixels that it covers and how much of each: a box filter. */
function coverage(start, extent, count) {
  const step = extent / count;
  return Array.from({length: count}, (_, i) => {
    const from = start + i * step, to = from + step, parts = [];
    for (let pixel = Math.floor(from); pixel < to; ++pixel)
      parts.push([pixel, (Math.min(to, pixel + 1) - Math.max(from, pixel)) / step]);
    return parts;
  });
}

/** The part {x, y, width, height} of a picture, which may reach beyond it into black, as a picture of another size. */
function scaled(picture, box, width, height) {
  const {channels} = picture, data = new Float32Array(width * height * channels);
  const rows = coverage(box.y, box.height, height), columns = coverage(box.x, box.width, width);
  rows.forEach((rowParts, row) => columns.forEach((columnParts, column) => {
    for (const [y, rowShare] of rowParts)
      for (const [x, columnShare] of columnParts) {
        if (y < 0 || x < 0 || y >= picture.height || x >= picture.width) continue;
        for (let c = 0; c < channels; ++c)
          data[(row * width + column) * channels + c] +=
              rowShare * columnShare * picture.data[(y * picture.width + x) * channels + c];
      }
  }));
  return {width, height, channels, data};
}

/** The smallest box around everything that is not black, and the centre of mass; null for a black picture. */
function inkOf({width, height, channels, data}) {
  let left = width, right = -1, top = height, bottom = -1, mass = 0, massX = 0, massY = 0;
  for (let y = 0; y < height; ++y)
    for (let x = 0; x < width; ++x) {
      let ink = 0;
      for (let c = 0; c < channels; ++c) ink += data[(y * width + x) * channels + c];
      if (ink === 0) continue;
      left = Math.min(left, x), right = Math.max(right, x), top = Math.min(top, y), bottom = Math.max(bottom, y);
      mass += ink, massX += ink * (x + 0.5), massY += ink * (y + 0.5);
    }
  if (mass === 0) return null;
  return {width: right - left + 1, height: bottom - top + 1, centreX: massX / mass, centreY: massY / mass};
}

/**
 * A drawing as MNIST prepared its digits: the longer side of its ink becomes 20 of 28 pixels, and the centre of mass lies in
 * the middle.
 */
function centred(picture, width, height) {
  const ink = inkOf(picture);
  if (ink === null) return scaled(picture, {x: 0, y: 0, width: picture.width, height: picture.height}, width, height);
  const step = Math.max(ink.width / width, ink.height / height) * 28 / 20;
  const box = {x: ink.centreX - step * width / 2, y: ink.centreY - step * height / 2, width: step * width,
               height: step * height};
  return scaled(picture, box, width, height);
}

/** Whether the border of a picture is bright, as paper is: data sets of digits have bright ink on black. */
function hasBrightBorder({width, height, channels, data}) {
  let sum = 0, count = 0;
  for (let y = 0; y < height; ++y)
    for (let x = 0; x < width; ++x) {
      if (y > 0 && y < height - 1 && x > 0 && x < width - 1) continue;
      for (let c = 0; c < channels; ++c, ++count) sum += data[(y * width + x) * channels + c];
    }
  return sum > 127.5 * count;
}

function inverted(picture) {
  return {...picture, data: picture.data.map((value) => 255 - value)};
}

function bytesOf({data}) {
  return Uint8Array.from(data, (value) => Math.min(255, Math.max(0, Math.round(value))));
}
