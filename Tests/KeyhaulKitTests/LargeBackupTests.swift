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

@Suite("A backup of a large keychain")
struct LargeBackupTests {
  /// Twelve items, of which one stays, with ten megabytes of secrets.
  private func phone(_ desk: Desk) throws -> DeviceSession {
    let session = try desk.phone("phone", passcode: "1234").held()
    let secret = [UInt8](repeating: 7, count: 1 << 20)
    try session.plant((0..<10).map { .password("large \($0)", secret: secret) })
    try session.plant(.password("small"), .password("stays", .whenPasscodeSetThisDeviceOnly))
    return session
  }

  private func prepare(
    _ session: DeviceSession, listing: Bool = true, system: FileSystem = .real
  ) throws -> PreparedBackup {
    try BackupExporter.prepare(
      session, password: secret(Desk.password), rounds: 1, listsExported: listing, system: system)
  }

  @Test("keeps the sealed items in a temporary file, and is the same as one that holds them")
  func same() throws {
    let desk = try Desk(seed: "large")
    let session = try phone(desk)
    let prepared = try prepare(session)
    #expect(prepared.contents.keychain.isInFile)
    var held = prepared.contents
    held.keychain = SealedKeychain(try held.keychainFile)
    let random = { SeededRandomSource(seed: "files") }
    let (path, destination) = desk.destination("spooled", .tar)
    _ = try prepared.write(to: destination, random: random())
    _ = try BackupWriter().write(
      held, keys: prepared.keys, random: random(), to: .file(desk.directory.path("held.tar"), .tar))
    #expect(try desk.directory.read("spooled.tar") == desk.directory.read("held.tar"))

    let archive = try desk.open(path, password: Desk.password, on: session)
    #expect(
      archive.items.compactMap(\.item?.secretBytes?.count).sorted() == ["secret of small".utf8.count]
        + Array(repeating: 1 << 20, count: 10))
    // A second one is sealed again, and is not the first.
    #expect(try prepare(session).contents.keychainFile != prepared.contents.keychainFile)
  }

  @Test("counts the same items whether it lists them or not")
  func counts() throws {
    let session = try phone(try Desk(seed: "names"))
    let named = try prepare(session).report
    let counted = try prepare(session, listing: false).report
    #expect(named.exported.map(\.identity.account) == (0..<10).map { "large \($0)" } + ["small"])
    #expect(counted.exported.isEmpty)
    for report in [named, counted] {
      #expect(report.exportedCount == 11 && report.total == 12)
      #expect(report.leftOut.map(\.outcome.reason) == [.passcodeOnly])
    }
  }

  @Test("that finds no room for temporary files says what to do, before anything is written")
  func noRoom() throws {
    let desk = try Desk(seed: "full")
    let session = try phone(desk)
    let full = FileSystem { $0 == .write ? .failure(.noSpace) : nil }
    let sealing = try migrationError { _ = try prepare(session, system: full) }
    let (_, destination) = desk.destination("b", .directory)
    let prepared = try prepare(session)
    let writing = try migrationError {
      _ = try prepared.write(with: BackupWriter(system: full), to: destination, replace: false)
    }
    for error in [sealing, writing] {
      #expect(error?.category == .failed)
      #expect(error?.summary == "a temporary file cannot be written")
      #expect(error?.reason.hasSuffix("no space left on device") == true, "\(error?.reason ?? "")")
      #expect(error?.advice == "set TMPDIR to a folder with free space")
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: desk.directory.path("")).isEmpty)
  }
}
