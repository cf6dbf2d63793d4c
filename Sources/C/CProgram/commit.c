#include "CBuildCommit.h"

// The commit is a macro only for this file, so that a new commit recompiles nothing else.
#ifndef KEYHAUL_COMMIT
#define KEYHAUL_COMMIT ""
#endif

const char *keyhaul_build_commit(void) { return KEYHAUL_COMMIT; }
