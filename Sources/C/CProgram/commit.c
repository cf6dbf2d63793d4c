#include "CBuildCommit.h"

// A define of this one file, so that another commit compiles nothing but it.
#ifndef KEYHAUL_COMMIT
#define KEYHAUL_COMMIT ""
#endif

const char *keyhaul_build_commit(void) { return KEYHAUL_COMMIT; }
