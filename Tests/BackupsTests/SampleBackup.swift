import Backups
import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport

/// A small backup whose bytes depend only on a seed.
struct SampleBackup: ~Copyable {
  static let password = "correct horse"
  static let udid = "4C1F0A2B-9D3E5F60718293A4"
  /// 2026-11-20T18:04:10Z.
  static let date = KeychainDate(secondsSince1970: 1_795_197_850)

  let contents: BackupContents
  let keys: ClassKeys

  /// Creates a sample.
  ///
  /// - Parameter secretByteCount: The size of the only item's data, which determines the size of the backup.
  init(hasPassword: Bool = true, seed: String = "sample", secretByteCount: Int = 300) throws {
    let random = SeededRandomSource(seed: seed)
    let deviceKey = try HardwareUID(from: random).deviceKey()
    let password: Secret? = hasPassword ? Secret(utf8: Self.password) : nil
    let newKeybag = try BackupKeybag.make(password: password, deviceKey: deviceKey, rounds: 10, random: random)
    let keybag = newKeybag.keybag
    let blob = try random.bytes(secretByteCount)
    let file = KeychainBackupFile(
      keybagUUID: keybag.uuidText,
      entries: [KeychainBackupFile.Entry(kind: .genericPassword, blob: blob, persistentReference: nil)])
    contents = BackupContents(
      device: BackupDevice(
        identifier: Self.udid, name: "old-phone", productType: "iPhone15,2", productVersion: "18.1",
        buildVersion: "22B83", serialNumber: "F2LXK0AB12"),
      date: Self.date, keybag: keybag, isEncrypted: hasPassword, wasPasscodeSet: true,
      keychainFile: try file.serialized())
    keys = newKeybag.classKeys
  }

  @discardableResult
  borrowing func write(
    to destination: BackupDestination, replace: Bool = false, system: FileSystem = unsynced
  ) throws -> WrittenBackup {
    try BackupWriter(system: system).write(
      contents, keys: keys, random: SeededRandomSource(seed: "files"), to: destination, replace: replace)
  }

  /// Writes a container to a temporary file, and returns its bytes.
  borrowing func packed(as format: ContainerFormat) throws -> [UInt8] {
    let directory = try TemporaryDirectory()
    try write(to: .file(directory.path("packed"), format))
    return try directory.read("packed")
  }

  /// Returns the stored files of the default sample, as `storedFiles()` of an instance does. All tests share them, because
  /// they are always equal.
  static func storedFiles() throws -> [(path: String, bytes: [UInt8])] { try files.get() }

  private static let files = Result { try SampleBackup().storedFiles() }

  /// Returns the stored files without the seal, which the changes of a test would break.
  borrowing func storedFiles() throws -> [(path: String, bytes: [UInt8])] {
    let directory = try TemporaryDirectory()
    try write(to: .directory(directory.path("backup")))
    return try [
      "Manifest.plist", "Status.plist", "Info.plist", "Manifest.db", "51/\(KeychainPayload.fileIdentifier)",
    ].map { ($0, try directory.read("backup/\($0)")) }
  }
}

/// Opens bytes as a container file, as the program does.
func open(_ bytes: [UInt8], limits: BackupLimits = .standard) throws -> BackupArchive {
  let directory = try TemporaryDirectory()
  try directory.write(bytes, to: "archive")
  return try BackupArchive.open(.path(directory.path("archive")), limits: limits)
}

/// Returns the error if bytes cannot be opened as a backup, otherwise `nil`.
func failure(opening bytes: [UInt8], limits: BackupLimits = .standard) throws -> KeyhaulError? {
  do {
    _ = try open(bytes, limits: limits)
    return nil
  } catch let error as KeyhaulError {
    return error
  }
}

/// Returns a line with the path and a hash of the content for each file in a directory, to detect changes.
func tree(_ path: String) throws -> [String] {
  let names = try FileManager.default.subpathsOfDirectory(atPath: path).sorted()
  return names.map { name in
    // A hash of this process is sufficient for comparisons.
    var hasher = Hasher()
    hasher.combine(FileManager.default.contents(atPath: "\(path)/\(name)").map(Array.init))
    return "\(name) \(hasher.finalize())"
  }
}

/// Returns a tar of files, without a leading directory.
func packed(_ files: [(path: String, bytes: [UInt8])]) -> [UInt8] {
  var tar = TarFixture()
  for file in files { tar.add(file.path, file.bytes) }
  return tar.finished()
}

/// Returns a binary property list among a backup's files.
func propertyList(_ name: String, in files: [(path: String, bytes: [UInt8])]) throws -> PropertyDictionary {
  try BinaryPlist.decode(files[name] ?? []).dictionaryValue ?? [:]
}

extension [(path: String, bytes: [UInt8])] {
  /// The bytes at a path. Setting `nil` removes the file.
  subscript(path: String) -> [UInt8]? {
    get { first { $0.path == path }?.bytes }
    set {
      let index = firstIndex { $0.path == path }
      switch (index, newValue) {
      case (let index?, let bytes?): self[index].bytes = bytes
      case (let index?, nil): remove(at: index)
      case (nil, let bytes?): append((path, bytes))
      case (nil, nil): break
      }
    }
  }
}
