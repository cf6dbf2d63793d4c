#ifndef KEYHAUL_HASH_H
#define KEYHAUL_HASH_H

#include "CKeyDerivation.h"

#if defined(__x86_64__)

enum { keyhaul_block_size = 64 };

/// The functions of a hash that PBKDF2 requires, implemented with the processor's SHA extensions.
typedef struct {
  size_t word_count;
  uint32_t initial_state[8];
  /// Compresses one block of a message.
  void (*absorb)(uint32_t state[8], const uint8_t block[keyhaul_block_size]);
  /// Runs iterations of PBKDF2 after the first one.
  void (*run)(keyhaul_pbkdf2 *state, uint64_t rounds);
} keyhaul_hash_functions;

extern const keyhaul_hash_functions keyhaul_sha1_functions;
extern const keyhaul_hash_functions keyhaul_sha256_functions;

#endif
#endif
