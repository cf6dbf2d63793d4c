/// SHA-1 (FIPS 180-4), for tests of modules that cannot import the cryptography module.
///
/// Tests run without optimization, so the loops over words use no closures and no ranges.
package enum SHA1 {
  package static func hash(_ message: [UInt8]) -> [UInt8] {
    // A bit, zeros up to eight bytes before the end of a block of 64 bytes, and the length in bits.
    let padded =
      message + [0x80] + [UInt8](repeating: 0, count: (119 - message.count % 64) % 64)
      + [UInt8](bigEndian: message.count * 8, count: 8)
    var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
    var words = [UInt32](repeating: 0, count: 80)
    padded.withUnsafeBytes { bytes in
      words.withUnsafeMutableBufferPointer { words in
        guard let words = words.baseAddress else { return }
        for start in stride(from: 0, to: bytes.count, by: 64) {
          var index = 0
          while index < 16 {
            words[index] = UInt32(bigEndian: bytes.load(fromByteOffset: start + 4 * index, as: UInt32.self))
            index += 1
          }
          compress(words, into: &state)
        }
      }
    }
    return state.flatMap { [UInt8](bigEndian: Int($0), count: 4) }
  }

  /// Adds a block to the state (FIPS 180-4, 6.1.2).
  ///
  /// - Parameter words: 80 words. The first 16 words are the block.
  private static func compress(_ words: UnsafeMutablePointer<UInt32>, into state: inout [UInt32]) {
    var index = 16
    while index < 80 {
      words[index] = rotate(words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], 1)
      index += 1
    }
    // The five working variables have the names of FIPS 180-4.
    var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
    index = 0
    while index < 80 {
      let mix: UInt32
      if index < 20 {
        mix = ((b & c) | (~b & d)) &+ 0x5A82_7999
      } else if index < 40 {
        mix = (b ^ c ^ d) &+ 0x6ED9_EBA1
      } else if index < 60 {
        mix = ((b & c) | (b & d) | (c & d)) &+ 0x8F1B_BCDC
      } else {
        mix = (b ^ c ^ d) &+ 0xCA62_C1D6
      }
      let next = rotate(a, 5) &+ mix &+ e &+ words[index]
      e = d
      d = c
      c = rotate(b, 30)
      b = a
      a = next
      index += 1
    }
    state[0] &+= a
    state[1] &+= b
    state[2] &+= c
    state[3] &+= d
    state[4] &+= e
  }

  private static func rotate(_ word: UInt32, _ count: UInt32) -> UInt32 { word &<< count | word &>> (32 &- count) }
}
