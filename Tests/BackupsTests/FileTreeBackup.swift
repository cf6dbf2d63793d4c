import Backups
import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport

/// A backup of iOS 10 or later with any files, encrypted or not.
final class FileTreeBackup {
  /// A row of the manifest and its stored content.
  struct File: Sendable {
    var domain = "HomeDomain"
    let path: String
    /// The content of a file, or `nil` if it is a directory or a link.
    var content: [UInt8]?
    /// The target of a link, or `nil` if it is a file or a directory.
    var target: String?
    var mode: UInt32 = 0o644
    var modified: Int64 = 1_600_000_000
    var keyClass: UInt32 = 3
    /// The recorded size, or `nil` if it is the actual one.
    var size: Int64?
    var digest = Digest.stored
    var isStored = true
    /// A change of the stored bytes.
    var damage: (@Sendable ([UInt8]) -> [UInt8])?
    /// The identifier in the row, if it is not the one of the domain and path.
    var identifier: String?

    enum Digest: Sendable { case stored, plain, wrong, none }

    static func text(_ path: String, _ text: String, in domain: String = "HomeDomain") -> File {
      File(domain: domain, path: path, content: Array(text.utf8))
    }

    static func link(_ path: String, to target: String) -> File { File(path: path, target: target) }
  }

  /// Returns the bytes of a name in these tests, in which U+F7F5 stands for the non-UTF-8 byte F5.
  static func bytes(_ name: String) -> [UInt8] {
    name.unicodeScalars.flatMap { scalar in
      (0xF780...0xF7FF).contains(scalar.value)
        ? [UInt8(truncatingIfNeeded: scalar.value)] : Array(String(scalar).utf8)
    }
  }

  let sample: SampleBackup
  private var storedFiles: [(path: String, bytes: [UInt8])] = []

  init(_ files: [File], isEncrypted: Bool = true) throws {
    sample = try SampleBackup(hasPassword: isEncrypted)
    var sql = ExternalDatabase.schema
    for (number, file) in files.enumerated() {
      var stored = file.content ?? []
      var wrappedKey: [UInt8]?
      if isEncrypted, file.content != nil {
        (stored, wrappedKey) = try Self.encrypt(stored, keyClass: file.keyClass, seed: "\(number)", sample)
      }
      let record = try file.record(stored: stored, wrappedKey: wrappedKey)
      sql += ExternalDatabase.row(
        file.identifier ?? file.storedName, domain: file.domain, path: file.path, flags: file.flags,
        record: try record.archived())
      if file.content != nil, file.isStored {
        let path = "\(file.storedName.prefix(2))/\(file.storedName)"
        storedFiles.append((path, file.damage?(stored) ?? stored))
      }
    }
    try addManifest(database: try ExternalDatabase.bytes(sql))
    storedFiles.append(("Status.plist", try BackupStatus(uuid: "x", date: nil).serialized()))
  }

  /// Adds `Manifest.plist` and `Manifest.db`, which is encrypted if the backup has a password.
  private func addManifest(database: [UInt8]) throws {
    let contents = sample.contents
    var manifest = BackupManifest(
      date: SampleBackup.date, isEncrypted: contents.isEncrypted, wasPasscodeSet: true, keybag: contents.keybag,
      manifestKey: nil, device: contents.device)
    var storedDatabase = database
    if contents.isEncrypted {
      let key = try Secret(count: 32, from: SeededRandomSource(seed: "list"))
      manifest.manifestKey = try sample.keys.wrapFileKey(key, keyClass: .fileUntilFirstUserAuthentication)
      storedDatabase = try FileCipher.encrypt(database, key: key)
    }
    storedFiles += [("Manifest.plist", try manifest.serialized()), ("Manifest.db", storedDatabase)]
  }

