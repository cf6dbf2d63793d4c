#ifndef KEYHAUL_CBUILDCOMMIT_H
#define KEYHAUL_CBUILDCOMMIT_H

/// Returns the commit of this program in hexadecimal digits, or an empty text if the build did not specify it.
const char *keyhaul_build_commit(void);

#endif
