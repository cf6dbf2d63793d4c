#ifndef KEYHAUL_CBUNDLEDFIXTURES_H
#define KEYHAUL_CBUNDLEDFIXTURES_H

#include <stddef.h>

/// A device description that the program carries in itself.
struct keyhaul_fixture {
  /// The name of its file without the ending, up to a NUL.
  const char *name;
  /// The file's bytes, `size` of them.
  const unsigned char *bytes;
  size_t size;
};

/// All descriptions, `count` of them, there as long as the process.
const struct keyhaul_fixture *keyhaul_fixtures(size_t *count);

#endif
