#include "CProgramArguments.h"

// Any header of the C library defines its name.
#include <stdlib.h>

// Swift reads the arguments from /proc/self/cmdline, which is empty if /proc is not mounted: in a chroot, in a small
// container, or early at boot.

static char *const *arguments = NULL;

#if defined(__GLIBC__)

/// Receives the arguments of `main`, which the C library also passes to constructors.
///
/// Source: glibc, `csu/libc-start.c` (`call_init`). No standard requires this, and musl passes nothing.
__attribute__((constructor)) static void remember(int count, char **values, char **environment) {
  (void)count, (void)environment;
  arguments = values;
}

#endif

char *const *keyhaul_program_arguments(void) { return arguments; }

// Not every C library declares it in a header. Source: environ(7).
extern char **environ;

char *const *keyhaul_program_environment(void) { return environ; }
