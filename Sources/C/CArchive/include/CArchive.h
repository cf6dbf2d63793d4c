#ifndef KEYHAUL_CARCHIVE_H
#define KEYHAUL_CARCHIVE_H
#if defined(__linux__) && !defined(KEYHAUL_ARCHIVE_CALLS)
// libarchive's names are defined as names of Keyhaul's own functions (`archive_calls.c`), which look up the calls. A
// program that links both this package and libarchive therefore has no duplicate symbols.
#pragma redefine_extname archive_entry_copy_pathname keyhaul_archive_entry_copy_pathname
#pragma redefine_extname archive_entry_filetype keyhaul_archive_entry_filetype
#pragma redefine_extname archive_entry_free keyhaul_archive_entry_free
#pragma redefine_extname archive_entry_hardlink keyhaul_archive_entry_hardlink
#pragma redefine_extname archive_entry_is_encrypted keyhaul_archive_entry_is_encrypted
#pragma redefine_extname archive_entry_mtime keyhaul_archive_entry_mtime
#pragma redefine_extname archive_entry_new keyhaul_archive_entry_new
#pragma redefine_extname archive_entry_pathname keyhaul_archive_entry_pathname
#pragma redefine_extname archive_entry_set_gid keyhaul_archive_entry_set_gid
#pragma redefine_extname archive_entry_set_mode keyhaul_archive_entry_set_mode
#pragma redefine_extname archive_entry_set_mtime keyhaul_archive_entry_set_mtime
#pragma redefine_extname archive_entry_set_size keyhaul_archive_entry_set_size
#pragma redefine_extname archive_entry_set_uid keyhaul_archive_entry_set_uid
#pragma redefine_extname archive_entry_size keyhaul_archive_entry_size
#pragma redefine_extname archive_entry_size_is_set keyhaul_archive_entry_size_is_set
#pragma redefine_extname archive_entry_sparse_count keyhaul_archive_entry_sparse_count
#pragma redefine_extname archive_entry_symlink keyhaul_archive_entry_symlink
#pragma redefine_extname archive_errno keyhaul_archive_errno
#pragma redefine_extname archive_error_string keyhaul_archive_error_string
#pragma redefine_extname archive_filter_bytes keyhaul_archive_filter_bytes
#pragma redefine_extname archive_filter_count keyhaul_archive_filter_count
#pragma redefine_extname archive_read_data keyhaul_archive_read_data
#pragma redefine_extname archive_read_data_skip keyhaul_archive_read_data_skip
#pragma redefine_extname archive_read_free keyhaul_archive_read_free
#pragma redefine_extname archive_read_new keyhaul_archive_read_new
#pragma redefine_extname archive_read_next_header keyhaul_archive_read_next_header
#pragma redefine_extname archive_read_open1 keyhaul_archive_read_open1
#pragma redefine_extname archive_read_set_callback_data keyhaul_archive_read_set_callback_data
#pragma redefine_extname archive_read_set_read_callback keyhaul_archive_read_set_read_callback
#pragma redefine_extname archive_read_set_seek_callback keyhaul_archive_read_set_seek_callback
#pragma redefine_extname archive_read_set_skip_callback keyhaul_archive_read_set_skip_callback
#pragma redefine_extname archive_read_support_filter_gzip keyhaul_archive_read_support_filter_gzip
#pragma redefine_extname archive_read_support_filter_zstd keyhaul_archive_read_support_filter_zstd
#pragma redefine_extname archive_read_support_format_raw keyhaul_archive_read_support_format_raw
#pragma redefine_extname archive_read_support_format_tar keyhaul_archive_read_support_format_tar
#pragma redefine_extname archive_read_support_format_zip_seekable keyhaul_archive_read_support_format_zip_seekable
#pragma redefine_extname archive_version_number keyhaul_archive_version_number
#pragma redefine_extname archive_write_add_filter_gzip keyhaul_archive_write_add_filter_gzip
#pragma redefine_extname archive_write_add_filter_zstd keyhaul_archive_write_add_filter_zstd
#pragma redefine_extname archive_write_close keyhaul_archive_write_close
#pragma redefine_extname archive_write_data keyhaul_archive_write_data
#pragma redefine_extname archive_write_finish_entry keyhaul_archive_write_finish_entry
#pragma redefine_extname archive_write_free keyhaul_archive_write_free
#pragma redefine_extname archive_write_header keyhaul_archive_write_header
#pragma redefine_extname archive_write_new keyhaul_archive_write_new
#pragma redefine_extname archive_write_open2 keyhaul_archive_write_open2
#pragma redefine_extname archive_write_set_bytes_in_last_block keyhaul_archive_write_set_bytes_in_last_block
#pragma redefine_extname archive_write_set_bytes_per_block keyhaul_archive_write_set_bytes_per_block
#pragma redefine_extname archive_write_set_filter_option keyhaul_archive_write_set_filter_option
#pragma redefine_extname archive_write_set_format_pax_restricted keyhaul_archive_write_set_format_pax_restricted
#pragma redefine_extname archive_write_set_format_zip keyhaul_archive_write_set_format_zip
#pragma redefine_extname archive_write_zip_set_compression_store keyhaul_archive_write_zip_set_compression_store
#endif
#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

#ifdef __linux__
/// Returns the system's reason why libarchive is not available, or NULL if it is available.
///
/// The library is loaded by this function or by the first call, and after a failure again by the next one. Without the
/// library, calls return NULL or ARCHIVE_FATAL, or do nothing. The text is valid until the thread's next lookup.
const char *keyhaul_archive_absence(void);

/// Returns the reason why a library with another name is not available, or NULL. The text is valid until the thread's next
/// lookup.
const char *keyhaul_archive_absence_in(const char *library);
#else
/* The library is linked, so the program would not start without it. */
static inline const char *keyhaul_archive_absence(void) { return NULL; }
#endif

/* Returns a locale for the names of entries, which libarchive converts to the locale's character set, or NULL if the system
   does not have it. */
static inline void *keyhaul_names_locale(const char *name) { return (void *)newlocale(LC_CTYPE_MASK, name, (locale_t)0); }

/* Sets the locale of this thread unless it is NULL, and returns the previous one. */
static inline void *keyhaul_use_locale(void *locale) { return (void *)uselocale((locale_t)locale); }

#endif
