#include "CProcessGuard.h"

#include <sys/resource.h>
#ifdef __linux__
#include <sys/prctl.h>
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
