#ifndef KEYHAUL_CARCHIVE_SHIM_H
#define KEYHAUL_CARCHIVE_SHIM_H
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* A locale of one thread, for the names of entries alone: libarchive converts them to the locale's character set.
   NULL where the system has no such locale. */
static inline void *keyhaul_names_locale(const char *name) { return (void *)newlocale(LC_CTYPE_MASK, name, (locale_t)0); }

/* Gives this thread another locale, where there is one; returns the one that it had. */
static inline void *keyhaul_use_locale(void *locale) { return (void *)uselocale((locale_t)locale); }

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
