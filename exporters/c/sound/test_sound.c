/* Sample i of the test's sound of `count`: silence, quiet noise, a rising tone in noise, loud noise, a square wave. */
static int16_t test_sample(uint32_t i, uint32_t count) {
  const uint32_t part = i / (count / 8 + 1), phase = (i / 2 * (i / 2) >> 6) & 1023;
  uint32_t bits = (i + 1) * 2654435761u;
  int32_t noise, tone;
  bits = (bits ^ bits >> 15) * 2246822519u;
  noise = (int32_t)((bits ^ bits >> 13) >> 16 & 0xffff) - 32768;
  tone = (int32_t)(phase < 512 ? phase : 1024 - phase) * 64 - 16384;
  if (part == 0) return 0;
  if (part == 1) return (int16_t)(noise / 4096);
  if (part < 6) return (int16_t)((tone + noise / 16) / (1 << 2 * (5 - part)));
  return (int16_t)(part == 6 ? noise : i / 20 % 2 == 0 ? 32767 : -32768);
}
