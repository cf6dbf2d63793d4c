#include "CFileCalls.h"

#include <errno.h>
#include <stdio.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

// The C library's own call is hidden behind _GNU_SOURCE, which Swift's importer does not set, and older ones lack it.
int keyhaul_exchange(int folder, const char *first, const char *second) {
#if defined(__linux__) && defined(SYS_renameat2)
  return (int)syscall(SYS_renameat2, folder, first, folder, second, 2u /* RENAME_EXCHANGE */);
#elif defined(__APPLE__)
  return renameatx_np(folder, first, folder, second, RENAME_SWAP);
#else
  (void)folder, (void)first, (void)second;
  errno = ENOSYS;
  return -1;
#endif
}

int keyhaul_rename_new(int folder, const char *old, const char *new) {
#if defined(__linux__) && defined(SYS_renameat2)
  return (int)syscall(SYS_renameat2, folder, old, folder, new, 1u /* RENAME_NOREPLACE */);
#elif defined(__APPLE__)
  return renameatx_np(folder, old, folder, new, RENAME_EXCL);
#else
  (void)folder, (void)old, (void)new;
  errno = ENOSYS;
  return -1;
#endif
}

// The C library hides the name of the flag as well.
int keyhaul_sync_file_system(int file) {
#if defined(__linux__) && defined(SYS_syncfs)
  return (int)syscall(SYS_syncfs, file);
#else
  (void)file;
  errno = ENOSYS;
  return -1;
#endif
}
