import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

@Suite("Password hashes for hashcat and John the Ripper")
struct PasswordHashTests {
  /// Examples that hashcat publishes. The password of each is "hashcat".
  private static let examples = [
    // Mode 14700 (backups of iOS before 10.2): hashcat's example hash.
    "$itunes_backup$*9*b8e3f3a970239b22ac199b622293fe4237b9d16e74bad2c3c3568cd1bd3c471615a6c4f867265642*10000*"
      + "4542263740587424862267232255853830404566**",
    // Mode 14800 (iOS 10.2 and later): hashcat's self-test hash, with few iterations.
    "$itunes_backup$*10*17a3b858e79bc273be43a9f113b71efe7ec8e7e401396b350180b4592ef45db67ffef7b2d64329a5*10000*"
      + "2721336781705041205314422175267631184867*1000*99fafc983e732998adb9fadc162a2e382143f115",
    // Mode 14800: hashcat's example hash, with 10 million iterations.
    "$itunes_backup$*10*8b715f516ff8e64442c478c2d9abb046fc6979ab079007d3dbcef3ddd84217f4c3db01362d88fa68*10000*"
      + "2353363784073608264337337723324886300850*10000000*425b4bb4e200b5fd4c66979c9caca31716052063",
  ]

  /// A class key that only the device key wraps.
  private static let deviceKeyRecord = Keybag.ClassKey(
    uuid: [UInt8](repeating: 2, count: 16), keyClass: .always, wrap: .device,
    wrappedKey: [UInt8](repeating: 3, count: 32))

  /// The fields of a hash, by their names in a keybag:
  ///
  ///     $itunes_backup$*version*WPKY*ITER*SALT*DPIC*DPSL
  ///
  /// The last two are empty in a backup of iOS before 10.2.
  private struct HashFields {
    let wrappedKey: [UInt8]
    let iterations: UInt32
    let salt: [UInt8]
    let secondStep: Keybag.SecondStep?

    init(_ hash: String) throws {
      let fields = hash.split(separator: "*", omittingEmptySubsequences: false).map(String.init)
      try #require(fields.count == 7)
      let (dpic, dpsl) = (fields[5], fields[6])
      wrappedKey = try [UInt8](hex: fields[2])
      iterations = try #require(UInt32(fields[3]))
      salt = try [UInt8](hex: fields[4])
      secondStep =
        dpic.isEmpty ? nil : Keybag.SecondStep(iterations: try #require(UInt32(dpic)), salt: try [UInt8](hex: dpsl))
    }
  }

  /// Returns a keybag with this password hash. The class key in the hash is not the keybag's first class key.
  private func keybag(of hash: String) throws -> Keybag {
    let fields = try HashFields(hash)
    let passwordKeyRecord = Keybag.ClassKey(
      uuid: [UInt8](repeating: 1, count: 16), keyClass: .whenUnlocked, wrap: .password,
      wrappedKey: fields.wrappedKey)
    return try Keybag(
      type: .backup, uuid: [UInt8](repeating: 0, count: 16), salt: fields.salt, iterations: fields.iterations,
      secondStep: fields.secondStep, classKeys: [Self.deviceKeyRecord, passwordKeyRecord])
  }

  @Test("The password hash of a keybag equals hashcat's published example", arguments: examples)
  func hashes(_ example: String) throws {
    #expect(try keybag(of: example).passwordHash == example)
  }

  @Test("The published password unwraps the key in hashcat's examples, and another password does not")
  func passwords() throws {
    // The iterations of the third example would take too long.
    for example in Self.examples.prefix(2) {
      let keybag = try keybag(of: example)
      _ = try keybag.unlock(password: Secret(utf8: "hashcat"), deviceKey: nil)
      #expect(throws: DataProtectionError.self) {
        try keybag.unlock(password: Secret(utf8: "hashdog"), deviceKey: nil)
      }
    }
  }

  @Test("A keybag without a password-wrapped key has no password hash")
  func noPassword() throws {
    let keybag = try Keybag(
      type: .backup, uuid: [UInt8](repeating: 0, count: 16), salt: [UInt8](repeating: 0, count: 20), iterations: 1,
      classKeys: [Self.deviceKeyRecord])
    #expect(keybag.passwordHash == nil && Keybag().passwordHash == nil)
  }
}
