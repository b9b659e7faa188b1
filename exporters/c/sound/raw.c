/* A sample to an integer of the input: mean, deviation, scale and zero point are one multiplication and one sum. */
static uint8_t sound_number(int16_t sample, int32_t multiplier, int64_t offset, int32_t shift, int32_t most) {
  const int64_t value = (int64_t)sample * multiplier + offset, integer = value < 0 ? 0 : value >> shift;
  return (uint8_t)(integer > most ? most : integer);
}
