#ifndef KEYHAUL_CARCHIVE_H
#define KEYHAUL_CARCHIVE_H
#if defined(__linux__) && !defined(KEYHAUL_ARCHIVE_CALLS)
// What is called here by libarchive's names is ours (`archive_calls.c`), which looks them up. It has names of its own: a
// program that has this package and libarchive too finds each once.
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
/// Why none of libarchive's calls can be made: the system's own words. NULL where they can.
///
/// They are looked up by the first one that is made, or by this; where they are not found, again by the next. Without the
/// library one that returns a pointer returns NULL, one that returns a result ARCHIVE_FATAL, and the others do nothing. The
/// words stay until the thread asks anew.
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
