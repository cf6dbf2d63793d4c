import Backups
import Foundation
import KeychainCrypto
import KeychainFormats
import Keychains
import KeyhaulKit
import VirtualDevice

/// The kinds of files that are fuzzed: single-file backups, the metadata files of a folder backup, and documents.
enum FuzzedArchive: String, CaseIterable, FuzzedInput {
  case container
  case manifest
  case manifestDatabase = "manifest-database"
  case seal
  case plan
  case expectations
  case deviceFixture = "device-fixture"
  case dump

  /// The name under which a fuzzed single-file backup is written to the sample folder.
  private static let containerName = "one.file"

  func run(_ bytes: [UInt8]) {
    switch self {
    case .container:
      SampleFolder.shared.write(bytes, to: Self.containerName)
      verify(Self.containerName, keys: SampleFolder.shared.keys)
    case .manifest: verify(bytes, as: "Manifest.plist")
    case .manifestDatabase: verify(bytes, as: "Manifest.db")
    case .seal:
      guard let archive = verify(bytes, as: "Keyhaul.seal") else { return }
      let matchesSample = archive.seal?.violations == []
      let isOriginal = bytes == SampleFolder.shared.files["Keyhaul.seal"]
      expect(!matchesSample || isOriginal, "only the original seal matches the sample")
    case .plan:
      guard let file = try? PlanFile(parsing: bytes) else { return }
      expect(
        try PlanFile(parsing: PlanFile.bytes(of: file.document)).document == file.document,
        "a plan is the same after it is written and read")
    case .expectations:
      guard let parsed = try? PlanExpectations(parsing: bytes) else { return }
      expect(
        try PlanExpectations(parsing: bytes).expectations == parsed.expectations,
        "expectations are the same each time they are read")
    case .deviceFixture: _ = try? DeviceFixture(decoding: bytes, from: "fuzzed")
    case .dump:
      guard let dump = try? KeychainDump(parsing: bytes) else { return }
      expect(dump.items.count <= bytes.count, "a dump has no more items than bytes")
      for item in dump.items {
        expect(item.item != nil || item.fault != nil, "a dumped item has attributes or a fault")
      }
    }
  }

  func accepts(_ bytes: [UInt8]) -> Bool {
    switch self {
    case .container:
      SampleFolder.shared.write(bytes, to: Self.containerName)
      return readableItemCount(in: Self.containerName, keys: SampleFolder.shared.keys) == SampleFolder.itemCount
    case .manifest: return verify(bytes, as: "Manifest.plist")?.seal?.violations == []
    case .manifestDatabase: return verify(bytes, as: "Manifest.db")?.seal?.violations == []
    case .seal: return verify(bytes, as: "Keyhaul.seal")?.seal?.violations == []
    case .plan: return (try? PlanFile(parsing: bytes)) != nil
    case .expectations: return (try? PlanExpectations(parsing: bytes)) != nil
    case .deviceFixture: return (try? DeviceFixture(decoding: bytes, from: "example")) != nil
    case .dump: return (try? KeychainDump(parsing: bytes))?.items.contains { $0.item != nil } == true
    }
  }

  /// Returns the number of items of a backup that can be decrypted; `nil` if the backup cannot be read.
  private func readableItemCount(in name: String, keys: ClassKeys?) -> Int? {
    guard let archive = try? BackupArchive.open(.path(SampleFolder.shared.path(name)), storage: .memory) else {
      return nil
    }
    return (try? BackupVerification(archive, keys: keys))?.items?.readable
  }

  /// Replaces a file of the folder backup, and verifies this backup.
  @discardableResult
  private func verify(_ bytes: [UInt8], as name: String) -> BackupArchive? {
    let folder = SampleFolder.shared
    folder.write(bytes, to: "\(SampleFolder.folderBackupName)/\(name)")
    return verify(SampleFolder.folderBackupName)
  }

  /// Verifies a backup. The caller passes the keys instead of a password, because a damaged keybag could require any number
  /// of iterations.
  @discardableResult
  private func verify(_ name: String, keys: ClassKeys? = nil) -> BackupArchive? {
    guard let archive = try? BackupArchive.open(.path(SampleFolder.shared.path(name)), storage: .memory) else {
      return nil
    }
    if let verification = try? BackupVerification(archive, keys: keys) {
      expect(verification.checks.count + verification.unchecked.count > 0, "a verification lists at least one check")
    }
    return archive
  }

