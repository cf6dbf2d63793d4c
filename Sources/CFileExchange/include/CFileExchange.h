#ifndef KEYHAUL_CFILEEXCHANGE_H
#define KEYHAUL_CFILEEXCHANGE_H

/// Lets two names of one folder change places in one step.
///
/// Returns 0, or -1 with the reason in `errno`: ENOSYS where the system has no such call.
int keyhaul_exchange(int folder, const char *first, const char *second);

#endif
