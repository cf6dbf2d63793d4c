import Backups
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing
import VirtualDevice

@testable import KeyhaulKit

/// A phone with an item of every class that a backup can contain, and its backup with a password.
private final class DamagedKeybagFixture {
  let setup: TestSetup
  let phone: VirtualDevice
  let other: VirtualDevice
  let tamperingWriter: TamperingWriter
  let prepared: PreparedBackup

  init() throws {
    setup = try TestSetup(seed: "keybag")
    phone = try setup.phone("phone", passcode: "1234")
    other = try setup.phone("other")
    tamperingWriter = TamperingWriter(setup: setup, password: TestSetup.password)
    let session = try phone.openTestSession()
    defer { session.invalidate() }
    try session.insertUnchanged(
      ProtectionClass.allCases.filter { $0 != .whenPasscodeSetThisDeviceOnly }.map { .password($0.rawValue, $0) })
    prepared = try BackupExporter.prepare(session, password: secret(TestSetup.password), rounds: 1)
  }

  /// Returns the keybag with a changed bit in the value of a field.
  ///
  /// - Parameter keyClass: The class of the record; `nil` means the header.
  func flipped(_ tag: String, ofClass keyClass: UInt32? = nil, bit: Int) throws -> Keybag {
    let bytes = prepared.contents.keybag.serialized()
    var start = 0
    if let keyClass {
      let classField = Array("CLAS".utf8) + [0, 0, 0, 4, 0, 0, 0, UInt8(keyClass)]
      start = try #require(bytes.firstRange(of: classField)).lowerBound
    }
    let field = try #require(bytes[start...].firstRange(of: Array(tag.utf8))).lowerBound
    // The value follows a tag and a length of 4 bytes each.
    let value = field + 4 + 4
    return try Keybag(parsing: bytes.flipping(bit: value * 8 + bit))
  }

  func open(_ keybag: Keybag, on session: DeviceSession?, limit: Int = IterationLimit.standard) throws -> UnlockedBackup
  {
    let path = try tamperingWriter.write(prepared, named: "damaged") { $0.keybag = keybag }
    let archive = try BackupArchive.open(.path(path))
    return try archive.open(
      with: archive.unlock(password: secret(TestSetup.password), acceptingAtMost: limit),
      deviceKey: session?.deviceKey())
  }

  /// Returns the error if the backup is opened with a damaged keybag.
  func openError(_ keybag: Keybag, limit: Int = IterationLimit.standard) throws -> KeyhaulError? {
    try keyhaulError { _ = try open(keybag, on: nil, limit: limit) }
  }
}

@Suite("Damaged keybags")
struct DamagedKeybagTests {
  /// The first bit, a bit in the middle and the last bit of a wrapped key, which has 40 bytes.
  private static let wrappedKeyBits = [0, 171, 319]

  @Test("A changed salt looks like a wrong password", arguments: ["SALT", "DPSL"])
  func salts(_ tag: String) throws {
    let fixture = try DamagedKeybagFixture()
    for bit in stride(from: 0, to: 160, by: 9) {
      let error = try fixture.openError(try fixture.flipped(tag, bit: bit))
      #expect(error?.category == .wrongPassword, "\(tag), bit \(bit)")
    }
  }

  @Test("A changed iteration count looks like a wrong password or exceeds the limit", arguments: ["ITER", "DPIC"])
  func counts(_ tag: String) throws {
    let fixture = try DamagedKeybagFixture()
    let limit = 20_000
    let originalCount: UInt32 = tag == "ITER" ? 10_000 : 1
    let otherCount: UInt32 = tag == "ITER" ? 1 : 10_000
    for bit in 0..<32 {
      let keybag = try fixture.flipped(tag, bit: bit)
      // The first byte of the value is the most significant one.
      let byteFromEnd = 3 - bit / 8
      let count = originalCount ^ (1 << UInt32(byteFromEnd * 8 + bit % 8))
      #expect((tag == "ITER" ? keybag.iterations : keybag.dpic) == count)
      let expected: ErrorCategory = Int(count) + Int(otherCount) > limit ? .refused : .wrongPassword
      #expect(try fixture.openError(keybag, limit: limit)?.category == expected, "\(tag), bit \(bit)")
    }
  }

  @Test("The maximum iteration count is refused immediately")
  func maximumIterations() throws {
    let fixture = try DamagedKeybagFixture()
    for field in ["DPIC", "ITER"] {
      var keybag = fixture.prepared.contents.keybag
      if field == "DPIC" { keybag.dpic = .max } else { keybag.iterations = .max }
      let error = try fixture.openError(keybag)
      #expect(error?.category == .refused)
      #expect(error?.reason.contains("over the limit of 20,000,000") == true)
    }
  }

