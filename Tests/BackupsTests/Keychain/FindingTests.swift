import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing

@testable import Backups

@Suite("Backups with a changed part")
struct FindingTests {
  private static let keychainPath = "KeychainDomain/keychain-backup.plist"

  private func backup(hasPassword: Bool = true) throws -> EditableBackup {
    try EditableBackup(
      hasPassword: hasPassword, files: [EditableBackup.File("letter.txt", Array("Dear Anna".utf8))],
      items: [.password("anna"), .password("push token", .whenUnlockedThisDeviceOnly)])
  }

  private func opened(
    _ backup: EditableBackup, for use: BackupPurpose, password: String? = nil
  ) throws -> UnlockedBackup {
    let archive = try backup.open()
    let text = password ?? (backup.hasPassword ? EditableBackup.password : nil)
    return try archive.open(with: archive.unlock(password: text.map { Secret(utf8: $0) }), for: use)
  }

  /// Checks that the finding is reported, that the remaining items can be planned, and that a restore is refused for
  /// the same reason. If the keychain is unreadable, operations that require all items are refused as well.
  private func expect(
    _ kind: BackupFinding.Kind, itemCount: Int, of backup: EditableBackup,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let itemPurposes = [BackupPurpose.exporting, .planning]
    let preventsReadingKeychain = kind == .keychainMissing || kind == .keychainDamaged
    for use in [.reading] + (preventsReadingKeychain ? [] : itemPurposes) {
      let archive = try opened(backup, for: use)
      #expect(archive.findings.map(\.kind) == [kind], sourceLocation: sourceLocation)
      #expect(archive.items.count == itemCount, sourceLocation: sourceLocation)
      #expect(archive.damage == archive.findings.map { .finding($0) }, sourceLocation: sourceLocation)
    }
    let finding = try #require(try opened(backup, for: .reading).findings.first, sourceLocation: sourceLocation)
    for use in [.restoring] + (preventsReadingKeychain ? itemPurposes : []) {
      let error = #expect(throws: KeyhaulError.self, sourceLocation: sourceLocation) {
        try opened(backup, for: use)
      }
      #expect(error.map { finding.description.contains($0.reason) } == true, sourceLocation: sourceLocation)
    }
  }

  @Test("A backup with a damaged keychain file has its files and no items")
  func keychainDamaged() throws {
    let backup = try backup()
    try backup.change(Self.keychainPath) { $0[3] ^= 1 }
    try expect(.keychainDamaged, itemCount: 0, of: backup)
    #expect(try opened(backup, for: .reading).fileList.listing().fileCount == 2)
  }

  @Test("A backup with a missing keychain file has its files and no items")
  func keychainMissing() throws {
    let backup = try backup()
    try backup.remove(Self.keychainPath)
    try expect(.keychainMissing, itemCount: 0, of: backup)
  }

  @Test("A backup whose keychain refers to another keybag shows its items and cannot be restored")
  func keybagMismatch() throws {
    let backup = try EditableBackup(
      items: [.password("anna")], namingKeybag: "00112233-4455-6677-8899-aabbccddeeff")
    try expect(.keybagMismatch, itemCount: 1, of: backup)
    #expect(try opened(backup, for: .reading).items.allSatisfy { $0.item != nil })
  }

  @Test("A backup without a keychain cannot be planned or restored, but it can be read")
  func noKeychain() throws {
    let backup = try EditableBackup(items: [], hasKeychain: false)
    #expect(try opened(backup, for: .reading).findings.isEmpty)
    for use in [BackupPurpose.planning, .restoring] {
      #expect(throws: KeyhaulError.self) { try opened(backup, for: use) }
    }
  }

  @Test("A backup without a keybag opens if its files are unencrypted, and its items cannot be decrypted")
  func keybagMissing() throws {
    let backup = try backup(hasPassword: false)
    let bytes = try backup.read("Manifest.plist")
    guard var root = try BinaryPlist.decode(bytes).dictionaryValue else { return }
    root["BackupKeyBag"] = nil
    try backup.write(try BinaryPlist.encode(.dictionary(root)), to: "Manifest.plist")
    try expect(.keybagUnusable, itemCount: 2, of: backup)
    let archive = try opened(backup, for: .planning)
    #expect(archive.items.allSatisfy { archive.reason(of: $0) == .noClassKey })
  }

  @Test("A backup with an XML keychain has all items and can be restored", arguments: [true, false])
  func keychainInXML(hasPassword: Bool) throws {
    let backup = try EditableBackup(
      hasPassword: hasPassword, items: [.password("anna"), .password("berta")], keychainInXML: true)
    let archive = try opened(backup, for: .restoring)
    #expect(archive.findings == [.keychainInXML] && archive.damage.isEmpty)
    #expect(archive.items.count == 2)
    if hasPassword { #expect(archive.items.allSatisfy { $0.item != nil }) }
  }
}
