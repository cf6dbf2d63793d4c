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
    var content: [UInt8]?
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
  private let parts: [(path: String, bytes: [UInt8])]

  init(_ files: [File], isEncrypted: Bool = true) throws {
    let sample = try SampleBackup(hasPassword: isEncrypted)
    var sql = ExternalDatabase.schema
    var parts: [(path: String, bytes: [UInt8])] = []
    for (number, file) in files.enumerated() {
      var stored = file.content ?? []
      var wrappedKey: [UInt8]?
      if isEncrypted, file.content != nil {
        (stored, wrappedKey) = try Self.encrypt(stored, keyClass: file.keyClass, seed: "\(number)", sample)
      }
      let record = try file.record(stored: stored, wrappedKey: wrappedKey)
      sql += ExternalDatabase.row(
        file.identifier ?? file.hash, file.domain, file.path, file.flags, try record.archived())
      if file.content != nil, file.isStored {
        parts.append(("\(file.hash.prefix(2))/\(file.hash)", file.damage?(stored) ?? stored))
      }
    }
    let database = try ExternalDatabase.bytes(sql)
    let contents = sample.contents
    var manifest = BackupManifest(
      date: SampleBackup.date, isEncrypted: isEncrypted, wasPasscodeSet: true, keybag: contents.keybag,
      manifestKey: nil, device: contents.device)
    var storedDatabase = database
    if isEncrypted {
      let key = try Secret(count: 32, from: SeededRandomSource(seed: "list"))
      manifest.manifestKey = try sample.keys.wrapFileKey(key, keyClass: .fileUntilFirstUserAuthentication)
      storedDatabase = try FileCipher.encrypt(database, key: key)
    }
    parts += [
      ("Manifest.plist", try manifest.serialized()), ("Manifest.db", storedDatabase),
      ("Status.plist", try BackupStatus(uuid: "x", date: nil).serialized()),
    ]
    self.parts = parts
    self.sample = sample
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
    for part in parts { try directory.write(part.bytes, to: "\(name)/\(part.path)") }
  }

  /// Returns the class keys, or `nil` if the backup has no password.
  func unlocked() throws -> ClassKeys? {
    guard sample.contents.isEncrypted else { return nil }
    return try sample.contents.keybag.keys(SampleBackup.password)
  }
}

extension FileTreeBackup.File {
  /// The identifier that belongs to the domain and path.
  fileprivate var hash: String { SHA1.hash(FileTreeBackup.bytes("\(domain)-\(path)")).hex }
  /// The number for the file's type in the manifest: 1 for a file, 2 for a directory, 4 for a link.
  fileprivate var flags: Int { target != nil ? 4 : content == nil ? 2 : 1 }

  fileprivate func record(stored: [UInt8], wrappedKey: [UInt8]?) throws -> FileRecord {
    let type: UInt32 = target != nil ? 0o120000 : content == nil ? 0o040000 : 0o100000
    return FileRecord(
      relativePath: path, target: target, digest: content == nil ? nil : recordedDigest(stored: stored),
      encryptionKey: try wrappedKey.map(ClassWrappedKey.init(parsing:)), mode: type | mode,
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

/// Returns the files in a folder with their kinds, modes, times, and contents, without Keyhaul's list of them.
func entries(in directory: TemporaryDirectory, _ name: String) throws -> [String: String] {
  let files = FileManager.default
  return try files.subpathsOfDirectory(atPath: directory.path(name)).reduce(into: [:]) { tree, path in
    guard !path.hasPrefix("keyhaul-files") else { return }
    let fullPath = directory.path("\(name)/\(path)")
    let attributes = try files.attributesOfItem(atPath: fullPath)
    let mode = String(attributes[.posixPermissions] as? Int ?? 0, radix: 8)
    let seconds = ((attributes[.modificationDate] as? Date)?.timeIntervalSince1970 ?? 0).rounded(.towardZero)
    // Some file systems support any time.
    let time = Int(exactly: seconds).map { "\($0)" } ?? "\(seconds)"
    switch attributes[.type] as? FileAttributeType {
    case .typeDirectory?: tree[path] = "directory \(mode)"
    case .typeSymbolicLink?: tree[path] = "link \(try files.destinationOfSymbolicLink(atPath: fullPath))"
    default:
      tree[path] = "file \(mode) \(time) \(String(decoding: try directory.read("\(name)/\(path)"), as: UTF8.self))"
    }
  }
}
