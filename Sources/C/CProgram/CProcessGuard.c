#include "CProcessGuard.h"

#include <sys/mman.h>
#include <sys/resource.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

// Swift cannot call prctl, which takes any number of arguments.
int keyhaul_refuse_dumps(void) {
  int result = 0;
#ifdef __linux__
  // Nobody but root may attach a debugger or read /proc/PID/mem then, and a program that dumps are piped to gets none.
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) result = -1;
#endif
  const struct rlimit none = {0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) result = -1;
  return result;
}

int keyhaul_memory_is_used_up(void) {
  const size_t count = 16 << 20;
  void *memory = mmap(NULL, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
  if (memory == MAP_FAILED) return 1;
  munmap(memory, count);
  return 0;
}

// The library moves its threshold up to the largest block that was ever given back, and has the next ones among the small
// ones then, where they stay.
void keyhaul_give_back_large_blocks(void) {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  // What is smaller stays: a buffer for each of very many files would have the system asked for it and given it back each time.
  mallopt(M_TRIM_THRESHOLD, 2 << 20);
#endif
}

void keyhaul_give_back_free_memory(void) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}