  @Test("A damaged wrapped key loses only the items of its class, and is reported", arguments: [true, false])
  func wrappedKeys(onSameDevice: Bool) throws {
    let fixture = try DamagedKeybagFixture()
    let session = try (onSameDevice ? fixture.phone : fixture.other).openTestSession()
    // Without the key of class 3, the whole backup is damaged.
    for number in UInt32(1)...11 where number != 3 {
      for bit in Self.wrappedKeyBits {
        if onSameDevice { try session.erase() } else { try KeychainSnapshot.empty(session.device) }
        let unlocked = try fixture.open(try fixture.flipped("WPKY", ofClass: number, bit: bit), on: session)
        let report = "10 of 11 class keys can be unwrapped, class \(number) cannot"
        #expect(unlocked.keybagDamage == report)
        // Classes 1, 2, 4 and 5 are for files.
        #expect(unlocked.damage == (number >= 6 ? [.classKeys(report)] : []))
        let plan = try session.restore(unlocked)
        var expectedAccounts = Set(["ak", "ck", "dk"] + (onSameDevice ? ["aku", "cku", "dku"] : []))
        if let damagedClass = ProtectionClass(keyClass: KeyClass(rawValue: number)) {
          expectedAccounts.remove(damagedClass.rawValue)
          let decision = try #require(plan.decisions.first { $0.protection == damagedClass })
          #expect(decision.outcome == .unreadable(.noClassKey))
        }
        #expect(Set(try KeychainSnapshot(session).items.compactMap { $0[.account]?.stringValue }) == expectedAccounts)
      }
    }
  }

  @Test("A damaged key of the files' class makes the backup damaged")
  func fileClass() throws {
    let fixture = try DamagedKeybagFixture()
    for bit in Self.wrappedKeyBits {
      #expect(try fixture.openError(try fixture.flipped("WPKY", ofClass: 3, bit: bit))?.category == .damaged)
    }
  }

  @Test("A changed UUID is reported as a keychain of a different keybag")
  func uuid() throws {
    let fixture = try DamagedKeybagFixture()
    for bit in stride(from: 0, to: 128, by: 7) {
      let error = try fixture.openError(try fixture.flipped("UUID", bit: bit))
      #expect(error?.code == .keybagMismatch)
      #expect(error?.category == .damaged)
    }
  }

  @Test(
    "A changed VERS, TYPE, HMCK or DPWT has no effect",
    arguments: [("VERS", 32), ("TYPE", 32), ("HMCK", 320), ("DPWT", 32)])
  func harmless(_ tag: String, bits: Int) throws {
    let fixture = try DamagedKeybagFixture()
    let session = try fixture.phone.openTestSession()
    let undamaged = try Restorer.plan(
      fixture.open(fixture.prepared.contents.keybag, on: session), onto: session, policy: .replace)
    for bit in stride(from: 0, to: bits, by: bits > 32 ? 37 : 3) {
      let unlocked = try fixture.open(try fixture.flipped(tag, bit: bit), on: session)
      #expect(unlocked.keybagDamage == nil)
      let plan = try Restorer.plan(unlocked, onto: session, policy: .replace)
      #expect(plan.decisions == undamaged.decisions, "\(tag), bit \(bit)")
    }
  }

  @Test("Without the password or with a wrong password, nothing is decrypted")
  func passwords() throws {
    let fixture = try DamagedKeybagFixture()
    let path = try fixture.tamperingWriter.write(fixture.prepared, named: "intact") { _ in }
    for password in [nil, "", "wrong", TestSetup.password + " ", TestSetup.password.uppercased()] {
      let error = try keyhaulError { _ = try fixture.setup.open(path, password: password, on: nil) }
      #expect(error?.category == .wrongPassword)
    }
    #expect(try fixture.setup.open(path, password: TestSetup.password, on: nil).items.count == 6)
  }

  @Test("A canceled key derivation ends, for a backup and for unlocking", arguments: [1, 9_000_000])
  func stopped(rounds: Int) throws {
    let fixture = try DamagedKeybagFixture()
    let session = try fixture.phone.openTestSession()
    let backupError = try keyhaulError {
      _ = try BackupExporter.prepare(session, password: secret("pw"), rounds: rounds) { _, _ in false }
    }
    #expect(backupError?.category == .failed)
    #expect((backupError?.underlying as? DataProtectionError)?.code == .cancelled)
    // With this many iterations, the derivation is canceled before the password turns out to be wrong.
    let path = try fixture.tamperingWriter.write(fixture.prepared, named: "slow") { $0.keybag.dpic = UInt32(rounds) }
    let unlockError = try keyhaulError {
      _ = try BackupArchive.open(.path(path)).unlock(password: secret(TestSetup.password)) { _, _ in false }
    }
    #expect(unlockError?.category == .failed)
    #expect((unlockError?.underlying as? DataProtectionError)?.code == .cancelled)
  }
}
