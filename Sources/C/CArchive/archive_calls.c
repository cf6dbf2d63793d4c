// Forwards calls to libarchive, which is loaded at the first call. Linking it would load it in every run of the program, and
// on Debian also libxml2 and ICU, which takes a quarter of the time of a short run.
//
// With KEYHAUL_LINKS_LIBARCHIVE (`Package.swift`), the calls are forwarded to the linked library.

// In this file, the names are those of the library.
#define KEYHAUL_ARCHIVE_CALLS
#include "CArchive.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

// The name of libarchive 3 on every Linux. The header of the build (`archive.h`) determines the available calls.
#if ARCHIVE_VERSION_NUMBER >= 4000000
#error "the library of libarchive 4 has another name, and its calls may have other forms"
#endif
#define LIBRARY "libarchive.so.13"

// Type, name, parameters, arguments, and the result if the library is missing.
#define CALLS(CALL, SET)                                                                                               \
  CALL(int, archive_version_number, (void), (), 0)                                                                     \
  CALL(int, archive_errno, (struct archive *a), (a), 0)                                                                \
  CALL(const char *, archive_error_string, (struct archive *a), (a), NULL)                                             \
  CALL(la_int64_t, archive_filter_bytes, (struct archive *a, int filter), (a, filter), 0)                              \
  CALL(int, archive_filter_count, (struct archive *a), (a), 0)                                                         \
  CALL(struct archive *, archive_read_new, (void), (), NULL)                                                           \
  CALL(int, archive_read_free, (struct archive *a), (a), ARCHIVE_FATAL)                                                \
  CALL(int, archive_read_support_format_tar, (struct archive *a), (a), ARCHIVE_FATAL)                                  \
  CALL(int, archive_read_support_format_zip_seekable, (struct archive *a), (a), ARCHIVE_FATAL)                         \
  CALL(int, archive_read_support_format_raw, (struct archive *a), (a), ARCHIVE_FATAL)                                  \
  CALL(int, archive_read_support_filter_gzip, (struct archive *a), (a), ARCHIVE_FATAL)                                 \
  CALL(int, archive_read_support_filter_zstd, (struct archive *a), (a), ARCHIVE_FATAL)                                 \
  CALL(int, archive_read_set_callback_data, (struct archive *a, void *data), (a, data), ARCHIVE_FATAL)                 \
  CALL(int, archive_read_set_read_callback, (struct archive *a, archive_read_callback *read), (a, read), ARCHIVE_FATAL)\
  CALL(int, archive_read_set_skip_callback, (struct archive *a, archive_skip_callback *skip), (a, skip), ARCHIVE_FATAL)\
  CALL(int, archive_read_set_seek_callback, (struct archive *a, archive_seek_callback *seek), (a, seek), ARCHIVE_FATAL)\
  CALL(int, archive_read_open1, (struct archive *a), (a), ARCHIVE_FATAL)                                               \
  CALL(int, archive_read_next_header, (struct archive *a, struct archive_entry **entry), (a, entry), ARCHIVE_FATAL)    \
  CALL(la_ssize_t, archive_read_data, (struct archive *a, void *bytes, size_t count), (a, bytes, count), ARCHIVE_FATAL)\
  CALL(int, archive_read_data_skip, (struct archive *a), (a), ARCHIVE_FATAL)                                           \
  CALL(struct archive *, archive_write_new, (void), (), NULL)                                                          \
  CALL(int, archive_write_free, (struct archive *a), (a), ARCHIVE_FATAL)                                               \
  CALL(int, archive_write_set_format_pax_restricted, (struct archive *a), (a), ARCHIVE_FATAL)                          \
  CALL(int, archive_write_set_format_zip, (struct archive *a), (a), ARCHIVE_FATAL)                                     \
  CALL(int, archive_write_zip_set_compression_store, (struct archive *a), (a), ARCHIVE_FATAL)                          \
  CALL(int, archive_write_add_filter_gzip, (struct archive *a), (a), ARCHIVE_FATAL)                                    \
  CALL(int, archive_write_add_filter_zstd, (struct archive *a), (a), ARCHIVE_FATAL)                                    \
  CALL(int, archive_write_set_filter_option,                                                                           \
       (struct archive *a, const char *filter, const char *option, const char *value), (a, filter, option, value),     \
       ARCHIVE_FATAL)                                                                                                  \
  CALL(int, archive_write_set_bytes_per_block, (struct archive *a, int count), (a, count), ARCHIVE_FATAL)              \
  CALL(int, archive_write_set_bytes_in_last_block, (struct archive *a, int count), (a, count), ARCHIVE_FATAL)          \
  CALL(int, archive_write_open2,                                                                                       \
       (struct archive *a, void *data, archive_open_callback *open, archive_write_callback *write,                     \
        archive_close_callback *close, archive_free_callback *free),                                                   \
       (a, data, open, write, close, free), ARCHIVE_FATAL)                                                             \
  CALL(int, archive_write_header, (struct archive *a, struct archive_entry *entry), (a, entry), ARCHIVE_FATAL)         \
  CALL(la_ssize_t, archive_write_data, (struct archive *a, const void *bytes, size_t count), (a, bytes, count),        \
       ARCHIVE_FATAL)                                                                                                  \
  CALL(int, archive_write_finish_entry, (struct archive *a), (a), ARCHIVE_FATAL)                                       \
  CALL(int, archive_write_close, (struct archive *a), (a), ARCHIVE_FATAL)                                              \
  CALL(struct archive_entry *, archive_entry_new, (void), (), NULL)                                                    \
  SET(archive_entry_free, (struct archive_entry *e), (e))                                                              \
  CALL(const char *, archive_entry_pathname, (struct archive_entry *e), (e), NULL)                                     \
  CALL(const char *, archive_entry_hardlink, (struct archive_entry *e), (e), NULL)                                     \
  CALL(const char *, archive_entry_symlink, (struct archive_entry *e), (e), NULL)                                      \
  CALL(int, archive_entry_is_encrypted, (struct archive_entry *e), (e), 0)                                             \
  CALL(int, archive_entry_sparse_count, (struct archive_entry *e), (e), 0)                                             \
  CALL(__LA_MODE_T, archive_entry_filetype, (struct archive_entry *e), (e), 0)                                         \
  CALL(int, archive_entry_size_is_set, (struct archive_entry *e), (e), 0)                                              \
  CALL(la_int64_t, archive_entry_size, (struct archive_entry *e), (e), 0)                                              \
  CALL(time_t, archive_entry_mtime, (struct archive_entry *e), (e), 0)                                                 \
  SET(archive_entry_copy_pathname, (struct archive_entry *e, const char *name), (e, name))                             \
  SET(archive_entry_set_mode, (struct archive_entry *e, __LA_MODE_T mode), (e, mode))                                  \
  SET(archive_entry_set_uid, (struct archive_entry *e, la_int64_t user), (e, user))                                    \
  SET(archive_entry_set_gid, (struct archive_entry *e, la_int64_t group), (e, group))                                  \
  SET(archive_entry_set_size, (struct archive_entry *e, la_int64_t count), (e, count))                                 \
  SET(archive_entry_set_mtime, (struct archive_entry *e, time_t seconds, long nanoseconds), (e, seconds, nanoseconds))

