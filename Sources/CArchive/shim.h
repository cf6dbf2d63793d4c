#ifndef KEYHAUL_CARCHIVE_SHIM_H
#define KEYHAUL_CARCHIVE_SHIM_H
#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

/* A locale of one thread, for the names of entries alone: libarchive converts them to the locale's character set.
   NULL where the system has no such locale. */
static inline void *keyhaul_names_locale(const char *name) { return (void *)newlocale(LC_CTYPE_MASK, name, (locale_t)0); }

/* Gives this thread another locale, where there is one; returns the one that it had. */
static inline void *keyhaul_use_locale(void *locale) { return (void *)uselocale((locale_t)locale); }

#endif