  func examples() throws -> [[UInt8]] {
    let folder = SampleFolder.shared
    return switch self {
    case .container: try ["b.tar", "b.tar.gz", "b.tar.zst", "b.zip"].map(folder.encryptedBackup)
    case .manifest: [folder.files["Manifest.plist"] ?? []]
    case .manifestDatabase: [folder.files["Manifest.db"] ?? []]
    case .seal: [folder.files["Keyhaul.seal"] ?? []]
    case .plan: [try PlanFile.bytes(of: ExampleDocuments.plan())]
    case .expectations: [Array(ExampleDocuments.expectations.utf8)]
    case .deviceFixture: [Array(ExampleDocuments.fixture.utf8)]
    case .dump: try ExampleDocuments.dumps()
    }
  }
}

/// A temporary folder with small sample backups of the same items. One is an unencrypted folder backup, whose files the
/// fuzzer replaces one at a time. The others are encrypted single-file backups. The folder is deleted at exit.
final class SampleFolder: Sendable {
  static let itemCount = 2
  /// The name of the folder backup whose files the fuzzer replaces.
  static let folderBackupName = "b"
  private static let password = "fuzzed"

  static let shared: SampleFolder = {
    do {
      return try SampleFolder()
    } catch {
      fatalError("cannot create the sample folder: \(error)")
    }
  }()

  /// The original files of the folder backup, by name.
  let files: [String: [UInt8]]
  /// The class keys of the encrypted single-file backups.
  let keys: ClassKeys?
  private let directory: URL

  private init() throws {
    let memory = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()
    directory = URL(filePath: memory).appending(path: "keyhaul-fuzzing-\(ProcessInfo.processInfo.processIdentifier)")
    try? FileManager.default.removeItem(at: directory)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let backupPath = "\(directory.path)/\(Self.folderBackupName)"
    try Self.write(to: BackupDestination(path: backupPath + "/"), hasPassword: false)
    var files: [String: [UInt8]] = [:]
    for name in try FileManager.default.subpathsOfDirectory(atPath: backupPath) {
      if let bytes = FileManager.default.contents(atPath: "\(backupPath)/\(name)") { files[name] = Array(bytes) }
    }
    self.files = files
    keys = try Self.keybag(hasPassword: true).classKeys
    atexit { try? FileManager.default.removeItem(at: SampleFolder.shared.directory) }
  }

  private static func keybag(hasPassword: Bool) throws -> UnlockedKeybag {
    let hardware = try HardwareUID(from: FixedRandomSource())
    return try BackupKeybag.make(
      password: hasPassword ? Secret(utf8: password) : nil, deviceKey: try hardware.deviceKey(), rounds: 1,
      random: FixedRandomSource())
  }

  private static func write(to destination: BackupDestination, hasPassword: Bool) throws {
    let unlockedKeybag = try keybag(hasPassword: hasPassword)
    let keybag = unlockedKeybag.keybag
    let keys = unlockedKeybag.classKeys
    let entries = try EncryptedSamples.secrets.map { secret in
      let blob = try keys.seal(EncryptedSamples.item(secret), as: .backup, random: FixedRandomSource())
      return KeychainBackupFile.Entry(kind: .genericPassword, blob: blob.serialized(), persistentReference: nil)
    }
    let file = KeychainBackupFile(keybagUUID: keybag.uuidText, entries: entries)
    let contents = BackupContents(
      device: BackupDevice(
        identifier: "4C1F0A2B-9D3E5F60718293A4", name: "old-phone", productType: "iPhone15,2", productVersion: "18.1",
        buildVersion: "22B83", serialNumber: "F2LXK0AB12"),
      date: KeychainDate(secondsSince1970: 1_795_197_850), keybag: keybag, isEncrypted: hasPassword,
      wasPasscodeSet: true, keychainFile: try file.serialized())
    _ = try BackupWriter().write(
      contents, keys: keys, random: FixedRandomSource(), to: destination, replace: true)
  }

  func path(_ name: String) -> String { directory.appending(path: name).path }

  /// Writes a file in the temporary folder.
  func write(_ bytes: [UInt8], to name: String) {
    guard FileManager.default.createFile(atPath: path(name), contents: Data(bytes)) else {
      fatalError("no room for \(name)")
    }
  }

  /// Writes an encrypted backup in the format of the name's extension, and returns its bytes.
  func encryptedBackup(_ name: String) throws -> [UInt8] {
    try Self.write(to: BackupDestination(path: path(name)), hasPassword: true)
    return Array(FileManager.default.contents(atPath: path(name)) ?? Data())
  }
}