#ifdef KEYHAUL_LINKS_LIBARCHIVE

const char *keyhaul_archive_absence(void) { return NULL; }
const char *keyhaul_archive_absence_in(const char *library) { return (void)library, NULL; }

#define FORWARD_RESULT(name, arguments, absent) name arguments
#define FORWARD(name, arguments) name arguments

#else

#define CALL(type, name, parameters, arguments, absent) __typeof__(&name) name;
#define SET(name, parameters, arguments) __typeof__(&name) name;
struct calls {
  CALLS(CALL, SET)
};
#undef CALL
#undef SET

/// Returns the system's error text, valid until the thread's next lookup.
static const char *reason(void) {
  const char *const text = dlerror();
  return text ? text : "the system gave no reason";
}

/// Looks up all calls in a library. Returns NULL, or the reason why one is missing.
static const char *find_calls(const char *library, struct calls *calls) {
  void *const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return reason();
// POSIX specifies this conversion of a data pointer to a function pointer (`dlsym`).
#define CALL(type, name, parameters, arguments, absent)                                                                \
  if (!(*(void **)&calls->name = dlsym(handle, #name))) return reason();
#define SET(name, parameters, arguments) CALL(, name, , , )
  CALLS(CALL, SET)
#undef CALL
#undef SET
  return NULL;
}

static pthread_mutex_t loading_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct calls loaded_calls;
static atomic_bool is_loaded;

/// Loads the library if necessary. A failure is not cached, because it may be caused by a lack of memory or descriptors.
static bool load_calls(void) {
  if (atomic_load_explicit(&is_loaded, memory_order_acquire)) return true;
  (void)pthread_mutex_lock(&loading_mutex);
  bool is_available = atomic_load_explicit(&is_loaded, memory_order_relaxed);
  struct calls calls;
  if (!is_available && !find_calls(LIBRARY, &calls)) {
    loaded_calls = calls;
    atomic_store_explicit(&is_loaded, true, memory_order_release);
    is_available = true;
  }
  (void)pthread_mutex_unlock(&loading_mutex);
  return is_available;
}

const char *keyhaul_archive_absence(void) {
  struct calls calls;
  return load_calls() ? NULL : find_calls(LIBRARY, &calls);
}

const char *keyhaul_archive_absence_in(const char *library) {
  struct calls calls;
  return find_calls(library, &calls);
}

#define FORWARD_RESULT(name, arguments, absent) load_calls() ? loaded_calls.name arguments : absent
#define FORWARD(name, arguments) if (load_calls()) loaded_calls.name arguments

#endif

#define CALL(type, name, parameters, arguments, absent)                                                                \
  type keyhaul_##name parameters { return FORWARD_RESULT(name, arguments, absent); }                                   \
  _Static_assert(__builtin_types_compatible_p(__typeof__(keyhaul_##name), __typeof__(name)), #name);
#define SET(name, parameters, arguments)                                                                               \
  void keyhaul_##name parameters { FORWARD(name, arguments); }                                                         \
  _Static_assert(__builtin_types_compatible_p(__typeof__(keyhaul_##name), __typeof__(name)), #name);
CALLS(CALL, SET)
