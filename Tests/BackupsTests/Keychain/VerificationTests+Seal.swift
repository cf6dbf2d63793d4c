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
    private let plain = VerificationTests()

    private func keys(of archive: BackupArchive, _ shelf: Shelf) throws -> ClassKeys? {
      try archive.unlock(password: shelf.hasPassword ? Secret(utf8: Shelf.password) : nil)
        .classKeys(deviceKey: nil)
    }

    private func sealed(hasPassword: Bool = true, layout: BackupLayout = .manifestDB) throws -> Shelf {
      let shelf = try plain.shelf(
        hasPassword: hasPassword, layout: layout,
        files: VerificationTests.files() + [.init("second.txt", Array("a letter to Berta".utf8))])
      let archive = try shelf.open()
      let count = try BackupRewriter().seal(archive, at: shelf.path, keys: try keys(of: archive, shelf))
      // The manifest, status, and list; three stored files; the keychain.
      #expect(count == 7)
      return shelf
    }

    @Test(
      "A sealed backup has no file in which a change cannot be detected", arguments: BackupLayout.allCases,
      [true, false])
    func whole(layout: BackupLayout, hasPassword: Bool) throws {
      let shelf = try sealed(hasPassword: hasPassword, layout: layout)
      let verification = try plain.verify(shelf)
      #expect(verification.faults == [] && verification.verifiedAllFiles)
      #expect(verification.files?.withoutDigest == 1)
      let check = try #require(verification.checks.first { $0.id == .seal })
      let isKeyed = hasPassword && layout == .manifestDB
      #expect(
        check.detail.hasPrefix("7 files match the seal")
          && check.detail.contains("with the backup's password") == isKeyed)
      #expect(verification.verdict == (hasPassword ? .whole : .foreign))
    }

    /// Returns the files of the seal's faults with their reasons.
    private func named(_ verification: BackupVerification) -> [String: String] {
      Dictionary(
        verification.faults.filter { $0.kind == .sealBroken }.map { ($0.file ?? "", $0.reason) },
        uniquingKeysWith: { "\($0), \($1)" })
    }

    private static let changed = "it has changed since the backup was sealed"

    @Test("Only the changed file without a digest is reported, with and without the password")
    func changedFile() throws {
      let shelf = try sealed()
      try shelf.change("HomeDomain/undigested.txt") { $0[20] ^= 1 }
      let place = try shelf.storedPath("HomeDomain/undigested.txt")
      for knowsPassword in [true, false] {
        let verification = try plain.verify(shelf, knowsPassword: knowsPassword)
        #expect(named(verification) == [place: Self.changed] && verification.verdict == .damaged)
      }
      // Without the seal, the change is not detected.
      try shelf.remove("Keyhaul.seal")
      #expect(try plain.verify(shelf).faults == [])
    }

    @Test("Two exchanged files are reported")
    func swapped() throws {
      let shelf = try sealed()
      let (first, second) = (try shelf.read("HomeDomain/undigested.txt"), try shelf.read("HomeDomain/second.txt"))
      try shelf.change("HomeDomain/undigested.txt") { $0 = second }
      try shelf.change("HomeDomain/second.txt") { $0 = first }
      let places = try ["undigested.txt", "second.txt"].map { try shelf.storedPath("HomeDomain/\($0)") }
      #expect(named(try plain.verify(shelf)) == [places[0]: Self.changed, places[1]: Self.changed])
    }

    @Test("A removed file and an added unlisted file are reported")
    func takenAndAdded() throws {
      let shelf = try sealed()
      let place = try shelf.storedPath("HomeDomain/second.txt")
      try shelf.remove("HomeDomain/second.txt")
      let added = "ab/ab" + String(repeating: "0", count: 38)
      try shelf.write([1, 2, 3], to: added)
      let verification = try plain.verify(shelf)
      #expect(
        named(verification)
          == [place: "it was sealed, but is missing", added: "it is present, but was not sealed"])
      #expect(!verification.isOnlyIncomplete)
      try shelf.remove(added)
      #expect(try plain.verify(shelf).isOnlyIncomplete)
    }

    @Test("A sealed backup whose files seem unencrypted is reported as changed")
    func madeToLookUnencrypted() throws {
      let shelf = try sealed()
      let clear = try plain.shelf(hasPassword: false)
      for name in ["Manifest.plist", "Manifest.db"] { try shelf.write(try clear.read(name), to: name) }
      let archive = try shelf.open()
      #expect(!archive.isEncrypted)
      let verification = try BackupVerification(archive, keys: nil)
      #expect(named(verification)["Keyhaul.seal"]?.contains("made with a password") == true)
      #expect(named(verification)["Manifest.plist"] == Self.changed)
      #expect(named(verification)["Manifest.db"] == Self.changed)
    }

    @Test("Without the password, the report states that the seal's code was not checked")
    func withoutPassword() throws {
      let verification = try plain.verify(sealed(), knowsPassword: false)
      let unchecked = try #require(verification.unchecked.first { $0.id == .seal })
      #expect(
        unchecked.reason
          == "7 files match the seal; the password is needed to check whether the seal is genuine")
    }

    @Test("Encrypting or decrypting a sealed backup requires that its files are unchanged")
    func reencryption() throws {
      let shelf = try sealed(hasPassword: false)
      try shelf.change("HomeDomain/undigested.txt") { $0[3] ^= 1 }
      let archive = try shelf.open()
      let keybag = try BackupKeybag.addingPassword(
        archive.keybag, passcodeKey: try archive.keybag.passcodeKey(password: .empty),
        with: Secret(utf8: "one"), deviceKey: try shelf.hardware.deviceKey(), rounds: 1)
      let before = try shelf.read("Manifest.plist")
      let error = #expect(throws: KeyhaulError.self) {
        _ = try BackupRewriter().reencrypt(
          archive, at: shelf.path, with: keybag,
          keys: archive.keybag.unlock(password: .empty, deviceKey: shelf.hardware.deviceKey()))
      }
      #expect(error?.code == .damaged && error?.reason.contains(Self.changed) == true)
      #expect(try shelf.read("Manifest.plist") == before)
    }
  }
}
