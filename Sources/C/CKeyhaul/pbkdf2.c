#include "CKeyDerivation.h"

#include <string.h>

#include "hash.h"

// PBKDF2 (RFC 8018 §5.2) over HMAC (RFC 2104), for processors with the SHA extensions. The hash states after the padded
// key are computed once; the iterations are in the files of the hashes.

#if defined(__x86_64__)

#include <cpuid.h>

enum { length_size = 8, most_words = 8, digest_limit = 4 * most_words };

/// More bytes than the stack frames of this file's functions take with any compiler.
enum { stack_size = 16384 };

/// Overwrites memory that is not read again, in a way that the compiler does not remove.
static void wipe(void *memory, size_t length) {
  memset(memory, 0, length);
  __asm__ volatile("" : : "r"(memory) : "memory");
}

/// Overwrites the part of the stack where returned functions may have spilled registers.
static __attribute__((noinline)) void wipe_stack(void) {
  uint8_t frame[stack_size];
  wipe(frame, sizeof frame);
}

static const keyhaul_hash_functions *functions_of(keyhaul_hash hash) {
  return hash == keyhaul_sha1 ? &keyhaul_sha1_functions : &keyhaul_sha256_functions;
}

static void write_big_endian(uint8_t *target, const uint32_t *source, size_t word_count) {
  for (size_t i = 0; i < word_count; i++) {
    target[4 * i] = (uint8_t)(source[i] >> 24);
    target[4 * i + 1] = (uint8_t)(source[i] >> 16);
    target[4 * i + 2] = (uint8_t)(source[i] >> 8);
    target[4 * i + 3] = (uint8_t)source[i];
  }
}

/// Hashes `bytes` and then `tail` (shorter than a block), and adds the padding. `state` has processed `absorbed` bytes
/// before, a multiple of the block size.
static void hash_to_end(
    const keyhaul_hash_functions *hash, uint32_t state[most_words], uint64_t absorbed, const uint8_t *bytes,
    size_t length, const uint8_t *tail, size_t tail_length) {
  uint64_t total = absorbed + length + tail_length;
  while (length >= keyhaul_block_size) {
    hash->absorb(state, bytes);
    bytes += keyhaul_block_size;
    length -= keyhaul_block_size;
  }
  // The remaining bytes take at most three blocks: under 64 bytes, under 64 of tail, the end bit and the length.
  uint8_t last[3 * keyhaul_block_size] = {0};
  size_t used = length + tail_length;
  if (length > 0) memcpy(last, bytes, length);
  if (tail_length > 0) memcpy(last + length, tail, tail_length);
  last[used] = 0x80;
  size_t padded = (used + 1 + length_size + keyhaul_block_size - 1) / keyhaul_block_size * keyhaul_block_size;
  for (size_t i = 0; i < length_size; i++) last[padded - 1 - i] = (uint8_t)((total * 8) >> (8 * i));
  for (size_t offset = 0; offset < padded; offset += keyhaul_block_size) hash->absorb(state, last + offset);
  wipe(last, sizeof last);
}

static void absorb_key(
    const keyhaul_hash_functions *hash, uint32_t state[most_words], const uint8_t key[keyhaul_block_size],
    uint8_t pad) {
  uint8_t block[keyhaul_block_size];
  for (int i = 0; i < keyhaul_block_size; i++) block[i] = key[i] ^ pad;
  memcpy(state, hash->initial_state, sizeof hash->initial_state);
  hash->absorb(state, block);
  wipe(block, sizeof block);
}

bool keyhaul_pbkdf2_is_available(void) {
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return false;
  bool has_ssse3 = (ecx >> 9) & 1, has_sse41 = (ecx >> 19) & 1;
  if (!has_ssse3 || !has_sse41) return false;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  return (ebx >> 29) & 1;
}

static __attribute__((noinline)) void begin(
    keyhaul_pbkdf2 *state, const uint8_t *password, size_t password_length, const uint8_t *salt, size_t salt_length,
    uint32_t block_index) {
  const keyhaul_hash_functions *hash = functions_of(state->hash);
  const size_t digest_size = 4 * hash->word_count;
  uint8_t key[keyhaul_block_size] = {0}, bytes[digest_limit];
  uint32_t digest[most_words];
  if (password_length > keyhaul_block_size) {
    memcpy(digest, hash->initial_state, sizeof digest);
    hash_to_end(hash, digest, 0, password, password_length, NULL, 0);
    write_big_endian(key, digest, hash->word_count);
  } else if (password_length > 0) {
    memcpy(key, password, password_length);
  }
  absorb_key(hash, state->inner, key, 0x36);
  absorb_key(hash, state->outer, key, 0x5c);

  const uint8_t index[4] = {
      (uint8_t)(block_index >> 24), (uint8_t)(block_index >> 16), (uint8_t)(block_index >> 8), (uint8_t)block_index};
  memcpy(digest, state->inner, sizeof digest);
  hash_to_end(hash, digest, keyhaul_block_size, salt, salt_length, index, sizeof index);
  write_big_endian(bytes, digest, hash->word_count);
  memcpy(state->last, state->outer, sizeof state->last);
  hash_to_end(hash, state->last, keyhaul_block_size, bytes, digest_size, NULL, 0);
  memcpy(state->sum, state->last, sizeof state->sum);
  wipe(key, sizeof key);
  wipe(bytes, sizeof bytes);
  wipe(digest, sizeof digest);
}

void keyhaul_pbkdf2_begin(
    keyhaul_pbkdf2 *state, keyhaul_hash hash, const uint8_t *password, size_t password_length, const uint8_t *salt,
    size_t salt_length, uint32_t block_index) {
  state->hash = hash;
  begin(state, password, password_length, salt, salt_length, block_index);
  wipe_stack();
}

void keyhaul_pbkdf2_run(keyhaul_pbkdf2 *state, uint64_t rounds) {
  functions_of(state->hash)->run(state, rounds);
  wipe_stack();
}

void keyhaul_pbkdf2_finish(keyhaul_pbkdf2 *state, uint8_t *output) {
  if (output) write_big_endian(output, state->sum, functions_of(state->hash)->word_count);
  wipe(state, sizeof *state);
}

#else

bool keyhaul_pbkdf2_is_available(void) { return false; }

void keyhaul_pbkdf2_begin(
    keyhaul_pbkdf2 *state, keyhaul_hash hash, const uint8_t *password, size_t password_length, const uint8_t *salt,
    size_t salt_length, uint32_t block_index) {
  (void)hash, (void)password, (void)password_length, (void)salt, (void)salt_length, (void)block_index;
  memset(state, 0, sizeof *state);
}

void keyhaul_pbkdf2_run(keyhaul_pbkdf2 *state, uint64_t rounds) { (void)state, (void)rounds; }

void keyhaul_pbkdf2_finish(keyhaul_pbkdf2 *state, uint8_t *output) {
  (void)output;
  memset(state, 0, sizeof *state);
}

#endif
