#ifndef KEYHAUL_CQRCODE_H
#define KEYHAUL_CQRCODE_H

/// The most modules in a row of a QR code (version 40).
#define KEYHAUL_QR_LARGEST_WIDTH 177

/// The failures that `keyhaul_qr_code` returns instead of a width.
enum {
  /// The bytes do not fit into a QR code.
  keyhaul_qr_too_long = 0,
  /// libqrencode 4 is not installed, or cannot be loaded.
  keyhaul_qr_no_library = -1,
  /// There is not enough memory.
  keyhaul_qr_no_memory = -2,
};

/// Makes a QR code with error correction level M. Copies of the bytes are wiped if the C library can do that (glibc).
///
/// `modules` has room for KEYHAUL_QR_LARGEST_WIDTH rows of as many bytes. It receives a byte for each module, row by row,
/// without gaps: 1 for a dark module, 0 for a light one.
///
/// Returns the number of modules in a row, or one of the values above.
int keyhaul_qr_code(const unsigned char *_Nonnull bytes, int count, unsigned char *_Nonnull modules);

#endif
