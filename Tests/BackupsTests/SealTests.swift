import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import SystemPackage
import TestSupport
import Testing

@testable import Backups

@Suite("Seals of backups")
struct SealTests {
  /// Returns the SHA-256 digest in hexadecimal.
  private static func sha256(_ bytes: [UInt8]) throws -> String { String(hexadecimal: try Digest.sha256(bytes)) }

  private func openBackup(_ path: String) throws -> BackupArchive { try BackupArchive.open(.path(path)) }

  private func lines(of seal: [UInt8]) -> [String] {
    String(decoding: seal, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  @Test("The seal of a written backup lists all other files, sorted by path", arguments: [true, false])
  func written(hasPassword: Bool) throws {
    let directory = try TemporaryDirectory()
    try SampleBackup(hasPassword: hasPassword).write(to: .directory(directory.path("b")))
    let sealLines = lines(of: try directory.read("b/Keyhaul.seal"))
    let names = [
      "51/51a4616e576dd33cd2abadfea874eb8ff246bf0e", "Info.plist", "Manifest.db", "Manifest.plist", "Status.plist",
    ]
    let fileLines = try names.map { name in
      let bytes = try directory.read("b/\(name)")
      return "\(try Self.sha256(bytes)) \(bytes.count) \(name)"
    }
    #expect(sealLines.first == "keyhaul-seal 1 \(hasPassword ? "hmac-sha256" : "sha256")")
    #expect(Array(sealLines.dropFirst().dropLast()) == fileLines)
    let archive = try openBackup(directory.path("b"))
    #expect(archive.seal?.violations == [] && archive.seal?.isKeyed == hasPassword && archive.seal?.fileCount == 5)
    let body = Array((sealLines.dropLast().joined(separator: "\n") + "\n").utf8)
    if !hasPassword { #expect(try sealLines.last == Self.sha256(body)) }
  }

  @Test(
    "A failure to open or read a file is not reported as a broken seal",
    arguments: [FileSystem.Call.open, .read])
  func unreadable(call: FileSystem.Call) throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("b")))
    var errorCount = 0
    for failingCall in 1...200 {
      let callCount = Locked(0)
      let system = FileSystem { current in
        guard current == call else { return nil }
        return callCount.withLock { count in
          count += 1
          return count == failingCall ? .failure(.permissionDenied) : nil
        }
      }
      do throws(KeyhaulError) {
        let archive = try BackupArchive.open(.path(directory.path("b")), limits: .standard, system: system)
        #expect(archive.seal?.violations == [], "\(call) \(failingCall)")
        let hasFailed = callCount.withLock { $0 } >= failingCall
        if !hasFailed { break }
      } catch {
        #expect(error.category == .failed, "\(call) \(failingCall): \(error.reason)")
        errorCount += 1
      }
    }
    #expect(errorCount >= 5)
  }

