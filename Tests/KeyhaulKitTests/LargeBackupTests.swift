import Backups
import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import KeychainRules
import SystemPackage
import TestSupport
import Testing
import VirtualDevice

@testable import KeyhaulKit

@Suite("Backups of large keychains")
struct LargeBackupTests {
  /// Returns a session on a phone with twelve items and ten megabytes of secrets. One item stays behind.
  private func phone(in setup: TestSetup) throws -> DeviceSession {
    let session = try setup.phone("phone", passcode: "1234").openTestSession()
    let secret = [UInt8](repeating: 7, count: 1 << 20)
    try session.insertUnchanged((0..<10).map { .password("large \($0)", secret: secret) })
    try session.insertUnchanged(.password("small"), .password("stays", .whenPasscodeSetThisDeviceOnly))
    return session
  }

  private func prepare(
    _ session: DeviceSession, listsExported: Bool = true, system: FileSystem = .real
  ) throws -> PreparedBackup {
    try BackupExporter.prepare(
      session, password: secret(TestSetup.password), rounds: 1, listsExported: listsExported, system: system)
  }

  @Test("A large keychain is encrypted to a temporary file, with the same result as in memory")
  func sameResult() throws {
    let setup = try TestSetup(seed: "large")
    let session = try phone(in: setup)
    let prepared = try prepare(session)
    #expect(prepared.contents.keychain.isInFile)
    var inMemory = prepared.contents
    inMemory.keychain = SealedKeychain(try inMemory.keychainFile)
    let random = { SeededRandomSource(seed: "files") }
    let (path, destination) = setup.destination("spooled", .tar)
    _ = try prepared.write(to: destination, random: random())
    _ = try BackupWriter().write(
      inMemory, keys: prepared.keys, random: random(), to: .file(setup.directory.path("memory.tar"), .tar))
    #expect(try setup.directory.read("spooled.tar") == setup.directory.read("memory.tar"))

    let unlocked = try setup.open(path, password: TestSetup.password, on: session)
    #expect(
      unlocked.items.compactMap(\.item?.secretBytes?.count).sorted() == ["secret of small".utf8.count]
        + Array(repeating: 1 << 20, count: 10))
    // A second backup is encrypted with different random numbers.
    #expect(try prepare(session).contents.keychainFile != prepared.contents.keychainFile)
  }

  @Test("The counts of exported items do not depend on whether they are listed")
  func counts() throws {
    let session = try phone(in: try TestSetup(seed: "names"))
    let listed = try prepare(session).report
    let unlisted = try prepare(session, listsExported: false).report
    #expect(listed.exported.map(\.identity.account) == (0..<10).map { "large \($0)" } + ["small"])
    #expect(unlisted.exported.isEmpty)
    for report in [listed, unlisted] {
      #expect(report.exportedCount == 11 && report.total == 12)
      #expect(report.omissions.map(\.outcome.reason) == [.passcodeOnly])
    }
  }

  @Test("A backup without space for temporary files fails with advice before anything is written")
  func fullDisk() throws {
    let setup = try TestSetup(seed: "full")
    let session = try phone(in: setup)
    let fullDisk = FileSystem { $0 == .write ? .failure(.noSpace) : nil }
    let encryptionError = try keyhaulError { _ = try prepare(session, system: fullDisk) }
    let (_, destination) = setup.destination("b", .directory)
    let prepared = try prepare(session)
    let writeError = try keyhaulError {
      _ = try prepared.write(with: BackupWriter(system: fullDisk), to: destination, replace: false)
    }
    for error in [encryptionError, writeError] {
      #expect(error?.category == .failed)
      #expect(error?.summary == "a temporary file cannot be written")
      #expect(error?.reason.hasSuffix("no space left on device") == true, "\(error?.reason ?? "")")
      #expect(error?.advice == "set TMPDIR to a folder with free space")
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: setup.directory.path("")).isEmpty)
  }
}
