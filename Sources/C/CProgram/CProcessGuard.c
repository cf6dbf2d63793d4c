#include "CProcessGuard.h"

#include <sys/mman.h>
#include <sys/resource.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

// Swift cannot call prctl, which is variadic.
int keyhaul_refuse_dumps(void) {
  int result = 0;
#ifdef __linux__
  // Then only root may attach a debugger or read /proc/PID/mem, and no core dump is piped to a program.
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

// The library raises its threshold to the size of the largest freed block, and then allocates blocks of that size among the
// small ones, which are not returned to the system.
void keyhaul_give_back_large_blocks(void) {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  // Smaller blocks are reused, because returning them would cost two system calls for the buffer of every file.
  mallopt(M_TRIM_THRESHOLD, 2 << 20);
#endif
}

void keyhaul_give_back_free_memory(void) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}
