#ifndef KEYHAUL_CKEYDERIVATION_H
#define KEYHAUL_CKEYDERIVATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The hash function of the HMAC.
typedef enum { keyhaul_sha1, keyhaul_sha256 } keyhaul_hash;

/// The state of one block of PBKDF2-HMAC (RFC 8018 §5.2): 20 bytes with SHA-1, 32 with SHA-256. It contains key material
/// and must be wiped with `keyhaul_pbkdf2_finish`.
typedef struct {
  keyhaul_hash hash;
  /// The hash states after the key xored with ipad and opad, constant in every iteration. SHA-1 has five words.
  uint32_t inner[8];
  uint32_t outer[8];
  /// The last U, and the xor of all of them so far, as words.
  uint32_t last[8];
  uint32_t sum[8];
} keyhaul_pbkdf2;

/// Returns whether this processor has the SHA extensions. Otherwise the functions below must not be called.
bool keyhaul_pbkdf2_is_available(void);

/// Runs the first iteration of output block `block_index`, counted from 1.
/// `password` and `salt` may be NULL if their length is 0. A password over 64 bytes is hashed first (RFC 2104).
void keyhaul_pbkdf2_begin(
    keyhaul_pbkdf2 *state, keyhaul_hash hash, const uint8_t *password, size_t password_length, const uint8_t *salt,
    size_t salt_length, uint32_t block_index);

/// Runs `rounds` further iterations, about 70 ns each. Call it in chunks to report progress or to cancel.
void keyhaul_pbkdf2_run(keyhaul_pbkdf2 *state, uint64_t rounds);

/// Writes the block's bytes and wipes the state. `output` may be NULL if the derivation was canceled.
void keyhaul_pbkdf2_finish(keyhaul_pbkdf2 *state, uint8_t *output);

#endif
