// Intercepts the file calls of a program to the C library, including those of SQLite and libarchive (LD_PRELOAD), and
// lets one of them fail, or records the changes on the disk.
//
//   KEYHAUL_CALLS_ROOT   only calls for paths below this folder count
//   KEYHAUL_CALLS_LOG    changes are appended to this file: "operation TAB path TAB path TAB offset TAB length LF", then
//                        the bytes
//   KEYHAUL_CALLS_FAIL   the number of the call that fails, from 1
//   KEYHAUL_CALLS_ERRNO  the error: a number, or 0 for a read or write of half of its bytes
//   KEYHAUL_CALLS_NAMES  each call is written to this file, on its own line: "name:file"
//   KEYHAUL_CALLS_COUNT  when the program ends, it writes the number of calls and the name of the failed call to this
//                        file
//
// An unknown call that changes a file would be missed. The calls below that change files and are not supported end the
// program.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char root[PATH_MAX];
static int log_file = -1, names_file = -1, failing_errno;
static long failing = -1, count;
static char failed_name[64] = "none";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// The function of the C library that a function here replaces.
#define REAL(name) ((typeof(&name))real(#name))
static void *real(const char *name) {
  void *function = dlsym(RTLD_NEXT, name);
  if (!function) abort();
  return function;
}

// Stores the path of an open file, or an empty path.
static void path_of_file(int file, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  path[length < 0 ? 0 : length] = 0;
}

// Stores the path of a name in a folder, or an empty path if it is too long.
static void path_of_name(int folder, const char *name, char *path) {
  char start[PATH_MAX] = "";
  if (name[0] != '/') {
    if (folder == AT_FDCWD) {
      if (!getcwd(start, sizeof start)) start[0] = 0;
    } else {
      path_of_file(folder, start);
    }
    strncat(start, "/", sizeof start - strlen(start) - 1);
  }
  if (snprintf(path, PATH_MAX, "%s%s", start, name) >= PATH_MAX) path[0] = 0;
}

// Returns whether a path is below KEYHAUL_CALLS_ROOT.
static int is_below(const char *path) {
  size_t length = strlen(root);
  return length && strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == 0);
}

