import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

@Suite("The record key of iOS 10.0 manifests")
struct ManifestRecordKeyTests {
  private let salt = [UInt8](0..<8)
  private let plain = "bplist00 a record of 29 bytes"
  /// A record from `openssl enc -aes-128-cbc`, with a key from Python's `hashlib`.
  private let encrypted =
    "e8eeec875936ccd174011b9a4a9391ae9f47e7d741208e32d7bd713ee46f99cf"

  private func key(_ password: String = "correct horse", salt: [UInt8]? = nil) throws -> ManifestRecordKey {
    try ManifestRecordKey(password: Secret(utf8: password), salt: salt ?? self.salt)
  }

  @Test("A record that OpenSSL's program encrypted is decrypted")
  func knownAnswer() throws {
    #expect(try key().open([UInt8](hex: encrypted)) == Array(plain.utf8))
  }

  @Test("Another password or salt gives another key, which cannot decrypt the record")
  func wrongPasswordOrSalt() throws {
    for wrongKey in [try key("correct hors"), try key(salt: [1] + salt.dropFirst()), try key("", salt: [])] {
      let error = #expect(throws: DataProtectionError.self) { try wrongKey.open([UInt8](hex: encrypted)) }
      #expect(error?.code == .malformed && error?.reason.contains("password and salt do not decrypt it") == true)
    }
  }

  @Test("A record must consist of complete blocks", arguments: [0, 1, 15, 17, 31])
  func wholeBlocks(count: Int) throws {
    let bytes = try [UInt8](hex: encrypted).prefix(count)
    let error = #expect(throws: DataProtectionError.self) { try key().open(Array(bytes)) }
    #expect(error?.reason == "its \(count) bytes are not a multiple of 16")
  }
}
