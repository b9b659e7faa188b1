#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

/* What a program on an emulated board has beside the language: text to the host, an end, a count of instructions. */

void board_print(const char* text);
void board_number(uint32_t number);
__attribute__((noreturn)) void board_exit(int status);

/* Instructions since the board's start, with `qemu -icount shift=0`; on the Cortex-M4 in steps of 40, and of the last
   671 million. */
uint32_t board_instructions(void);

int main(void);

#endif