__attribute__((constructor)) static void start(void) {
  const char *text = getenv("KEYHAUL_CALLS_ROOT");
  if (!text || !realpath(text, root)) root[0] = 0;
  if ((text = getenv("KEYHAUL_CALLS_LOG"))) {
    log_file = (int)syscall(SYS_openat, AT_FDCWD, text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }
  if ((text = getenv("KEYHAUL_CALLS_NAMES"))) {
    names_file = (int)syscall(SYS_openat, AT_FDCWD, text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  }
  if ((text = getenv("KEYHAUL_CALLS_FAIL"))) failing = atol(text);
  if ((text = getenv("KEYHAUL_CALLS_ERRNO"))) failing_errno = atoi(text);
}

__attribute__((destructor)) static void end(void) {
  const char *text = getenv("KEYHAUL_CALLS_COUNT");
  if (!text) return;
  char line[128];
  int length = snprintf(line, sizeof line, "%ld %s\n", count, failed_name);
  int file = (int)syscall(SYS_openat, AT_FDCWD, text, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file >= 0 && syscall(SYS_write, file, line, length) < 0) abort();
}

// Counts a call for a path, and returns whether it is the one that fails.
static int should_fail(const char *name, const char *path) {
  if (!is_below(path)) return 0;
  pthread_mutex_lock(&lock);
  int is_failing = ++count == failing;
  const char *base = strrchr(path, '/');
  char text[64];
  snprintf(text, sizeof text, "%s:%.40s", name, base ? base + 1 : path);
  if (is_failing) strcpy(failed_name, text);
  if (names_file >= 0) {
    size_t length = strlen(text);
    text[length] = '\n';
    if (syscall(SYS_write, names_file, text, length + 1) < 0) abort();
  }
  pthread_mutex_unlock(&lock);
  return is_failing;
}

// Appends a change to the log.
static void record(
  const char *operation, const char *path, const char *other, long offset, long length, const void *bytes
) {
  if (log_file < 0 || !is_below(path)) return;
  char line[2 * PATH_MAX + 64];
  int count = snprintf(line, sizeof line, "%s\t%s\t%s\t%ld\t%ld\n", operation, path, other, offset, length);
  pthread_mutex_lock(&lock);
  if (syscall(SYS_write, log_file, line, count) != count) abort();
  if (bytes && syscall(SYS_write, log_file, bytes, length) != length) abort();
  pthread_mutex_unlock(&lock);
}

// Counts a call for an open file, and sets `path`. If the call must fail, it returns with the error. With the error 0, the
// statements up to END run, which reduce the number of bytes.
#define CHECK_FILE(name, file, failure) \
  char path[PATH_MAX]; \
  path_of_file(file, path); \
  if (should_fail(name, path)) { \
    if (failing_errno) { errno = failing_errno; return failure; }
#define END }
// Counts a call for a name, and sets `path`. If the call must fail, it returns with the error.
#define CHECK_NAME(name, folder, text) \
  char path[PATH_MAX]; \
  path_of_name(folder, text, path); \
  if (should_fail(name, path) && failing_errno) { errno = failing_errno; return -1; }

// Records that a file was created or truncated when it was opened.
static int record_open(int file, int flags, const char *path) {
  if (file >= 0 && (flags & O_CREAT)) record("create", path, "", 0, 0, NULL);
  if (file >= 0 && (flags & O_TRUNC)) record("truncate", path, "", 0, 0, NULL);
  return file;
}
// Reads the third argument of `open`, which only some flags have.
#define MODE \
  mode_t mode = 0; \
  if (flags & (O_CREAT | __O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); }
#define OPEN(name) \
  int name(const char *text, int flags, ...) { \
    MODE CHECK_NAME("open", AT_FDCWD, text) return record_open(REAL(name)(text, flags, mode), flags, path); }
#define OPENAT(name) \
  int name(int folder, const char *text, int flags, ...) { \
    MODE CHECK_NAME("open", folder, text) return record_open(REAL(name)(folder, text, flags, mode), flags, path); }
OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64)

#define READS() \
    CHECK_FILE("read", file, -1) bytes = (bytes + 1) / 2; END
ssize_t read(int file, void *target, size_t bytes) { READS() return REAL(read)(file, target, bytes); }
ssize_t pread(int file, void *target, size_t bytes, off_t at) { READS() return REAL(pread)(file, target, bytes, at); }
ssize_t pread64(int file, void *target, size_t bytes, off64_t at) { READS() return REAL(pread64)(file, target, bytes, at); }

ssize_t write(int file, const void *source, size_t bytes) {
  CHECK_FILE("write", file, -1) bytes = (bytes + 1) / 2; END
  ssize_t written = REAL(write)(file, source, bytes);
  if (written > 0 && is_below(path)) record("write", path, "", lseek(file, 0, SEEK_CUR) - written, written, source);
  return written;
}
#define PWRITE(name, offset) \
  ssize_t name(int file, const void *source, size_t bytes, offset at) { \
    CHECK_FILE("write", file, -1) bytes = (bytes + 1) / 2; END \
    ssize_t written = REAL(name)(file, source, bytes, at); \
    if (written > 0) record("write", path, "", at, written, source); \
    return written; }
PWRITE(pwrite, off_t) PWRITE(pwrite64, off64_t)

// Defines a call for an open file that is recorded if it succeeds.
#define ON_FILE(name, signature, call, operation, length) \
  int name signature { \
    CHECK_FILE(#name, file, -1) END \
    int result = REAL(name) call; \
    if (result == 0) record(operation, path, "", 0, length, NULL); \
    return result; }
ON_FILE(fsync, (int file), (file), "sync", 0)
ON_FILE(fdatasync, (int file), (file), "sync", 0)
ON_FILE(ftruncate, (int file, off_t to), (file, to), "truncate", to)
ON_FILE(ftruncate64, (int file, off64_t to), (file, to), "truncate", to)
ON_FILE(fchmod, (int file, mode_t mode), (file, mode), "mode", 0)

int mkdirat(int folder, const char *text, mode_t mode) {
  CHECK_NAME("mkdir", folder, text)
  int result = REAL(mkdirat)(folder, text, mode);
  if (result == 0) record("mkdir", path, "", 0, 0, NULL);
  return result;
}
int mkdir(const char *text, mode_t mode) { return mkdirat(AT_FDCWD, text, mode); }
int unlinkat(int folder, const char *text, int flags) {
  CHECK_NAME("unlink", folder, text)
  int result = REAL(unlinkat)(folder, text, flags);
  if (result == 0) record("remove", path, "", 0, 0, NULL);
  return result;
}
int unlink(const char *text) { return unlinkat(AT_FDCWD, text, 0); }
int rmdir(const char *text) { return unlinkat(AT_FDCWD, text, AT_REMOVEDIR); }

// The arguments of a call with two names.
struct names { int old_folder; const char *old; int new_folder; const char *new; int flags; };

// Counts and records a call with two names.
static int call_with_names(const char *operation, const struct names *names, int (*call)(const struct names *)) {
  CHECK_NAME(operation, names->old_folder, names->old)
  char new_path[PATH_MAX];
  path_of_name(names->new_folder, names->new, new_path);
  int result = call(names);
  if (result == 0) record(operation, path, new_path, 0, 0, NULL);
  return result;
}
static int real_rename(const struct names *names) {
  return REAL(renameat)(names->old_folder, names->old, names->new_folder, names->new);
}
static int real_link(const struct names *names) {
  return REAL(linkat)(names->old_folder, names->old, names->new_folder, names->new, names->flags);
}
static int real_exchange(const struct names *names) {
  return (int)REAL(syscall)(
    SYS_renameat2, names->old_folder, names->old, names->new_folder, names->new, names->flags);
}
int renameat(int old_folder, const char *old, int new_folder, const char *new) {
  struct names names = {old_folder, old, new_folder, new, 0};
  return call_with_names("rename", &names, real_rename);
}
int rename(const char *old, const char *new) { return renameat(AT_FDCWD, old, AT_FDCWD, new); }
int linkat(int old_folder, const char *old, int new_folder, const char *new, int flags) {
  struct names names = {old_folder, old, new_folder, new, flags};
  return call_with_names("link", &names, real_link);
}
int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }

// Calls that the program makes by number.
long syscall(long number, ...) {
  va_list more;
  va_start(more, number);
  long a[6];
  for (int i = 0; i < 6; i++) a[i] = va_arg(more, long);
  va_end(more);
  if (number == SYS_renameat2) {
    struct names names = {(int)a[0], (const char *)a[1], (int)a[2], (const char *)a[3], (int)a[4]};
    return call_with_names("exchange", &names, real_exchange);
  }
  if (number == SYS_syncfs) {
    CHECK_FILE("syncfs", (int)a[0], -1) END
    long result = REAL(syscall)(number, a[0]);
    if (result == 0) record("syncall", path, "", 0, 0, NULL);
    return result;
  }
  return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

// Defines a call that ends the program if it would change a file below KEYHAUL_CALLS_ROOT.
#define UNSUPPORTED(type, name, signature, call, file) \
  type name signature { \
    char path[PATH_MAX]; \
    path_of_file(file, path); \
    if (is_below(path)) abort(); \
    return REAL(name) call; }
UNSUPPORTED(ssize_t, writev, (int file, const struct iovec *parts, int n), (file, parts, n), file)
UNSUPPORTED(ssize_t, pwritev, (int file, const struct iovec *parts, int n, off_t at), (file, parts, n, at), file)
UNSUPPORTED(int, fallocate, (int file, int mode, off_t at, off_t n), (file, mode, at, n), file)
UNSUPPORTED(int, posix_fallocate, (int file, off_t at, off_t n), (file, at, n), file)
UNSUPPORTED(int, posix_fallocate64, (int file, off64_t at, off64_t n), (file, at, n), file)
UNSUPPORTED(
  ssize_t, copy_file_range, (int from, off64_t *from_at, int file, off64_t *at, size_t n, unsigned flags),
  (from, from_at, file, at, n, flags), file)
