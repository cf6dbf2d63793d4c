#include "CThreadStack.h"

#include <string.h>

__attribute__((noinline)) void keyhaul_wipe_stack(void) {
  unsigned char below[64 * 1024];
  memset(below, 0, sizeof below);
  // The bytes count as read, so that the compiler keeps the writes.
  __asm__ volatile("" : : "r"(below) : "memory");
}