  @Test("The authentication code of a seal equals the one that Python computes with the manifest's key")
  func code() throws {
    let directory = try TemporaryDirectory()
    let sample = try SampleBackup()
    try sample.write(to: .directory(directory.path("b")))
    let archive = try openBackup(directory.path("b"))
    let keys = try archive.keybag.keys(SampleBackup.password)
    let key = try archive.fileKey(try #require(archive.manifest.manifestKey), of: "the list", keys: keys)
    let hexadecimalKey = key.withBytes { String(hexadecimal: Array($0)) }
    // A seal ends with a code of 64 digits and a newline.
    let script = """
      import hashlib, hmac, sys
      seal = open(sys.argv[1], "rb").read()
      body, code = seal[:-65], seal[-65:-1].decode()
      key = hmac.new(bytes.fromhex(sys.argv[2]), b"keyhaul seal 1", hashlib.sha256).digest()
      sys.exit(0 if hmac.new(key, body, hashlib.sha256).hexdigest() == code else 1)
      """
    let python = try ChildProcess("python3", ["-c", script, directory.path("b/Keyhaul.seal"), hexadecimalKey]).run()
    #expect(python.status == 0)
    #expect(try archive.sealViolation(with: keys) == nil)
  }

  /// Changes a sealed backup directory and returns the violations of its seal.
  ///
  /// The authentication code, which requires the password, is only checked if there are no other violations.
  private func sealViolations(
    after edit: (TemporaryDirectory) throws -> Void, hasPassword: Bool = true
  ) throws -> [SealViolation] {
    let directory = try TemporaryDirectory()
    try SampleBackup(hasPassword: hasPassword).write(to: .directory(directory.path("b")))
    try edit(directory)
    let archive = try openBackup(directory.path("b"))
    let violations = archive.seal?.violations ?? []
    guard hasPassword, violations.isEmpty else { return violations }
    return try archive.sealViolation(with: archive.keybag.keys(SampleBackup.password)).map { [$0] } ?? []
  }

  @Test(
    "A changed metadata file is reported by name",
    arguments: ["Status.plist", "Info.plist", "Manifest.db", "51/51a4616e576dd33cd2abadfea874eb8ff246bf0e"])
  func changed(name: String) throws {
    let violations = try sealViolations { directory in
      var bytes = try directory.read("b/\(name)")
      bytes[bytes.count - 1] ^= 1
      try directory.write(bytes, to: "b/\(name)")
    }
    #expect(
      violations.map(\.file) == [name] && violations.map(\.reason) == ["it has changed since the backup was sealed"])
  }

  @Test("A removed metadata file is reported")
  func removed() throws {
    let violations = try sealViolations { try FileManager.default.removeItem(atPath: $0.path("b/Info.plist")) }
    #expect(violations.map(\.file) == ["Info.plist"] && violations.allSatisfy(\.isFileMissing))
  }

