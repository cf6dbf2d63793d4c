#ifndef KEYHAUL_CARCHIVE_SHIM_H
#define KEYHAUL_CARCHIVE_SHIM_H
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* Lets two names of one folder change places in one step. The C library's own call is hidden behind _GNU_SOURCE,
   which Swift's importer does not set. Returns -1 with errno ENOSYS where the system cannot. */
static inline long keyhaul_exchange(int folder, const char *first, const char *second) {
#if defined(__linux__) && defined(SYS_renameat2)
  return syscall(SYS_renameat2, folder, first, folder, second, 2u /* RENAME_EXCHANGE */);
#elif defined(__APPLE__)
  return renameatx_np(folder, first, folder, second, RENAME_SWAP);
#else
  (void)folder; (void)first; (void)second;
  errno = ENOSYS;
  return -1;
#endif
}
#endif
