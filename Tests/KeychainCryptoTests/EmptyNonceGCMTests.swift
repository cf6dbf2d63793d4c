import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

@Suite("AES-GCM with an empty nonce")
final class EmptyNonceGCMTests {
  private let cipher: ItemCipher

  init() throws { cipher = try ItemCipher() }

  @Test("Encryption and decryption match the vectors of a plain GHASH implementation")
  func vectors() throws {
    let entries = try TestVectors.section("gcm_zero_length_iv")["entries"].elements
    #expect(entries.count == 7)
    for entry in entries {
      let key = try Secret(entry["key"])
      let plaintext = SensitiveBytes(copying: try entry["plain"].bytes)
      let sealed = try cipher.sealWithEmptyNonce(plaintext, key: key)
      #expect(try sealed == Sealed(ciphertext: entry["cipher"].bytes, tag: entry["tag"].bytes))
      let opened = try cipher.openWithEmptyNonce(sealed, key: key)
      #expect(opened?.revealed == plaintext.revealed)
    }
  }

  @Test("Every flipped bit of ciphertext and tag is detected, and so is every fifth bit of the key")
  func flippedBits() throws {
    for entry in try TestVectors.section("gcm_zero_length_iv")["entries"].elements {
      let key = try entry["key"].bytes
      let sealed = Sealed(ciphertext: try entry["cipher"].bytes, tag: try entry["tag"].bytes)
      for bit in 0..<sealed.ciphertext.count * 8 {
        var changed = sealed
        changed.ciphertext = changed.ciphertext.flipping(bit: bit)
        #expect(try cipher.openWithEmptyNonce(changed, key: Secret(copying: key)) == nil)
      }
      for bit in 0..<sealed.tag.count * 8 {
        var changed = sealed
        changed.tag = changed.tag.flipping(bit: bit)
        #expect(try cipher.openWithEmptyNonce(changed, key: Secret(copying: key)) == nil)
      }
      for bit in stride(from: 0, to: key.count * 8, by: 5) {
        #expect(try cipher.openWithEmptyNonce(sealed, key: Secret(copying: key.flipping(bit: bit))) == nil)
      }
    }
  }

  @Test("Every length up to 200 agrees with a bitwise GCM implementation (NIST SP 800-38D)")
  func everyLength() throws {
    var random = SeededRandom(seed: 7)
    for count in 0...200 {
      let key = random.bytes(32)
      let plaintext = random.bytes(count)
      let sealed = try cipher.sealWithEmptyNonce(SensitiveBytes(copying: plaintext), key: Secret(copying: key))
      let expected = try BitwiseGCM(key: key).seal(plaintext)
      #expect(sealed == expected, "\(count) bytes")
    }
  }

  @Test("Encryption with the empty nonce differs from encryption with a nonce of twelve zero bytes")
  func allZeroNonce() throws {
    let key = [UInt8](repeating: 3, count: 32)
    let plaintext = SensitiveBytes(copying: [1, 2, 3])
    let withEmptyNonce = try cipher.sealWithEmptyNonce(plaintext, key: Secret(copying: key))
    let withAllZeroNonce = try cipher.sealWithNonce(
      [UInt8](repeating: 0, count: 12), header: [], plaintext, key: Secret(copying: key))
    #expect(withEmptyNonce.ciphertext != withAllZeroNonce.ciphertext)
    #expect(withEmptyNonce.tag != withAllZeroNonce.tag)
  }
}

/// GCM with an empty nonce, implemented bit by bit like the standard's text; only AES itself is OpenSSL's.
private struct BitwiseGCM: ~Copyable {
  private let context: CipherContext

  init(key: [UInt8]) throws {
    let context = try CipherContext(.aes256ECB, .encrypt)
    try Secret(copying: key).withBytes { (bytes) throws(DataProtectionError) in try context.begin(key: bytes) }
    self.context = context
  }

  func seal(_ plaintext: [UInt8]) throws -> Sealed {
    // The first counter block is the GHASH of the nonce. For an empty nonce, it is the GHASH of two zero lengths: zero.
    let firstCounter = [UInt8](repeating: 0, count: 16)
    let ciphertext = try encryptCounters(after: firstCounter, xoring: plaintext)
    let hash = try ghash(ciphertext)
    let mask = try encrypt(firstCounter)
    return Sealed(ciphertext: ciphertext, tag: zip(hash, mask).map { $0 ^ $1 })
  }

  /// The function GCTR of the standard, for fewer than 256 blocks.
  private func encryptCounters(after firstCounter: [UInt8], xoring plaintext: [UInt8]) throws -> [UInt8] {
    var counter = firstCounter
    var ciphertext: [UInt8] = []
    for start in stride(from: 0, to: plaintext.count, by: 16) {
      counter[15] &+= 1
      let keyStream = try encrypt(counter)
      ciphertext += zip(plaintext[start..<min(start + 16, plaintext.count)], keyStream).map { $0 ^ $1 }
    }
    return ciphertext
  }

  /// The function GHASH of the standard, over a ciphertext without header data.
  private func ghash(_ ciphertext: [UInt8]) throws -> [UInt8] {
    let hashKey = try encrypt([UInt8](repeating: 0, count: 16))
    // The ciphertext is filled to complete blocks. The last block has the lengths of header and ciphertext in bits.
    var blocks = ciphertext + [UInt8](repeating: 0, count: (16 - ciphertext.count % 16) % 16)
    blocks += [UInt8](repeating: 0, count: 8) + bigEndianBytes(UInt64(ciphertext.count) * 8)
    var hash = [UInt8](repeating: 0, count: 16)
    for start in stride(from: 0, to: blocks.count, by: 16) {
      hash = multiply(zip(hash, blocks[start..<start + 16]).map { $0 ^ $1 }, hashKey)
    }
    return hash
  }

  /// Multiplies two blocks, by algorithm 1 in NIST SP 800-38D §6.3.
  private func multiply(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
    var product = [UInt8](repeating: 0, count: 16)
    var shifted = right
    for bit in 0..<128 {
      if left[bit / 8] >> (7 - bit % 8) & 1 == 1 { product = zip(product, shifted).map { $0 ^ $1 } }
      let carry = shifted[15] & 1
      for index in (0..<16).reversed() {
        shifted[index] = shifted[index] >> 1 | (index > 0 ? shifted[index - 1] << 7 : 0)
      }
      if carry == 1 { shifted[0] ^= 0xE1 }
    }
    return product
  }

  private func encrypt(_ block: [UInt8]) throws -> [UInt8] {
    try [UInt8](count: 16) { (output) throws(DataProtectionError) in
      try block.withRawBytes { (input) throws(DataProtectionError) in try context.update(input, into: output) }
    }
  }
}
