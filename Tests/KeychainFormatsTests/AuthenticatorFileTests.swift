import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@Suite("Files of authenticator apps")
struct AuthenticatorFileTests {
  private func address(of message: [UInt8]) -> String? {
    message.withUnsafeBytes { AuthenticatorEntry.address(of: $0) }?.withBytes { String(decoding: $0, as: UTF8.self) }
  }

  /// Returns a protocol buffer field with a length and contents (wire type 2).
  private func field(_ number: UInt8, _ contents: [UInt8]) -> [UInt8] {
    [number << 3 | 2, UInt8(contents.count)] + contents
  }

  @Test("An entry of Proton Authenticator contains an address, or the secret of a Steam account")
  func entries() {
    let metadata = field(1, field(1, Array("Name".utf8)) + field(3, Array("id".utf8)))
    let address = "otpauth://totp/Example:anna?secret=JBSWY3DPEHPK3PXP&issuer=Example"
    #expect(self.address(of: metadata + field(2, field(1, field(1, Array(address.utf8))))) == address)
    let steam = metadata + field(2, field(2, field(1, Array("JBSWY3DPEHPK3PXP".utf8))))
    #expect(self.address(of: steam) == "otpauth://steam/Steam?issuer=Steam&secret=JBSWY3DPEHPK3PXP")
    #expect(self.address(of: metadata) == nil && self.address(of: []) == nil && self.address(of: [0x12]) == nil)
  }

  @Test("Changing an entry's bytes does not crash the reader")
  func damagedEntries() {
    let entry = field(1, field(1, [65])) + field(2, field(1, field(1, Array("otpauth://totp/a?secret=AA".utf8))))
    var source = SeededRandom(seed: 3)
    for _ in 0..<5_000 {
      var changed = entry
      changed[Int(source.next() % UInt64(changed.count))] = UInt8(truncatingIfNeeded: source.next())
      // An address is a part of the entry; an address for Steam also has a fixed start.
      #expect((address(of: changed)?.utf8.count ?? 0) <= entry.count + 60)
    }
    for count in 0..<entry.count { #expect(address(of: Array(entry.prefix(count))) == nil) }
  }

  private func preferencesBytes() throws -> [UInt8] {
    let value: [String: Any] = ["tokenOrder": ["b", "a", 3], "a": "otpauth://totp/x", "b": "Bänk", "c": 1]
    return Array(try PropertyListSerialization.data(fromPropertyList: value, format: .binary, options: 0))
  }

  @Test("The strings of an app's preferences are read in place")
  func preferences() throws {
    let bytes = try preferencesBytes()
    try bytes.withUnsafeBytes { (bytes) throws in
      let preferences = try PreferencesFile(bytes)
      #expect(try preferences.strings("tokenOrder") == ["b", "a"])
      #expect(try preferences.strings("other") == nil && preferences.strings("a") == nil)
      let text = try preferences.sensitiveString("a")?.withBytes { String(decoding: $0, as: UTF8.self) }
      #expect(text == "otpauth://totp/x")
      // An address is ASCII, so strings with other characters are not returned.
      #expect(try preferences.sensitiveString("b") == nil && preferences.sensitiveString("c") == nil)
    }
  }

  @Test("Changing a bit of an app's preferences does not crash the reader, and truncated preferences are rejected")
  func damagedPreferences() throws {
    let bytes = try preferencesBytes()
    var source = SeededRandom(seed: 5)
    for _ in 0..<2_000 {
      var changed = bytes
      changed[Int(source.next() % UInt64(changed.count))] ^= UInt8(1 << (source.next() % 8))
      changed.withUnsafeBytes { bytes in
        guard let preferences = try? PreferencesFile(bytes) else { return }
        #expect(((try? preferences.strings("tokenOrder")) ?? [])?.count ?? 0 <= 3)
      }
    }
    for count in 0..<bytes.count {
      bytes.prefix(count).withUnsafeBytes { bytes in
        _ = #expect(throws: FormatError.self) { try PreferencesFile(bytes) }
      }
    }
  }
}
