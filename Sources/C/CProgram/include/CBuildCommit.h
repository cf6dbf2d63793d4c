#ifndef KEYHAUL_CBUILDCOMMIT_H
#define KEYHAUL_CBUILDCOMMIT_H

/// The commit that this program was built from, in hexadecimal digits; empty where the build was not told.
const char *keyhaul_build_commit(void);

#endif