  /// Encrypts a file's content with a new key, which is wrapped with the key of a class.
  private static func encrypt(
    _ content: [UInt8], keyClass: UInt32, seed: String, _ sample: borrowing SampleBackup
  ) throws -> (stored: [UInt8], wrappedKey: [UInt8]?) {
    let key = try Secret(count: 32, from: SeededRandomSource(seed: seed))
    let stored = try FileCipher.encrypt(content, key: key)
    // The keybag has no key of class 12, so any bytes serve as the wrapped key.
    guard keyClass != 12 else { return (stored, [12, 0, 0, 0] + [UInt8](repeating: 7, count: 40)) }
    return (stored, try sample.keys.wrapFileKey(key, keyClass: KeyClass(rawValue: keyClass)))
  }

  func write(to directory: TemporaryDirectory, as name: String = "backup") throws {
    for file in storedFiles { try directory.write(file.bytes, to: "\(name)/\(file.path)") }
  }

  /// Returns the class keys, or `nil` if the backup has no password.
  func unlocked() throws -> ClassKeys? {
    guard sample.contents.isEncrypted else { return nil }
    return try sample.contents.keybag.keys(SampleBackup.password)
  }
}

extension FileTreeBackup.File {
  /// The file's name in the backup, a hash of the domain and path.
  fileprivate var storedName: String { SHA1.hash(FileTreeBackup.bytes("\(domain)-\(path)")).hex }

  /// The number for the file's type in the manifest.
  fileprivate var flags: Int {
    if target != nil { return 4 }
    return content == nil ? 2 : 1
  }

  /// The file's type in its mode, as `stat` returns it.
  private var modeType: UInt32 {
    if target != nil { return 0o120000 }
    return content == nil ? 0o040000 : 0o100000
  }

  fileprivate func record(stored: [UInt8], wrappedKey: [UInt8]?) throws -> FileRecord {
    FileRecord(
      relativePath: path, target: target, digest: content == nil ? nil : recordedDigest(stored: stored),
      encryptionKey: try wrappedKey.map(ClassWrappedKey.init(parsing:)), mode: modeType | mode,
      lastModified: modified, size: size ?? Int64(content?.count ?? 0), protectionClass: KeyClass(rawValue: keyClass))
  }

  private func recordedDigest(stored: [UInt8]) -> [UInt8]? {
    switch digest {
    case .stored: SHA1.hash(stored)
    case .plain: SHA1.hash(content ?? [])
    case .wrong: [UInt8](repeating: 1, count: 20)
    case .none: nil
    }
  }
}

/// Describes each file in a folder, except for `keyhaul-files.jsonl`, with its kind, mode, time, and content.
///
/// Examples: `directory 755`, `link notes.txt`, `file 640 1400000000 milk`.
func entries(in directory: TemporaryDirectory, _ name: String) throws -> [String: String] {
  var descriptions: [String: String] = [:]
  for path in try FileManager.default.subpathsOfDirectory(atPath: directory.path(name)) {
    guard !path.hasPrefix("keyhaul-files") else { continue }
    let fullPath = directory.path("\(name)/\(path)")
    let attributes = try FileManager.default.attributesOfItem(atPath: fullPath)
    let mode = String(attributes[.posixPermissions] as? Int ?? 0, radix: 8)
    let seconds = ((attributes[.modificationDate] as? Date)?.timeIntervalSince1970 ?? 0).rounded(.towardZero)
    // Some file systems have times that exceed an integer.
    let time = Int(exactly: seconds).map { "\($0)" } ?? "\(seconds)"
    switch attributes[.type] as? FileAttributeType {
    case .typeDirectory?: descriptions[path] = "directory \(mode)"
    case .typeSymbolicLink?:
      descriptions[path] = "link \(try FileManager.default.destinationOfSymbolicLink(atPath: fullPath))"
    default:
      let content = String(decoding: try directory.read("\(name)/\(path)"), as: UTF8.self)
      descriptions[path] = "file \(mode) \(time) \(content)"
    }
  }
  return descriptions
}
