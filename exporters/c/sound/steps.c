/* The front end: 16-bit samples to the network's input, in integers alone. An integer "of 2^n" is a real number times
   2^n. */
struct front_end {
  int32_t window, transform, bands, coefficients; /* 0 coefficients: the bands themselves */
  const int32_t* hann;                            /* half of the window and one, of 2^30 */
  const int32_t* sines;                           /* sin(2 pi k / transform), k = 0 .. transform / 4, of 2^30 */
  const int32_t* logarithms;                      /* log2(1 + k / 64), k = 0 .. 64, of 2^16 */
  const uint16_t *first_bins, *bin_counts;        /* of each band */
  const uint16_t* triangles;                      /* a weight for each bin of each band, of 2^15 */
  const int32_t* heights;                         /* log2 of the height of each triangle, of 2^16; NULL: all are 1 */
  const int16_t* cosines;                         /* [coefficients, bands], of 2^14 */
  int32_t least;                                  /* the logarithm of the least power, of 2^16 */
  const int32_t* multipliers;                     /* of each number of a step, and what is added to the product: */
  const int64_t* offsets;                         /* mean, deviation, scale and zero point in one */
  int32_t shift, most;
};

/* value / 2^shift, rounded downwards. (What >> makes of negative numbers is up to the compiler.) */
static int64_t sound_shift(int64_t value, int32_t shift) { return value >= 0 ? value >> shift : ~(~value >> shift); }

/* a * b + c * d of factors b and d of 2^30, to the nearest integer. */
static int64_t sound_products(int64_t a, int32_t b, int64_t c, int32_t d) {
  return sound_shift(a * b + c * d + ((int64_t)1 << 29), 30);
}

/* The cosine and the sine of 2 pi k / transform, k = 0 .. transform / 2, of 2^30. */
static void sound_turn(const struct front_end* end, int32_t k, int32_t* cosine, int32_t* sine) {
  const int32_t quarter = end->transform / 4;
  *cosine = k <= quarter ? end->sines[quarter - k] : -end->sines[k - quarter];
  *sine = end->sines[k <= quarter ? k : 2 * quarter - k];
}

/* The window's samples times hann, in pairs as complex numbers, in the order of reversed bits. They are of 2^(29 + n),
   where 2^n is what brings the largest sample near 2^15. Returns n, or -1 for silence. */
static int32_t sound_load(const struct front_end* end, const int16_t* samples, int32_t* points) {
  const int32_t half = end->transform / 2;
  int32_t largest = 0, power = 0, reversed = 0;
  for (int32_t t = 0; t < end->window; ++t) {
    const int32_t size = samples[t] < 0 ? -samples[t] : samples[t];
    if (size > largest) largest = size;
  }
  if (largest == 0) return -1;
  while (largest << (power + 1) <= 32768) ++power;
  for (int32_t i = 0; i < half; ++i) {
    for (int32_t part = 0; part < 2; ++part) {
      const int32_t t = 2 * i + part;
      int64_t value = 0;
      if (t < end->window)
        value = (int64_t)(samples[t] * (1 << power)) * end->hann[2 * t <= end->window ? t : end->window - t];
      points[2 * reversed + part] = (int32_t)sound_shift(value + 32768, 16);
    }
    int32_t bit = half / 2;
    for (; bit > 0 && (reversed & bit) != 0; bit /= 2) reversed ^= bit;
    reversed |= bit;
  }
  return power;
}

/* The discrete Fourier transform of the points, halved at each of its stages: complex numbers below 2^29.5 stay so. */
static void sound_transform(const struct front_end* end, int32_t* points) {
  const int32_t half = end->transform / 2;
  for (int32_t span = 1; span < half; span *= 2)
    for (int32_t k = 0; k < span; ++k) {
      int32_t cosine, sine;
      sound_turn(end, k * (half / span), &cosine, &sine);
      for (int32_t at = k; at < half; at += 2 * span) {
        int32_t *a = points + 2 * at, *b = a + 2 * span;
        const int32_t real = (int32_t)sound_products(b[0], cosine, b[1], sine);
        const int32_t imaginary = (int32_t)sound_products(b[1], cosine, b[0], -sine);
        b[0] = (int32_t)sound_shift((int64_t)a[0] - real + 1, 1);
        b[1] = (int32_t)sound_shift((int64_t)a[1] - imaginary + 1, 1);
        a[0] = (int32_t)sound_shift((int64_t)a[0] + real + 1, 1);
        a[1] = (int32_t)sound_shift((int64_t)a[1] + imaginary + 1, 1);
      }
    }
}

