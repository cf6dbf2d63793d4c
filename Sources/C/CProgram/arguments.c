#include "CProgramArguments.h"

// Any header of the C library defines what it calls itself.
#include <stdlib.h>

// Swift's own list is read from /proc/self/cmdline, and is empty where /proc is not mounted: in a chroot, in a small
// container, early at boot.

static char *const *arguments = NULL;

#if defined(__GLIBC__)

/// The C library calls constructors with what it calls `main` with.
///
/// Source: glibc, `csu/libc-start.c` (`call_init`); no standard says so, and musl passes nothing.
__attribute__((constructor)) static void remember(int count, char **values, char **environment) {
  (void)count, (void)environment;
  arguments = values;
}

#endif

char *const *keyhaul_program_arguments(void) { return arguments; }

// No header declares it everywhere. Source: environ(7).
extern char **environ;

char *const *keyhaul_program_environment(void) { return environ; }
