#ifndef KEYHAUL_CBUNDLEDFIXTURES_H
#define KEYHAUL_CBUNDLEDFIXTURES_H

#include <stddef.h>

/// A device description that is embedded in the program.
struct keyhaul_fixture {
  /// The name of its file without the extension, NUL-terminated.
  const char *name;
  /// The file's contents, `size` bytes.
  const unsigned char *bytes;
  size_t size;
};

/// Returns all descriptions and their number in `count`. They are valid until the process ends.
const struct keyhaul_fixture *keyhaul_fixtures(size_t *count);

#endif
