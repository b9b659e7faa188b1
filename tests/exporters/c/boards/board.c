#include "board.h"

#include <string.h>

extern uint8_t data_begin[], data_end[], data_in_flash[], bss_begin[], bss_end[], stack_top[];

static void start(void) {
  memcpy(data_begin, data_in_flash, (size_t)(data_end - data_begin));
  memset(bss_begin, 0, (size_t)(bss_end - bss_begin));
  board_exit(main());
}

#ifdef __arm__

static void fault(void) { board_exit(125); }

/* The processor's exceptions: the stack, the reset, 14 others. */
__attribute__((section(".entry"), used)) static const struct {
  void* stack;
  void (*handlers[15])(void);
} vectors = {stack_top,
             {start, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault}};

void entry(void) { start(); }

/* A request to the debugger, which QEMU plays ("semihosting"). */
static void request(uint32_t number, const void* argument) {
  register uint32_t r0 __asm__("r0") = number;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

#define SYSTICK ((volatile uint32_t*)0xe000e010)
#define INSTRUCTIONS_PER_TICK 40 /* 1 ns each at 25 MHz */
#define LAST_TICK 0xffffffu

/* The timer counts down from 0, by way of LAST_TICK. */
uint32_t board_instructions(void) {
  if (SYSTICK[0] == 0) {
    SYSTICK[1] = LAST_TICK;
    SYSTICK[2] = 0;
    SYSTICK[0] = 5;
  }
  return (-SYSTICK[2] & LAST_TICK) * INSTRUCTIONS_PER_TICK;
}

#else

__attribute__((naked, section(".entry"), used)) void entry(void) {
  __asm__ volatile("la sp, stack_top\n call %0" : : "i"(start));
}

__attribute__((aligned(16), noinline)) static void request(uint32_t number, const void* argument) {
  register uint32_t a0 __asm__("a0") = number;
  register const void* a1 __asm__("a1") = argument;
  __asm__ volatile(
      ".option push\n .option norvc\n .balign 16\n slli x0, x0, 0x1f\n ebreak\n srai x0, x0, 7\n .option pop"
      : "+r"(a0)
      : "r"(a1)
      : "memory");
}

uint32_t board_instructions(void) {
  uint32_t count;
  __asm__ volatile("rdinstret %0" : "=r"(count));
  return count;
}

#endif

void board_print(const char* text) { request(0x04, text); }

void board_number(uint32_t number) {
  char digits[11];
  char* at = digits + sizeof digits - 1;
  *at = '\0';
  do {
    *--at = (char)('0' + number % 10);
    number /= 10;
  } while (number != 0);
  board_print(at);
}

__attribute__((noreturn)) void board_exit(int status) {
  const uint32_t argument[2] = {0x20026, (uint32_t)status};
  for (;;) request(0x20, argument);
}
