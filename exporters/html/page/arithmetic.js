'use strict';
// The arithmetic of integer models, as integer/arithmetic.h specifies it. A JavaScript number is a double: it holds every
// integer up to 2^53 exactly, but the product of a 32-bit sum and a 31-bit mantissa has up to 62 bits.

/** 2^i at i: quicker than the operator. */
const POWERS = Float64Array.from({length: 63}, (_, i) => 2 ** i);

function clamped(value, [smallest, largest]) {
  return value < smallest ? smallest : value > largest ? largest : value;
}

/**
 * floor(sum * mantissa / 2^shift + 1/2), exactly, for -2^31 <= sum < 2^31, a mantissa of 0 or 2^30 .. 2^31 - 1, and
 * a shift of 1 .. 62. (A result beyond 2^53 may be a little off: it is far beyond any clamp.)
 *
 * Derivation. The sum splits into halves, sum = high * 2^16 + low with 0 <= low < 2^16. The parts of the product,
 * high * mantissa (below 2^46) and low * mantissa (below 2^47), are exact doubles. Carrying the latter's upper bits over,
 *
 *     sum * mantissa = a * 2^16 + r,    a = high * mantissa + floor(low * mantissa / 2^16),    0 <= r < 2^16.
 *
 * For shift > 16 the half that rounds, 2^(shift - 1), is a multiple of 2^16, and r / 2^16 is a fraction below 1 on top
 * of an integer, which no floor of a division by an integer sees:
 *
 *     floor((a * 2^16 + r + 2^(shift - 1)) / 2^shift) = floor((a + 2^(shift - 17)) / 2^(shift - 16)).
 *
 * Here |a| < 2^47 and 2^(shift - 17) <= 2^45: an exact sum. A division by a power of two changes only the exponent of a
 * double, so it is exact, too. For shift <= 16 it is a that is a multiple of 2^shift once 2^16 multiplies it:
 *
 *     floor((a * 2^16 + r + 2^(shift - 1)) / 2^shift) = a * 2^(16 - shift) + floor((r + 2^(shift - 1)) / 2^shift).
 */
function roundedProduct(sum, mantissa, shift) {
  const high = sum >> 16;
  const lowProduct = (sum & 0xffff) * mantissa;
  const carry = Math.floor(lowProduct / 65536);
  const a = high * mantissa + carry;
  if (shift > 16) return Math.floor((a + POWERS[shift - 17]) / POWERS[shift - 16]);
  const r = lowProduct - carry * 65536;
  return a * POWERS[16 - shift] + Math.floor((r + POWERS[shift - 1]) / POWERS[shift]);
}

/** From a sum to an integer of the output's grid. */
function requantize(sum, {mantissa, shift}, zeroPoint, clamp) {
  return clamped(roundedProduct(sum, mantissa, shift) + zeroPoint, clamp);
}

/** Of an Add, whose products and rounding fit 32 bits: an arithmetic shift is the floor of a division. */
function requantizeShort(sum, shift, zeroPoint, clamp) {
  return clamped(((sum + POWERS[shift - 1]) >> shift) + zeroPoint, clamp);
}
