#ifndef KEYHAUL_CKEYDERIVATION_H
#define KEYHAUL_CKEYDERIVATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The hash that HMAC is made of.
typedef enum { keyhaul_sha1, keyhaul_sha256 } keyhaul_hash;

/// One block of PBKDF2-HMAC under way (RFC 8018 §5.2): 20 bytes with SHA-1, 32 with SHA-256. Holds key material: end it
/// with `keyhaul_pbkdf2_finish`, which wipes it.
typedef struct {
  keyhaul_hash hash;
  /// Hash states after the key xored with ipad and opad; both are the same in every round. SHA-1 has five words.
  uint32_t inner[8];
  uint32_t outer[8];
  /// The last U and the xor of all so far, as words.
  uint32_t last[8];
  uint32_t sum[8];
} keyhaul_pbkdf2;

/// Whether this processor has the SHA extensions. The functions below must not be called where it is false.
bool keyhaul_pbkdf2_is_available(void);

/// Does the first round of output block `block_index`, which counts from 1.
/// `password` and `salt` may be NULL where their length is 0. A password over 64 bytes is hashed first (RFC 2104).
void keyhaul_pbkdf2_begin(
    keyhaul_pbkdf2 *state, keyhaul_hash hash, const uint8_t *password, size_t password_length, const uint8_t *salt,
    size_t salt_length, uint32_t block_index);

/// Does `rounds` further rounds, about 70 ns each. Call it in portions, to report progress or to stop in between.
void keyhaul_pbkdf2_run(keyhaul_pbkdf2 *state, uint64_t rounds);

/// Writes the block's bytes and wipes the state. `output` may be NULL where the derivation is given up.
void keyhaul_pbkdf2_finish(keyhaul_pbkdf2 *state, uint8_t *output);

#endif
