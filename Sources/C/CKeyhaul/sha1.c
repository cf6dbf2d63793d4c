#include "hash.h"

// SHA-1 (FIPS 180-4) and iterations of PBKDF2 with the processor's SHA extensions. An iteration consists of two
// compressions, whose messages are a digest with constant padding, so all of its data stays in registers.

#if defined(__x86_64__)

#include <immintrin.h>

#define WITH_SHA __attribute__((target("sha,sse4.1,ssse3")))
#define INLINE_WITH_SHA static inline __attribute__((always_inline, target("sha,sse4.1,ssse3")))

enum { digest_size = 20 };

/// The five words of a hash state in the layout of SHA1RNDS4: the first in the highest lane, and the fifth in the highest
/// lane of a separate register, with zeros below.
typedef struct {
  __m128i abcd;
  __m128i e;
} lanes;

INLINE_WITH_SHA lanes load(const uint32_t source[8]) {
  return (lanes){
      .abcd = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)source), 0x1B),
      .e = _mm_set_epi32((int)source[4], 0, 0, 0),
  };
}

INLINE_WITH_SHA void store(uint32_t target[8], lanes s) {
  _mm_storeu_si128((__m128i *)target, _mm_shuffle_epi32(s.abcd, 0x1B));
  target[4] = (uint32_t)_mm_extract_epi32(s.e, 3);
}

/// Runs four rounds of FIPS 180-4 §6.1.2 step 3 with the message words `m`; `part` is the group of twenty rounds.
/// SHA1NEXTE computes the next E from the A of four rounds before.
#define FOUR_ROUNDS(part, m)                          \
  do {                                                \
    __m128i e_and_words = _mm_sha1nexte_epu32(before, (m)); \
    before = abcd;                                    \
    abcd = _mm_sha1rnds4_epu32(abcd, e_and_words, (part));  \
  } while (0)

/// Computes the next four message words (step 1) from the previous sixteen, and replaces the oldest four.
#define EXTEND(oldest, second, third, newest) \
  (oldest) = _mm_sha1msg2_epu32(_mm_xor_si128(_mm_sha1msg1_epu32((oldest), (second)), (third)), (newest))

/// Compresses sixteen message words, the first of each four in the highest lane, into `start`.
INLINE_WITH_SHA lanes compress(lanes start, __m128i m0, __m128i m1, __m128i m2, __m128i m3) {
  __m128i before = start.abcd;
  __m128i abcd = _mm_sha1rnds4_epu32(start.abcd, _mm_add_epi32(start.e, m0), 0);
  FOUR_ROUNDS(0, m1);
  FOUR_ROUNDS(0, m2);
  FOUR_ROUNDS(0, m3);
  EXTEND(m0, m1, m2, m3);
  FOUR_ROUNDS(0, m0);
  EXTEND(m1, m2, m3, m0);
  FOUR_ROUNDS(1, m1);
  EXTEND(m2, m3, m0, m1);
  FOUR_ROUNDS(1, m2);
  EXTEND(m3, m0, m1, m2);
  FOUR_ROUNDS(1, m3);
  EXTEND(m0, m1, m2, m3);
  FOUR_ROUNDS(1, m0);
  EXTEND(m1, m2, m3, m0);
  FOUR_ROUNDS(1, m1);
  EXTEND(m2, m3, m0, m1);
  FOUR_ROUNDS(2, m2);
  EXTEND(m3, m0, m1, m2);
  FOUR_ROUNDS(2, m3);
  EXTEND(m0, m1, m2, m3);
  FOUR_ROUNDS(2, m0);
  EXTEND(m1, m2, m3, m0);
  FOUR_ROUNDS(2, m1);
  EXTEND(m2, m3, m0, m1);
  FOUR_ROUNDS(2, m2);
  EXTEND(m3, m0, m1, m2);
  FOUR_ROUNDS(3, m3);
  EXTEND(m0, m1, m2, m3);
  FOUR_ROUNDS(3, m0);
  EXTEND(m1, m2, m3, m0);
  FOUR_ROUNDS(3, m1);
  EXTEND(m2, m3, m0, m1);
  FOUR_ROUNDS(3, m2);
  EXTEND(m3, m0, m1, m2);
  FOUR_ROUNDS(3, m3);
  return (lanes){.abcd = _mm_add_epi32(abcd, start.abcd), .e = _mm_sha1nexte_epu32(before, start.e)};
}

/// Compresses a message of one digest after one block of padded key. The digest is followed by the end bit and the length
/// of 84 bytes in bits.
INLINE_WITH_SHA lanes compress_digest(lanes start, lanes digest) {
  const __m128i end = _mm_set_epi32(0, (int)0x80000000, 0, 0);
  const __m128i length = _mm_set_epi32(0, 0, 0, (keyhaul_block_size + digest_size) * 8);
  return compress(start, digest.abcd, _mm_or_si128(digest.e, end), _mm_setzero_si128(), length);
}

WITH_SHA static void absorb(uint32_t state[8], const uint8_t block[keyhaul_block_size]) {
  const __m128i reversed = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m128i part[4];
  for (int i = 0; i < 4; i++) {
    part[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(block + 16 * i)), reversed);
  }
  store(state, compress(load(state), part[0], part[1], part[2], part[3]));
}

WITH_SHA static void run(keyhaul_pbkdf2 *state, uint64_t rounds) {
  const lanes inner = load(state->inner), outer = load(state->outer);
  lanes last = load(state->last), sum = load(state->sum);
  for (; rounds > 0; rounds--) {
    last = compress_digest(inner, last);
    last = compress_digest(outer, last);
    sum.abcd = _mm_xor_si128(sum.abcd, last.abcd);
    sum.e = _mm_xor_si128(sum.e, last.e);
  }
  store(state->last, last);
  store(state->sum, sum);
}

const keyhaul_hash_functions keyhaul_sha1_functions = {
    .word_count = 5,
    // Source: FIPS 180-4 §5.3.1 (initial hash value).
    .initial_state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0},
    .absorb = absorb,
    .run = run,
};

#endif
