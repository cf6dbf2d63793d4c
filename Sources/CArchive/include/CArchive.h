#ifndef KEYHAUL_CARCHIVE_H
#define KEYHAUL_CARCHIVE_H
#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

#ifdef __linux__
/// Why none of libarchive's calls can be made: the system's own words. NULL where they can.
///
/// They are looked up by the first one that is made (`archive_calls.c`), or by this. Without the library one that returns a
/// pointer returns NULL, one that returns a result ARCHIVE_FATAL, and the others do nothing.
const char *keyhaul_archive_absence(void);

/// The same of a library with another name, of which nothing is called. The words stay until the thread asks anew.
const char *keyhaul_archive_absence_in(const char *library);
#else
/* Linked: the program would not have started without it. */
static inline const char *keyhaul_archive_absence(void) { return NULL; }
#endif

/* A locale of one thread, for the names of entries alone: libarchive converts them to the locale's character set.
   NULL where the system has no such locale. */
static inline void *keyhaul_names_locale(const char *name) { return (void *)newlocale(LC_CTYPE_MASK, name, (locale_t)0); }

/* Gives this thread another locale, where there is one; returns the one that it had. */
static inline void *keyhaul_use_locale(void *locale) { return (void *)uselocale((locale_t)locale); }

#endif
