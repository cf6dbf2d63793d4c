// Calls libqrencode, which is loaded when the first QR code is made: few commands need it.
//
// With KEYHAUL_LINKS_LIBQRENCODE (`Package.swift`), the library is linked instead.

#include "CQRCode.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

// The interface of libqrencode 4, of which only these two calls are used. Source: `qrencode.h`.
typedef struct {
  int version;
  int width;
  unsigned char *data;
} QRcode;
enum { level_medium = 1 };
typedef QRcode *encode_data(int size, const unsigned char *data, int version, int level);
typedef void free_code(QRcode *code);

#ifdef KEYHAUL_LINKS_LIBQRENCODE
encode_data QRcode_encodeData;
free_code QRcode_free;
#endif

static int load(encode_data **encode, free_code **release) {
#ifdef KEYHAUL_LINKS_LIBQRENCODE
  *encode = QRcode_encodeData;
  *release = QRcode_free;
#else
#ifdef __APPLE__
  void *const library = dlopen("libqrencode.4.dylib", RTLD_NOW | RTLD_LOCAL);
#else
  void *const library = dlopen("libqrencode.so.4", RTLD_NOW | RTLD_LOCAL);
#endif
  if (library == NULL) return 0;
  *encode = (encode_data *)dlsym(library, "QRcode_encodeData");
  *release = (free_code *)dlsym(library, "QRcode_free");
#endif
  return *encode != NULL && *release != NULL;
}

int keyhaul_qr_code(const unsigned char *bytes, int count, unsigned char *modules) {
  encode_data *encode = NULL;
  free_code *release = NULL;
  if (!load(&encode, &release)) return keyhaul_qr_no_library;
#ifdef __GLIBC__
  // The library frees its copies of the bytes without wiping them. Until it is done, freed memory is overwritten.
  mallopt(M_PERTURB, 0xA5);
#endif
  errno = 0;
  QRcode *const code = encode(count, bytes, 0, level_medium);
  int width = errno == ENOMEM ? keyhaul_qr_no_memory : keyhaul_qr_too_long;
  if (code != NULL) {
    width = code->width <= KEYHAUL_QR_LARGEST_WIDTH ? code->width : keyhaul_qr_too_long;
    // The lowest bit of a module is its color.
    for (int index = 0; index < width * width; index++) modules[index] = code->data[index] & 1;
    release(code);
  }
#ifdef __GLIBC__
  mallopt(M_PERTURB, 0);
#endif
  return width;
}
