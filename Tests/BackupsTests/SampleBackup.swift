import Backups
import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport

/// A small backup whose every byte follows from its seed.
struct SampleBackup: ~Copyable {
  static let password = "correct horse"
  static let udid = "4C1F0A2B-9D3E5F60718293A4"
  /// 2026-11-20T18:04:10Z.
  static let date = KeychainDate(secondsSince1970: 1_795_197_850)

  let contents: BackupContents
  let keys: ClassKeys

  /// - Parameter secretByteCount: How large the one item's blob is, and with it the backup.
  init(hasPassword: Bool = true, seed: String = "sample", secretByteCount: Int = 300) throws {
    let random = SeededRandomSource(seed: seed)
    let hardware = try HardwareUID(from: random)
    let password: Secret? = hasPassword ? Secret(utf8: Self.password) : nil
    let made = try BackupKeybag.make(
      password: password, deviceKey: try hardware.deviceKey(), rounds: 10, random: random)
    let keybag = made.keybag
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
    keys = made.classKeys
  }

  @discardableResult
  borrowing func write(
    to destination: ArchiveDestination, replace: Bool = false, system: FileSystem = unsynced
  ) throws -> WrittenBackup {
    try BackupWriter(system: system).write(
      contents, keys: keys, random: SeededRandomSource(seed: "files"), to: destination, replace: replace)
  }

  /// The bytes of a container, through a file that is gone afterwards.
  borrowing func packed(as format: ContainerFormat) throws -> [UInt8] {
    let directory = try TemporaryDirectory()
    try write(to: .file(directory.path("packed"), format))
    return try directory.read("packed")
  }

  /// The stored files of the one with a password, made once: they are the same each time.
  static func storedFiles() throws -> [(path: String, bytes: [UInt8])] { try files.get() }

  private static let files = Result { try SampleBackup().storedFiles() }

  /// The stored files by their paths, for tests that change one and pack them again.
  borrowing func storedFiles() throws -> [(path: String, bytes: [UInt8])] {
    let directory = try TemporaryDirectory()
    try write(to: .directory(directory.path("backup")))
    return try [
      "Manifest.plist", "Status.plist", "Info.plist", "Manifest.db", "51/\(KeychainPayload.fileIdentifier)",
    ].map { ($0, try directory.read("backup/\($0)")) }
  }
}

/// Opens bytes as one file, the way the program does.
func open(_ bytes: [UInt8], limits: ArchiveLimits = .standard) throws -> BackupArchive {
  let directory = try TemporaryDirectory()
  try directory.write(bytes, to: "archive")
  return try BackupArchive.open(.path(directory.path("archive")), limits: limits)
}

/// The code with which opening these bytes fails; `nil` if it doesn't.
func failure(opening bytes: [UInt8], limits: ArchiveLimits = .standard) throws -> KeyhaulError? {
  do {
    _ = try open(bytes, limits: limits)
    return nil
  } catch let error as KeyhaulError {
    return error
  }
}

/// The names in a directory and below it with their kinds and contents, to tell whether anything changed there.
func tree(_ path: String) throws -> [String] {
  let names = try FileManager.default.subpathsOfDirectory(atPath: path).sorted()
  return names.map { name in
    // Seeded again in each process, which is all that a comparison within one needs.
    var hasher = Hasher()
    hasher.combine(FileManager.default.contents(atPath: "\(path)/\(name)").map(Array.init))
    return "\(name) \(hasher.finalize())"
  }
}

/// Packs files into a tar without a leading directory.
func packed(_ files: [(path: String, bytes: [UInt8])]) -> [UInt8] {
  var tar = TinyTar()
  for file in files { tar.add(file.path, file.bytes) }
  return tar.finished()
}

/// A binary property list among a backup's files.
func propertyList(_ name: String, in files: [(path: String, bytes: [UInt8])]) throws -> PropertyDictionary {
  try BinaryPlist.decode(files[name] ?? []).dictionaryValue ?? [:]
}

extension [(path: String, bytes: [UInt8])] {
  /// The bytes at a path; setting `nil` leaves the file out.
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
