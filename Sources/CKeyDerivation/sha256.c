#include "CKeyDerivation.h"

#include <string.h>

// PBKDF2 (RFC 8018 §5.2) over HMAC (RFC 2104) over SHA-256 (FIPS 180-4), for processors with the SHA extensions.
// A round is two compressions, and both messages are a digest with fixed padding; so the hash states after the padded
// key are computed once, and everything a round needs stays in registers.

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#define WITH_SHA __attribute__((target("sha,sse4.1,ssse3")))
#define INLINE_WITH_SHA static inline __attribute__((always_inline, target("sha,sse4.1,ssse3")))

enum { block_size = 64, digest_size = 32, length_size = 8 };

/// The constants K of FIPS 180-4 §4.2.2.
static const uint32_t round_constants[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/// The initial hash value of FIPS 180-4 §5.3.3.
static const uint32_t initial_state[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

/// The eight working variables in the order in which SHA256RNDS2 takes them, highest lane first.
typedef struct {
  __m128i abef;
  __m128i cdgh;
} lanes;

/// The eight words of a digest or half a message, the first word in the lowest lane.
typedef struct {
  __m128i low;
  __m128i high;
} words;

INLINE_WITH_SHA lanes lanes_of(words w) {
  __m128i badc = _mm_shuffle_epi32(w.low, 0xB1);
  __m128i fehg = _mm_shuffle_epi32(w.high, 0xB1);
  return (lanes){.abef = _mm_unpacklo_epi64(fehg, badc), .cdgh = _mm_unpackhi_epi64(fehg, badc)};
}

INLINE_WITH_SHA words words_of(lanes s) {
  return (words){
      .low = _mm_shuffle_epi32(_mm_unpackhi_epi64(s.abef, s.cdgh), 0xB1),
      .high = _mm_shuffle_epi32(_mm_unpacklo_epi64(s.abef, s.cdgh), 0xB1),
  };
}

INLINE_WITH_SHA words load(const uint32_t source[8]) {
  return (words){
      .low = _mm_loadu_si128((const __m128i *)source), .high = _mm_loadu_si128((const __m128i *)(source + 4))};
}

INLINE_WITH_SHA void store(uint32_t target[8], words w) {
  _mm_storeu_si128((__m128i *)target, w.low);
  _mm_storeu_si128((__m128i *)(target + 4), w.high);
}

/// Four rounds of FIPS 180-4 §6.2.2 step 3; `m` is the group's message words.
#define FOUR_ROUNDS(group, m)                                                                        \
  do {                                                                                               \
    __m128i wk = _mm_add_epi32((m), _mm_load_si128((const __m128i *)(round_constants + 4 * (group)))); \
    s.cdgh = _mm_sha256rnds2_epu32(s.cdgh, s.abef, wk);                                              \
    s.abef = _mm_sha256rnds2_epu32(s.abef, s.cdgh, _mm_shuffle_epi32(wk, 0x0E));                     \
  } while (0)

/// The next four message words (step 1), from the sixteen before them; replaces the oldest four.
#define EXTEND(oldest, second, third, newest)                                                         \
  (oldest) = _mm_sha256msg2_epu32(                                                                    \
      _mm_add_epi32(_mm_sha256msg1_epu32((oldest), (second)), _mm_alignr_epi8((newest), (third), 4)), \
      (newest))

/// The compression function: sixteen message words in two halves go into `start`.
INLINE_WITH_SHA lanes compress(lanes start, words first, words second) {
  lanes s = start;
  __m128i m0 = first.low, m1 = first.high, m2 = second.low, m3 = second.high;
  FOUR_ROUNDS(0, m0);
  FOUR_ROUNDS(1, m1);
  FOUR_ROUNDS(2, m2);
  FOUR_ROUNDS(3, m3);
  EXTEND(m0, m1, m2, m3);
  FOUR_ROUNDS(4, m0);
  EXTEND(m1, m2, m3, m0);
  FOUR_ROUNDS(5, m1);
  EXTEND(m2, m3, m0, m1);
  FOUR_ROUNDS(6, m2);
  EXTEND(m3, m0, m1, m2);
  FOUR_ROUNDS(7, m3);
  EXTEND(m0, m1, m2, m3);
  FOUR_ROUNDS(8, m0);
  EXTEND(m1, m2, m3, m0);
  FOUR_ROUNDS(9, m1);
  EXTEND(m2, m3, m0, m1);
  FOUR_ROUNDS(10, m2);
  EXTEND(m3, m0, m1, m2);
  FOUR_ROUNDS(11, m3);
  EXTEND(m0, m1, m2, m3);
  FOUR_ROUNDS(12, m0);
  EXTEND(m1, m2, m3, m0);
  FOUR_ROUNDS(13, m1);
  EXTEND(m2, m3, m0, m1);
  FOUR_ROUNDS(14, m2);
  EXTEND(m3, m0, m1, m2);
  FOUR_ROUNDS(15, m3);
  s.abef = _mm_add_epi32(s.abef, start.abef);
  s.cdgh = _mm_add_epi32(s.cdgh, start.cdgh);
  return s;
}

/// The second half of a message that is one digest after one block of padded key: the end bit, and 96 bytes in bits.
INLINE_WITH_SHA words digest_padding(void) {
  return (words){
      .low = _mm_set_epi32(0, 0, 0, (int)0x80000000),
      .high = _mm_set_epi32((block_size + digest_size) * 8, 0, 0, 0),
  };
}

static void wipe(void *memory, size_t length) {
  volatile uint8_t *bytes = memory;
  for (size_t i = 0; i < length; i++) bytes[i] = 0;
}

WITH_SHA static void absorb(uint32_t state[8], const uint8_t block[block_size]) {
  const __m128i big_endian = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
  __m128i part[4];
  for (int i = 0; i < 4; i++) {
    part[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(block + 16 * i)), big_endian);
  }
  words first = {.low = part[0], .high = part[1]};
  words second = {.low = part[2], .high = part[3]};
  store(state, words_of(compress(lanes_of(load(state)), first, second)));
}

/// Hashes `bytes` and then `tail` (shorter than a block) after `absorbed` bytes, a multiple of a block, that `state` has
/// seen, and completes the hash with its padding.
static void hash_to_end(
    uint32_t state[8], uint64_t absorbed, const uint8_t *bytes, size_t length, const uint8_t *tail,
    size_t tail_length) {
  uint64_t total = absorbed + length + tail_length;
  while (length >= block_size) {
    absorb(state, bytes);
    bytes += block_size;
    length -= block_size;
  }
  // What is left fills at most three blocks: under 64 bytes, under 64 of tail, the end bit and the length.
  uint8_t last[3 * block_size] = {0};
  size_t used = length + tail_length;
  if (length > 0) memcpy(last, bytes, length);
  if (tail_length > 0) memcpy(last + length, tail, tail_length);
  last[used] = 0x80;
  size_t padded = (used + 1 + length_size + block_size - 1) / block_size * block_size;
  for (size_t i = 0; i < length_size; i++) last[padded - 1 - i] = (uint8_t)((total * 8) >> (8 * i));
  for (size_t at = 0; at < padded; at += block_size) absorb(state, last + at);
  wipe(last, sizeof last);
}

static void write_big_endian(uint8_t *target, const uint32_t source[8]) {
  for (int i = 0; i < 8; i++) {
    target[4 * i] = (uint8_t)(source[i] >> 24);
    target[4 * i + 1] = (uint8_t)(source[i] >> 16);
    target[4 * i + 2] = (uint8_t)(source[i] >> 8);
    target[4 * i + 3] = (uint8_t)source[i];
  }
}

static void absorb_key(uint32_t state[8], const uint8_t key[block_size], uint8_t pad) {
  uint8_t block[block_size];
  for (int i = 0; i < block_size; i++) block[i] = key[i] ^ pad;
  memcpy(state, initial_state, sizeof initial_state);
  absorb(state, block);
  wipe(block, sizeof block);
}

WITH_SHA static void finish_outer(keyhaul_pbkdf2_sha256 *state, const uint32_t inner_digest[8]) {
  lanes outer = compress(lanes_of(load(state->outer)), load(inner_digest), digest_padding());
  store(state->last, words_of(outer));
}

bool keyhaul_pbkdf2_sha256_is_available(void) {
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return false;
  bool has_ssse3 = (ecx >> 9) & 1, has_sse41 = (ecx >> 19) & 1;
  if (!has_ssse3 || !has_sse41) return false;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  return (ebx >> 29) & 1;
}

void keyhaul_pbkdf2_sha256_begin(
    keyhaul_pbkdf2_sha256 *state, const uint8_t *password, size_t password_length, const uint8_t *salt,
    size_t salt_length, uint32_t block_index) {
  uint8_t key[block_size] = {0};
  uint32_t digest[8];
  if (password_length > block_size) {
    memcpy(digest, initial_state, sizeof initial_state);
    hash_to_end(digest, 0, password, password_length, NULL, 0);
    write_big_endian(key, digest);
  } else if (password_length > 0) {
    memcpy(key, password, password_length);
  }
  absorb_key(state->inner, key, 0x36);
  absorb_key(state->outer, key, 0x5c);

  const uint8_t index[4] = {
      (uint8_t)(block_index >> 24), (uint8_t)(block_index >> 16), (uint8_t)(block_index >> 8), (uint8_t)block_index};
  memcpy(digest, state->inner, sizeof digest);
  hash_to_end(digest, block_size, salt, salt_length, index, sizeof index);
  finish_outer(state, digest);
  memcpy(state->sum, state->last, sizeof state->sum);
  wipe(key, sizeof key);
  wipe(digest, sizeof digest);
}

WITH_SHA void keyhaul_pbkdf2_sha256_run(keyhaul_pbkdf2_sha256 *state, uint64_t rounds) {
  const lanes inner = lanes_of(load(state->inner)), outer = lanes_of(load(state->outer));
  const words padding = digest_padding();
  words last = load(state->last), sum = load(state->sum);
  for (; rounds > 0; rounds--) {
    last = words_of(compress(inner, last, padding));
    last = words_of(compress(outer, last, padding));
    sum.low = _mm_xor_si128(sum.low, last.low);
    sum.high = _mm_xor_si128(sum.high, last.high);
  }
  store(state->last, last);
  store(state->sum, sum);
}

void keyhaul_pbkdf2_sha256_finish(keyhaul_pbkdf2_sha256 *state, uint8_t *output) {
  if (output) write_big_endian(output, state->sum);
  wipe(state, sizeof *state);
}

#else

bool keyhaul_pbkdf2_sha256_is_available(void) { return false; }

void keyhaul_pbkdf2_sha256_begin(
    keyhaul_pbkdf2_sha256 *state, const uint8_t *password, size_t password_length, const uint8_t *salt,
    size_t salt_length, uint32_t block_index) {
  (void)password, (void)password_length, (void)salt, (void)salt_length, (void)block_index;
  memset(state, 0, sizeof *state);
}

void keyhaul_pbkdf2_sha256_run(keyhaul_pbkdf2_sha256 *state, uint64_t rounds) { (void)state, (void)rounds; }

void keyhaul_pbkdf2_sha256_finish(keyhaul_pbkdf2_sha256 *state, uint8_t *output) {
  (void)output;
  memset(state, 0, sizeof *state);
}

#endif
