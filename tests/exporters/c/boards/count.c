// Of net.c: the self test's result, the instructions of a picture (the mean of the test vectors), the bytes of stack.

#include "board.h"
#include "net.c"

#define LOOKED_AT 4096

extern uint8_t stack_top[];

static uint32_t used_stack(void) {
  static uint8_t output[NET_OUTPUT_SIZE];
  volatile uint8_t here, *low = stack_top - LOOKED_AT, *at;
  for (at = low; at < &here - 64; ++at) *at = 0xa5;
  net_run(test_inputs[0], output);
  for (at = low; *at == 0xa5;) ++at;
  return (uint32_t)(&here - at);
}

int main(void) {
  static uint8_t output[NET_OUTPUT_SIZE];
  uint32_t instructions = 0;
  const int self_test = net_self_test();
  for (int32_t test = 0; test < TESTS; ++test) {
    const uint32_t start = board_instructions();
    net_run(test_inputs[test], output);
    instructions += (board_instructions() - start) / TESTS;
  }
  board_number((uint32_t)self_test);
  board_print(" ");
  board_number(instructions);
  board_print(" ");
  board_number(used_stack());
  board_print("\n");
  return 0;
}
