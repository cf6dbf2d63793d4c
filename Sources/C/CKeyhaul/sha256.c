#include "hash.h"

// SHA-256 (FIPS 180-4) and iterations of PBKDF2 with the processor's SHA extensions. An iteration consists of two
// compressions, whose messages are a digest with constant padding, so all of its data stays in registers.

#if defined(__x86_64__)

#include <immintrin.h>

#define WITH_SHA __attribute__((target("sha,sse4.1,ssse3")))
#define INLINE_WITH_SHA static inline __attribute__((always_inline, target("sha,sse4.1,ssse3")))

enum { digest_size = 32 };

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

/// The eight working variables in the order of SHA256RNDS2, highest lane first.
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

/// Runs four rounds of FIPS 180-4 §6.2.2 step 3 with the message words `m`.
#define FOUR_ROUNDS(group, m)                                                                        \
  do {                                                                                               \
    __m128i wk = _mm_add_epi32((m), _mm_load_si128((const __m128i *)(round_constants + 4 * (group)))); \
    s.cdgh = _mm_sha256rnds2_epu32(s.cdgh, s.abef, wk);                                              \
    s.abef = _mm_sha256rnds2_epu32(s.abef, s.cdgh, _mm_shuffle_epi32(wk, 0x0E));                     \
  } while (0)

/// Computes the next four message words (step 1) from the previous sixteen, and replaces the oldest four.
#define EXTEND(oldest, second, third, newest)                                                         \
  (oldest) = _mm_sha256msg2_epu32(                                                                    \
      _mm_add_epi32(_mm_sha256msg1_epu32((oldest), (second)), _mm_alignr_epi8((newest), (third), 4)), \
      (newest))

/// Compresses sixteen message words, in two halves, into `start`.
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

/// The second half of a message of one digest after one block of padded key: the end bit and the length of 96 bytes in bits.
INLINE_WITH_SHA words digest_padding(void) {
  return (words){
      .low = _mm_set_epi32(0, 0, 0, (int)0x80000000),
      .high = _mm_set_epi32((keyhaul_block_size + digest_size) * 8, 0, 0, 0),
  };
}

WITH_SHA static void absorb(uint32_t state[8], const uint8_t block[keyhaul_block_size]) {
  const __m128i big_endian = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
  __m128i part[4];
  for (int i = 0; i < 4; i++) {
    part[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(block + 16 * i)), big_endian);
  }
  words first = {.low = part[0], .high = part[1]};
  words second = {.low = part[2], .high = part[3]};
  store(state, words_of(compress(lanes_of(load(state)), first, second)));
}

WITH_SHA static void run(keyhaul_pbkdf2 *state, uint64_t rounds) {
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

const keyhaul_hash_functions keyhaul_sha256_functions = {
    .word_count = 8,
    // Source: FIPS 180-4 §5.3.3 (initial hash value).
    .initial_state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
    .absorb = absorb,
    .run = run,
};

#endif