/* The power of a bin of the samples' transform, four times that of the points' scale. */
static uint64_t sound_power(const struct front_end* end, const int32_t* points, int32_t bin) {
  const int32_t half = end->transform / 2;
  const int32_t *z = points + 2 * (bin % half), *y = points + 2 * ((half - bin) % half);
  const int64_t real = (int64_t)z[0] - y[0], imaginary = (int64_t)z[1] + y[1];
  int32_t cosine, sine;
  int64_t twice[2];
  sound_turn(end, bin, &cosine, &sine);
  twice[0] = (int64_t)z[0] + y[0] + sound_products(imaginary, cosine, real, -sine);
  twice[1] = (int64_t)z[1] - y[1] - sound_products(real, cosine, imaginary, sine);
  return (uint64_t)(twice[0] * twice[0]) + (uint64_t)(twice[1] * twice[1]);
}

/* log2 of a number above 0, of 2^16, with a line between two entries of the table. */
static int32_t sound_log2(const struct front_end* end, uint64_t value) {
  int32_t exponent = 63, fraction;
  const int32_t* entry;
  for (; value >> 63 == 0; value <<= 1) --exponent;
  entry = end->logarithms + (int32_t)(value >> 57 & 63);
  fraction = (int32_t)(value >> 42 & 32767);
  return exponent * 65536 + entry[0] + (int32_t)(((entry[1] - entry[0]) * fraction + 16384) >> 15);
}

/* The logarithm of a band's power, which is `scale` above that of the sum of its bins, both of 2^16. */
static int32_t sound_band(const struct front_end* end, const int32_t* points, int32_t first, int32_t count,
                          const uint16_t* triangle, int32_t scale) {
  /* The upper and the lower 24 bits of powers by themselves: with a weight, all together need 77. */
  uint64_t upper = 0, lower = 0;
  int32_t logarithm;
  for (int32_t i = 0; i < count; ++i) {
    const uint64_t power = sound_power(end, points, first + i);
    upper += (power >> 24) * triangle[i];
    lower += (power & 0xffffff) * triangle[i];
  }
  if (upper == 0 && lower == 0) return end->least;
  logarithm =
      upper >> 38 == 0 ? sound_log2(end, (upper << 24) + lower) : sound_log2(end, upper + (lower >> 24)) + 24 * 65536;
  logarithm += scale;
  return logarithm > end->least ? logarithm : end->least;
}

/* A step: `window` samples to integers of the input. points: [transform], logs: [bands]; room to work. */
static void sound_numbers(const struct front_end* end, const int16_t* samples, int32_t* points, int32_t* logs,
                          uint8_t* numbers) {
  const int32_t power = sound_load(end, samples, points),
                count = end->coefficients > 0 ? end->coefficients : end->bands;
  const uint16_t* triangle = end->triangles;
  /* 15 of the triangles, 2 of twice the transform, 29 + power of each point; each stage of the transform halved it. */
  int32_t scale = -15 - 2 - 2 * (29 + power);
  for (int32_t span = 1; span < end->transform / 2; span *= 2) scale += 2;
  if (power >= 0) sound_transform(end, points);
  for (int32_t b = 0; b < end->bands; ++b) {
    const int32_t all = scale * 65536 + (end->heights ? end->heights[b] : 0);
    logs[b] = power < 0 ? end->least : sound_band(end, points, end->first_bins[b], end->bin_counts[b], triangle, all);
    triangle += end->bin_counts[b];
  }
  for (int32_t c = 0; c < count; ++c) {
    int64_t number = end->coefficients > 0 ? 0 : logs[c], value;
    if (end->coefficients > 0) {
      for (int32_t b = 0; b < end->bands; ++b) number += (int64_t)end->cosines[c * end->bands + b] * logs[b];
      number = sound_shift(number + ((int64_t)1 << 13), 14);
    }
    value = number * end->multipliers[c] + end->offsets[c];
    value = value < 0 ? 0 : value >> end->shift;
    numbers[c] = (uint8_t)(value > end->most ? end->most : value);
  }
}
