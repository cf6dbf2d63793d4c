import Basics
import COpenSSL
import TestSupport
import Testing

@testable import KeychainCrypto

@Suite("Key wrapping (RFC 3394)")
struct KeyWrapTests {
  @Test("The RFC's examples are wrapped and unwrapped")
  func examples() throws {
    for entry in try TestVectors.list("rfc3394") {
      let kek = try Secret(entry["kek"])
      let plain = try Secret(entry["plain"])
      #expect(try KeyWrap.wrap(plain, with: kek) == entry["wrapped"].bytes)
      let unwrapped = try KeyWrap.unwrap(entry["wrapped"].bytes, with: kek)?.revealed
      #expect(try unwrapped == entry["plain"].bytes)
    }
  }

  @Test("Every flipped bit of the wrapped key and of the wrapping key is detected")
  func flippedBits() throws {
    for entry in try TestVectors.list("rfc3394") {
      let wrapped = try entry["wrapped"].bytes
      let kek = try entry["kek"].bytes
      for bit in 0..<wrapped.count * 8 {
        let isUnwrapped = try KeyWrap.unwrap(wrapped.flipping(bit: bit), with: Secret(copying: kek)) != nil
        #expect(!isUnwrapped, "bit \(bit)")
      }
      for bit in 0..<kek.count * 8 {
        let isUnwrapped = try KeyWrap.unwrap(wrapped, with: Secret(copying: kek.flipping(bit: bit))) != nil
        #expect(!isUnwrapped, "bit \(bit)")
      }
    }
  }

  @Test("Wrapped keys of impossible lengths are rejected", arguments: [0, 1, 8, 15, 16, 23, 25, 39, 41])
  func lengths(count: Int) throws {
    let kek = Secret(copying: [UInt8](repeating: 1, count: 32))
    let isUnwrapped = try KeyWrap.unwrap([UInt8](repeating: 0xA6, count: count), with: kek) != nil
    #expect(!isUnwrapped)
  }

  @Test("Keys and wrapping keys of unsupported lengths are rejected")
  func wrongSizes() {
    #expect(throws: DataProtectionError.self) {
      _ = try KeyWrap.wrap(Secret(copying: [1, 2, 3]), with: Secret(copying: [UInt8](repeating: 1, count: 32)))
    }
    #expect(throws: DataProtectionError.self) {
      _ = try KeyWrap.wrap(
        Secret(copying: [UInt8](repeating: 1, count: 32)), with: Secret(copying: [UInt8](repeating: 1, count: 20)))
    }
  }

  @Test("The wrapped key equals the result of OpenSSL's key wrap", arguments: [16, 24, 32, 40, 64, 128])
  func openSSL(count: Int) throws {
    var random = SeededRandom(seed: UInt64(count))
    for _ in 0..<20 {
      let kek = random.bytes(32)
      let plain = random.bytes(count)
      let expected = try #require(OpenSSLOracle.wrap(plain, with: kek))
      #expect(try KeyWrap.wrap(Secret(copying: plain), with: Secret(copying: kek)) == expected)
    }
  }
}

/// Key wrapping and PBKDF2 with functions of OpenSSL that Keyhaul does not use.
enum OpenSSLOracle {
  static func wrap(_ plain: [UInt8], with kek: [UInt8]) -> [UInt8]? {
    guard let context = EVP_CIPHER_CTX_new() else { return nil }
    defer { EVP_CIPHER_CTX_free(context) }
    EVP_CIPHER_CTX_set_flags(context, Int32(EVP_CIPHER_CTX_FLAG_WRAP_ALLOW))
    var output = [UInt8](repeating: 0, count: plain.count + 16)
    var count: Int32 = 0
    guard EVP_EncryptInit_ex2(context, EVP_aes_256_wrap(), kek, nil, nil) == 1,
      EVP_EncryptUpdate(context, &output, &count, plain, Int32(plain.count)) == 1
    else { return nil }
    return Array(output.prefix(Int(count)))
  }

  static func pbkdf2(digest: OpaquePointer?, password: [UInt8], salt: [UInt8], iterations: Int, count: Int) -> [UInt8] {
    var output = [UInt8](repeating: 0, count: count)
    let passwordCharacters = password.map { CChar(bitPattern: $0) }
    PKCS5_PBKDF2_HMAC(
      passwordCharacters, Int32(password.count), salt, Int32(salt.count), Int32(iterations), digest, Int32(count),
      &output)
    return output
  }
}
