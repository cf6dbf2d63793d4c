import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import SystemPackage
import TestSupport
import Testing

@testable import Backups

@Suite("Writing large keychains item by item")
struct KeychainSpoolTests {
  private typealias Entry = KeychainBackupFile.Entry

  /// Creates ten items that alternate between the kinds, with a megabyte each if they are large.
  private func entries(areLarge: Bool) throws -> [Entry] {
    let random = SeededRandomSource(seed: "items")
    return try (0..<10).map { number in
      Entry(
        kind: ItemKind.allCases[number % 4], blob: try random.bytes(areLarge ? 1 << 20 : 300),
        persistentReference: number % 3 == 0 ? nil : try random.bytes(20))
    }
  }

  private func spooled(_ entries: [Entry], _ keybag: Keybag, system: FileSystem = .real) throws -> SealedKeychain {
    let spool = try SealedItemSpool(system: system)
    for entry in entries {
      try spool.append(entry.kind, blob: entry.blob ?? [], persistentReference: entry.persistentReference)
    }
    return try spool.finish(keybagUUID: keybag.uuidText)
  }

  private func write(
    _ keychain: SealedKeychain, _ sample: borrowing SampleBackup, to destination: BackupDestination,
    system: FileSystem = unsynced
  ) throws {
    var contents = sample.contents
    contents.keychain = keychain
    _ = try BackupWriter(system: system).write(
      contents, keys: sample.keys, random: SeededRandomSource(seed: "files"), to: destination)
  }

  @Test(
    "A keychain written item by item equals one written from memory, and only a large one is in a temporary file",
    arguments: [true, false], [true, false])
  func equalsFileFromMemory(isLarge: Bool, hasPassword: Bool) throws {
    let sample = try SampleBackup(hasPassword: hasPassword)
    let entries = try entries(areLarge: isLarge)
    let file = try KeychainBackupFile(keybagUUID: sample.contents.keybag.uuidText, entries: entries).serialized()
    let keychain = try spooled(entries, sample.contents.keybag)
    #expect(keychain.isInFile == isLarge)
    #expect(try keychain.bytes() == file)

    let directory = try TemporaryDirectory()
    try write(keychain, sample, to: .directory(directory.path("spooled")))
    try write(SealedKeychain(file), sample, to: .directory(directory.path("memory")))
    #expect(try tree(directory.path("spooled")) == tree(directory.path("memory")))
    // Six files, and the directory 51.
    #expect(try tree(directory.path("memory")).count == 7)
    for format in [ContainerFormat.tar, .zip] {
      try write(keychain, sample, to: .file(directory.path("spooled.\(format)"), format))
      try write(SealedKeychain(file), sample, to: .file(directory.path("memory.\(format)"), format))
      #expect(try directory.read("spooled.\(format)") == directory.read("memory.\(format)"))
    }
    let archive = try BackupArchive.open(.path(directory.path("spooled")))
    let payload = try archive.keychainFile(with: sample.keys)
    #expect(payload.bytes == file && payload.anomalies.isEmpty)
    #expect(payload.file.entries.count == 10)
  }

  @Test("The temporary file of a large keychain leaves no trace")
  func traceless() throws {
    let sample = try SampleBackup()
    let namesBefore = try FileSystem.temporaryFileNames()
    let keychain = try spooled(try entries(areLarge: true), sample.contents.keybag)
    #expect(keychain.isInFile)
    #expect(try FileSystem.remainingTemporaryFileNames(since: namesBefore) == [])
    let directory = try TemporaryDirectory()
    try write(keychain, sample, to: .directory(directory.path("b")))
    #expect(try FileSystem.remainingTemporaryFileNames(since: namesBefore) == [])
  }

  @Test("A lack of space for the items or the encrypted file is an error, and the destination is unchanged")
  func noRoom() throws {
    let sample = try SampleBackup()
    let entries = try entries(areLarge: true)
    for call in [FileSystem.Call.create, .write] {
      let systemWithFullDisk = FileSystem { $0 == call ? .failure(.noSpace) : nil }
      let spoolingError = #expect(throws: KeyhaulError.self) {
        try spooled(entries, sample.contents.keybag, system: systemWithFullDisk)
      }
      #expect(spoolingError?.code == .noTemporarySpace, "\(call)")
      let directory = try TemporaryDirectory()
      let keychain = try spooled(entries, sample.contents.keybag)
      let writingError = #expect(throws: KeyhaulError.self) {
        try write(keychain, sample, to: .directory(directory.path("b")), system: systemWithFullDisk)
      }
      #expect(writingError?.code == .noTemporarySpace, "\(call)")
      #expect(try tree(directory.path).isEmpty)
    }
  }

  @Test("A failure to read the temporary file is an error, and the destination is unchanged")
  func unreadable() throws {
    let sample = try SampleBackup()
    let readCount = Locked(0)
    let directory = try TemporaryDirectory()
    // The items are read in at least eleven chunks, then the encrypted file for its digest and for writing.
    for successCount in [0, 1, 7, 20, 60] {
      readCount.withLock { $0 = 0 }
      let failing = FileSystem { call in
        guard call == .read else { return call == .sync ? .omitted : nil }
        return readCount.withLock { count in
          count += 1
          return count > successCount ? .failure(.ioError) : nil
        }
      }
      let keychain = try spooled(try entries(areLarge: true), sample.contents.keybag, system: failing)
      let error = #expect(throws: KeyhaulError.self) {
        try write(keychain, sample, to: .file(directory.path("b.tar"), .tar), system: failing)
      }
      #expect(error?.code == .unreadable, "\(successCount)")
      #expect(error?.reason == "a temporary file: input/output error")
      #expect(try tree(directory.path).isEmpty)
    }
  }

  @Test("The size of all items is limited")
  func limit() throws {
    let spool = try SealedItemSpool(system: .real, maximumByteCount: 100)
    try spool.append(
      .key, blob: [UInt8](repeating: 1, count: 80), persistentReference: [UInt8](repeating: 2, count: 20))
    let error = #expect(throws: KeyhaulError.self) {
      try spool.append(.key, blob: [1], persistentReference: nil)
    }
    #expect(error?.code == .unwritable)
    #expect(error?.reason == "the keychain's items have more than 100 bytes")
  }
}

extension FileSystem {
  /// Returns the names of Keyhaul's files in the temporary directory, which are deleted as soon as they are open.
  static func temporaryFileNames() throws -> Set<String> {
    let names = try FileManager.default.contentsOfDirectory(atPath: temporaryDirectory)
    // `mkstemp` adds six random characters.
    return Set(names.filter { $0.hasPrefix("keyhaul-") && $0.count == "keyhaul-".count + 6 })
  }

  /// Returns the names of Keyhaul's files that appeared in the temporary directory and stay there for a second.
  ///
  /// Another test may have created a file, and not deleted its name yet.
  static func remainingTemporaryFileNames(since namesBefore: Set<String>) throws -> Set<String> {
    var names = try temporaryFileNames().subtracting(namesBefore)
    for _ in 0..<100 where !names.isEmpty {
      usleep(10_000)
      names.formIntersection(try temporaryFileNames())
    }
    return names
  }
}