  @Test("A metadata file that was added after the backup was sealed is reported")
  func addedFile() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("b")))
    let info = try directory.read("b/Info.plist")
    try FileManager.default.removeItem(atPath: directory.path("b/Info.plist"))
    try FileManager.default.removeItem(atPath: directory.path("b/Keyhaul.seal"))
    let archive = try openBackup(directory.path("b"))
    #expect(archive.seal == nil)
    _ = try BackupRewriter(system: unsynced).seal(
      archive, at: directory.path("b"), keys: archive.keybag.keys(SampleBackup.password))
    try directory.write(info, to: "b/Info.plist")
    #expect(try openBackup(directory.path("b")).seal?.violations.map(\.reason) == ["it is present, but was not sealed"])
  }

  @Test("A change of any byte of the seal is detected")
  func changedSeal() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("b")))
    let seal = try directory.read("b/Keyhaul.seal")
    let keys = try openBackup(directory.path("b")).keybag.keys(SampleBackup.password)
    for offset in seal.indices {
      try directory.write(seal.flipping(bit: 8 * offset + offset % 8), to: "b/Keyhaul.seal")
      let archive = try openBackup(directory.path("b"))
      let isDetected = try archive.seal?.violations.isEmpty == false || archive.sealViolation(with: keys) != nil
      #expect(isDetected, "byte \(offset)")
    }
  }

  @Test("A truncated seal is detected")
  func truncatedSeal() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("b")))
    let seal = try directory.read("b/Keyhaul.seal")
    for count in stride(from: 0, to: seal.count, by: 7) {
      try directory.write(Array(seal.prefix(count)), to: "b/Keyhaul.seal")
      #expect(try openBackup(directory.path("b")).seal?.violations.isEmpty == false, "\(count) bytes")
    }
  }

  @Test("The seal of another backup with the same password does not match")
  func sealOfOtherBackup() throws {
    let otherDirectory = try TemporaryDirectory()
    let sample = try SampleBackup(seed: "other")
    _ = try BackupWriter(system: unsynced).write(
      sample.contents, keys: sample.keys, random: SeededRandomSource(seed: "other"),
      to: .directory(otherDirectory.path("b")))
    let violations = try sealViolations {
      try $0.write(try otherDirectory.read("b/Keyhaul.seal"), to: "b/Keyhaul.seal")
    }
    #expect(!violations.isEmpty)
  }

  @Test("A seal without a key, which anyone can write, does not match a backup with a password")
  func sealWithoutKey() throws {
    let violations = try sealViolations { directory in
      let fileLines = lines(of: try directory.read("b/Keyhaul.seal")).dropFirst().dropLast().joined(separator: "\n")
      let body = "keyhaul-seal 1 sha256\n\(fileLines)\n"
      try directory.write(Array("\(body)\(try Self.sha256(Array(body.utf8)))\n".utf8), to: "b/Keyhaul.seal")
    }
    #expect(violations.map(\.file) == ["Keyhaul.seal"] && violations[0].reason.contains("anyone can write"))
  }

  @Test("A seal with a key does not match a backup without a password")
  func sealWithKey() throws {
    let violations = try sealViolations(
      after: { directory in
        let linesAfterHeader = lines(of: try directory.read("b/Keyhaul.seal")).dropFirst().joined(separator: "\n")
        try directory.write(Array("keyhaul-seal 1 hmac-sha256\n\(linesAfterHeader)\n".utf8), to: "b/Keyhaul.seal")
      }, hasPassword: false)
    #expect(violations.map(\.file) == ["Keyhaul.seal"])
  }

  @Test("The keychain of an older backup with the same device and password does not match the newer backup's seal")
  func olderKeychain() throws {
    let directory = try TemporaryDirectory()
    let oldSample = try SampleBackup(secretByteCount: 200)
    let newSample = try SampleBackup(secretByteCount: 300)
    try oldSample.write(to: .directory(directory.path("old")))
    try newSample.write(to: .directory(directory.path("b")))
    for name in ["Manifest.plist", "Manifest.db", "51/\(KeychainPayload.fileIdentifier)"] {
      try directory.write(try directory.read("old/\(name)"), to: "b/\(name)")
    }
    let archive = try openBackup(directory.path("b"))
    // The keychain can be decrypted, because both backups have the same device and password.
    let keys = try archive.keybag.keys(SampleBackup.password)
    #expect(try archive.keychainFile(with: keys).bytes == oldSample.contents.keychainFile)
    #expect(
      archive.seal?.violations.map(\.file) == ["Manifest.db", "51/\(KeychainPayload.fileIdentifier)"])
    #expect(throws: KeyhaulError.self) { try archive.requireUsable(for: .restoring) }
    #expect(throws: KeyhaulError.self) { try archive.requireUsable(for: .rewriting) }
    #expect(throws: Never.self) { try archive.requireUsable(for: .planning) }
  }

  @Test(
    "A seal can be added to a backup of another program without changing other bytes",
    arguments: ["b/", "b.tar", "b.zip"])
  func added(destination: String) throws {
    let directory = try TemporaryDirectory()
    if destination == "b/" {
      for file in try SampleBackup.storedFiles() { try directory.write(file.bytes, to: "b/\(file.path)") }
    } else {
      try directory.write(packed(try SampleBackup.storedFiles()), to: destination)
    }
    let archive = try openBackup(directory.path(destination))
    #expect(archive.seal == nil)
    let keys = try archive.keybag.keys(SampleBackup.password)
    let count = try BackupRewriter(system: unsynced).seal(
      archive, at: directory.path(destination), keys: archive.keybag.keys(SampleBackup.password))
    let sealed = try openBackup(directory.path(destination))
    #expect(count == 5 && sealed.digest == archive.digest)
    #expect(sealed.seal?.violations == [] && sealed.seal?.fileCount == 5)
    #expect(try sealed.sealViolation(with: keys) == nil)
    if destination == "b/" {
      for file in try SampleBackup.storedFiles() { #expect(try directory.read("b/\(file.path)") == file.bytes) }
    }
    #expect(throws: KeyhaulError.self) {
      _ = try BackupRewriter(system: unsynced).seal(sealed, at: directory.path(destination), keys: nil)
    }
  }

  private static let destinations = ["b/", "b.tar.zst"]

  /// Changes the password of the sample backup.
  private func changePassword(of path: String) throws {
    let archive = try openBackup(path)
    let newKeybag = try BackupKeybag.rewrap(
      archive.keybag, from: Secret(utf8: SampleBackup.password), to: Secret(utf8: "battery staple"))
    try BackupRewriter(system: unsynced).replaceKeybag(
      of: archive, at: path, with: newKeybag, keys: archive.keybag.keys(SampleBackup.password))
  }

  @Test("After the password is changed, the backup has a matching seal", arguments: destinations)
  func sealAfterPasswordChange(destination: String) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path(destination)
    try SampleBackup().write(to: BackupDestination(path: path))
    try changePassword(of: path)
    let archive = try openBackup(path)
    #expect(archive.seal?.violations == [] && archive.seal?.fileCount == 5)
    #expect(try archive.sealViolation(with: archive.keybag.keys("battery staple")) == nil)
  }

  @Test("After the password is changed, the seal does not match the manifest with the old password")
  func oldManifestAfterPasswordChange() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("b")))
    let oldManifest = try directory.read("b/Manifest.plist")
    try changePassword(of: directory.path("b"))
    try directory.write(oldManifest, to: "b/Manifest.plist")
    #expect(try openBackup(directory.path("b")).seal?.violations.map(\.file) == ["Manifest.plist"])
  }

  @Test(
    "After the keychain is replaced, the backup has a matching seal, also after a change of the password",
    arguments: destinations, [false, true])
  func sealAfterKeychainReplacement(destination: String, changesPassword: Bool) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path(destination)
    try SampleBackup().write(to: BackupDestination(path: path))
    if changesPassword { try changePassword(of: path) }
    let password = changesPassword ? "battery staple" : SampleBackup.password
    let archive = try openBackup(path)
    let keys = try archive.keybag.keys(password)
    let file = try archive.keychainFile(with: keys).bytes
    _ = try BackupRewriter(system: unsynced).replaceKeychain(
      of: archive, at: path, with: file, keys: archive.keybag.keys(password))
    let rewritten = try openBackup(path)
    #expect(rewritten.seal?.violations == [] && rewritten.seal?.fileCount == 5)
    #expect(try rewritten.sealViolation(with: keys) == nil)
  }

  @Test("A decrypted copy has a seal without a key", arguments: destinations)
  func sealOfDecryptedCopy(destination: String) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path(destination)
    try SampleBackup().write(to: BackupDestination(path: path))
    let archive = try openBackup(path)
    let decrypted = directory.path(destination == "b/" ? "decrypted/" : "decrypted.tar")
    _ = try BackupRewriter(system: unsynced).decrypt(
      archive, at: path, to: BackupDestination(path: decrypted), keys: archive.keybag.keys(SampleBackup.password))
    let copy = try openBackup(decrypted)
    #expect(copy.seal?.violations == [] && copy.seal?.isKeyed == false && copy.seal?.fileCount == 5)
  }

  @Test("The password of a backup that does not match its seal cannot be changed")
  func passwordChangeWithBrokenSeal() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("b")))
    var status = try directory.read("b/Status.plist")
    status[status.count - 1] ^= 1
    try directory.write(status, to: "b/Status.plist")
    let treeBefore = try tree(directory.path)
    let error = #expect(throws: KeyhaulError.self) { try changePassword(of: directory.path("b")) }
    #expect(error?.code == .damaged)
    #expect(try tree(directory.path) == treeBefore)
  }
}
