import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

extension VerificationTests {
  @Suite("Verification of sealed backups")
  struct Seal {
    private let base = VerificationTests()

    private func keys(of archive: BackupArchive, _ backup: EditableBackup) throws -> ClassKeys? {
      try archive.unlock(password: backup.hasPassword ? Secret(utf8: EditableBackup.password) : nil)
        .classKeys(deviceKey: nil)
    }

    private func sealedBackup(hasPassword: Bool = true, layout: BackupLayout = .manifestDB) throws -> EditableBackup {
      let backup = try base.backup(
        hasPassword: hasPassword, layout: layout,
        files: VerificationTests.files() + [.init("second.txt", Array("a letter to Berta".utf8))])
      let archive = try backup.open()
      let count = try BackupRewriter().seal(archive, at: backup.path, keys: try keys(of: archive, backup))
      // Manifest.plist, Status.plist, the manifest database, three stored files, and the keychain.
      #expect(count == 7)
      return backup
    }

    @Test(
      "A sealed backup has no file in which a change cannot be detected", arguments: BackupLayout.allCases,
      [true, false])
    func whole(layout: BackupLayout, hasPassword: Bool) throws {
      let backup = try sealedBackup(hasPassword: hasPassword, layout: layout)
      let verification = try base.verify(backup)
      #expect(verification.faults == [] && verification.verifiedAllFiles)
      #expect(verification.files?.withoutDigest == 1)
      let check = try #require(verification.checks.first { $0.id == .seal })
      let isKeyed = hasPassword && layout == .manifestDB
      #expect(
        check.detail.hasPrefix("7 files match the seal")
          && check.detail.contains("with the backup's password") == isKeyed)
      // Without a password, all items need the device key, which is not given.
      #expect(verification.verdict == (hasPassword ? .whole : .foreign))
    }

    /// Returns the files of the seal's faults with their reasons.
    private func reasonsByFile(in verification: BackupVerification) -> [String: String] {
      Dictionary(
        verification.faults.filter { $0.kind == .sealBroken }.map { ($0.file ?? "", $0.reason) },
        uniquingKeysWith: { "\($0), \($1)" })
    }

    private static let changed = "it has changed since the backup was sealed"

    @Test("Only the changed file without a digest is reported, with and without the password")
    func changedFile() throws {
      let backup = try sealedBackup()
      try backup.change("HomeDomain/undigested.txt") { $0[20] ^= 1 }
      let path = try backup.storedPath("HomeDomain/undigested.txt")
      for knowsPassword in [true, false] {
        let verification = try base.verify(backup, knowsPassword: knowsPassword)
        #expect(reasonsByFile(in: verification) == [path: Self.changed] && verification.verdict == .damaged)
      }
      // Without the seal, the change is not detected.
      try backup.remove("Keyhaul.seal")
      #expect(try base.verify(backup).faults == [])
    }

    @Test("Two exchanged files are reported")
    func exchanged() throws {
      let backup = try sealedBackup()
      let (name, otherName) = ("HomeDomain/undigested.txt", "HomeDomain/second.txt")
      let (bytes, otherBytes) = (try backup.read(name), try backup.read(otherName))
      try backup.change(name) { $0 = otherBytes }
      try backup.change(otherName) { $0 = bytes }
      let (path, otherPath) = (try backup.storedPath(name), try backup.storedPath(otherName))
      #expect(reasonsByFile(in: try base.verify(backup)) == [path: Self.changed, otherPath: Self.changed])
    }

    @Test("A removed file and an added unlisted file are reported")
    func removedAndAdded() throws {
      let backup = try sealedBackup()
      let removedPath = try backup.storedPath("HomeDomain/second.txt")
      try backup.remove("HomeDomain/second.txt")
      #expect(try base.verify(backup).isOnlyIncomplete)
      let addedPath = "ab/ab" + String(repeating: "0", count: 38)
      try backup.write([1, 2, 3], to: addedPath)
      let verification = try base.verify(backup)
      #expect(
        reasonsByFile(in: verification)
          == [removedPath: "it was sealed, but is missing", addedPath: "it is present, but was not sealed"])
      #expect(!verification.isOnlyIncomplete)
    }

    @Test("A sealed backup whose files seem unencrypted is reported as changed")
    func madeToLookUnencrypted() throws {
      let backup = try sealedBackup()
      let unencrypted = try base.backup(hasPassword: false)
      for name in ["Manifest.plist", "Manifest.db"] { try backup.write(try unencrypted.read(name), to: name) }
      let archive = try backup.open()
      #expect(!archive.isEncrypted)
      let verification = try BackupVerification(archive, keys: nil)
      #expect(reasonsByFile(in: verification)["Keyhaul.seal"]?.contains("made with a password") == true)
      #expect(reasonsByFile(in: verification)["Manifest.plist"] == Self.changed)
      #expect(reasonsByFile(in: verification)["Manifest.db"] == Self.changed)
    }

    @Test("Without the password, the report states that the seal's code was not checked")
    func withoutPassword() throws {
      let verification = try base.verify(sealedBackup(), knowsPassword: false)
      let unchecked = try #require(verification.unchecked.first { $0.id == .seal })
      #expect(
        unchecked.reason
          == "7 files match the seal; the password is needed to check whether the seal is genuine")
    }

    @Test("Encrypting or decrypting a sealed backup requires that its files are unchanged")
    func reencryption() throws {
      let backup = try sealedBackup(hasPassword: false)
      try backup.change("HomeDomain/undigested.txt") { $0[3] ^= 1 }
      let archive = try backup.open()
      let keybag = try BackupKeybag.addingPassword(
        archive.keybag, passcodeKey: try archive.keybag.passcodeKey(password: .empty),
        with: Secret(utf8: "one"), deviceKey: try backup.hardware.deviceKey(), rounds: 1)
      let manifestBefore = try backup.read("Manifest.plist")
      let error = #expect(throws: KeyhaulError.self) {
        _ = try BackupRewriter().reencrypt(
          archive, at: backup.path, with: keybag,
          keys: archive.keybag.unlock(password: .empty, deviceKey: backup.hardware.deviceKey()))
      }
      #expect(error?.code == .damaged && error?.reason.contains(Self.changed) == true)
      #expect(try backup.read("Manifest.plist") == manifestBefore)
    }
  }
}
