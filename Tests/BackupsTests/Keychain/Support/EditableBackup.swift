import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

/// A backup directory with any files and items, whose stored bytes can be changed.
///
/// The manifest database is created with this project's builder, because only the verification is tested.
final class EditableBackup {
  static let password = "correct horse"
  static let date = KeychainDate(secondsSince1970: 1_795_197_850)

  /// A file of the backup, and its row in the manifest.
  struct File {
    var domain = "HomeDomain"
    var path: String
    var bytes: [UInt8]
    /// The kind of digest in the manifest.
    var digest: Digest = .ofStored
    /// The recorded size, if it is not the actual one.
    var size: Int64?
    /// Whether the directory contains the file, not only the manifest.
    var isStored = true
    /// The identifier, if it is not the hash of domain and path.
    var identifier: String?
    var keyClass = KeyClass.fileUntilFirstUserAuthentication

    enum Digest { case ofStored, ofPlaintext, wrong, none }

    init(_ path: String, _ bytes: [UInt8], domain: String = "HomeDomain") {
      self.path = path
      self.bytes = bytes
      self.domain = domain
    }
  }

  let directory: TemporaryDirectory
  let hasPassword: Bool
  let layout: BackupLayout
  let hardware: HardwareUID
  private(set) var keybag: Keybag
  /// The wrapped key of the manifest database, if it is encrypted.
  private var manifestKey: [UInt8]?
  /// The paths in the backup by the domain and path of each file, such as `HomeDomain/a.txt`.
  private var storedPaths: [String: String] = [:]

  var path: String { directory.path("backup") }

  /// Creates a backup.
  ///
  /// - Parameters:
  ///   - keychainDigest: The kind of digest of the keychain file in the manifest.
  ///   - keychainKeyClass: The class whose key encrypts the keychain file.
  ///   - editEntries: Changes the encrypted items.
  ///   - keybagUUID: The keybag's UUID in the keychain file, if it differs from the backup's.
  ///   - keychainInXML: Whether the keychain file is an XML property list.
  ///   - editKeychain: Changes the keychain file.
  init(
    hasPassword: Bool = true, layout: BackupLayout = .manifestDB, files: [File] = [], items: [KeychainItem] = [],
    hasKeychain: Bool = true, keychainDigest: File.Digest = .ofStored,
    keychainKeyClass: KeyClass = .fileUntilFirstUserAuthentication,
    editEntries: ([KeychainBackupFile.Entry]) throws -> [KeychainBackupFile.Entry] = { $0 },
    namingKeybag keybagUUID: String? = nil, keychainInXML: Bool = false,
    editKeychain: ([UInt8]) throws -> [UInt8] = { $0 }, seed: String = "shelf"
  ) throws {
    directory = try TemporaryDirectory()
    self.hasPassword = hasPassword
    self.layout = layout
    let random = SeededRandomSource(seed: seed)
    hardware = try HardwareUID(from: random)
    let password: Secret? = hasPassword ? Secret(utf8: Self.password) : nil
    let newKeybag = try BackupKeybag.make(
      password: password, deviceKey: try hardware.deviceKey(), rounds: 1, random: random)
    keybag = newKeybag.keybag
    let keys = newKeybag.classKeys

    var allFiles = files
    if hasKeychain {
      let entries = try editEntries(try items.map { try Self.entry(for: $0, keys: keys, random: random) })
      let file = KeychainBackupFile(keybagUUID: keybagUUID ?? keybag.uuidText, entries: entries)
      let binary = try editKeychain(try file.serialized())
      let bytes = keychainInXML ? try XMLPlist.encode(try BinaryPlist.decode(binary)) : binary
      var keychain = File(KeychainPayload.relativePath, bytes, domain: KeychainPayload.domain)
      keychain.digest = keychainDigest
      keychain.keyClass = keychainKeyClass
      allFiles.append(keychain)
    }
    let rows = try allFiles.map { try store($0, keys: keys, random: random) }
    try writeManifests(rows, keys: keys, random: random)
    try write(try BackupStatus(uuid: nil, date: Self.date).serialized(), to: "Status.plist")
  }

  /// Encrypts an item.
  private static func entry(
    for item: KeychainItem, keys: ClassKeys, random: SeededRandomSource
  ) throws -> KeychainBackupFile.Entry {
    KeychainBackupFile.Entry(
      kind: item.kind, blob: try keys.seal(item, as: .backup, random: random).serialized(),
      persistentReference: try PersistentReference.uuid(item.kind, random.bytes(16)).serialized())
  }

  /// A row of the manifest.
  private struct ListedRow {
    let identifier: String
    let domain: String
    let record: FileRecord
    let wrappedKey: [UInt8]?
  }

  /// Writes a file, and returns its row in the manifest.
  private func store(
    _ file: File, keys: ClassKeys, random: SeededRandomSource
  ) throws -> ListedRow {
    let identifier = try file.identifier ?? ListedFile.fileIdentifier(domain: file.domain, relativePath: file.path)
    var stored = file.bytes
    var wrappedKey: [UInt8]?
    if hasPassword {
      let key = try Secret(count: 32, from: random)
      wrappedKey = try keys.wrapFileKey(key, keyClass: file.keyClass, random: random)
      stored = try FileCipher.encrypt(file.bytes, key: key)
    }
    let digest: [UInt8]? =
      switch file.digest {
      case .ofStored: try Digest.sha1(stored)
      case .ofPlaintext: try Digest.sha1(file.bytes)
      case .wrong: try Digest.sha1([0])
      case .none: nil
      }
    let storedPath = layout.storedPath(of: identifier)
    storedPaths["\(file.domain)/\(file.path)"] = storedPath
    if file.isStored { try write(stored, to: storedPath) }
    let record = FileRecord(
      relativePath: file.path, digest: digest, encryptionKey: try wrappedKey.map { try ClassWrappedKey(parsing: $0) },
      mode: 0o100644, size: file.size ?? Int64(file.bytes.count), protectionClass: .fileUntilFirstUserAuthentication)
    return ListedRow(identifier: identifier, domain: file.domain, record: record, wrappedKey: wrappedKey)
  }

  private func writeManifests(
    _ rows: [ListedRow], keys: ClassKeys, random: SeededRandomSource
  ) throws {
    switch layout {
    case .manifestDB:
      var bytes = try ManifestDatabaseBuilder.build(
        rows.map { row in
          .init(
            fileIdentifier: row.identifier, domain: row.domain, relativePath: row.record.relativePath, flags: 1,
            record: try row.record.archived())
        })
      if hasPassword {
        let key = try Secret(count: 32, from: random)
        manifestKey = try keys.wrapFileKey(key, keyClass: .fileUntilFirstUserAuthentication, random: random)
        bytes = try FileCipher.encrypt(bytes, key: key)
      }
      try write(bytes, to: "Manifest.db")
    case .mbdb:
      var manifest = MBDBFixture()
      for row in rows {
        manifest.addRecord(
          domain: row.domain, path: row.record.relativePath, digest: row.record.digest, wrappedKey: row.wrappedKey,
          mode: Int(row.record.mode), size: Int(row.record.size),
          keyClass: UInt8(row.record.protectionClass.rawValue))
      }
      try write(manifest.bytes, to: "Manifest.mbdb")
    }
    try writeManifestPlist()
  }

  private func writeManifestPlist() throws {
    let manifest = BackupManifest(
      version: layout == .mbdb ? "9.1" : "10.0", date: Self.date, isEncrypted: hasPassword, wasPasscodeSet: true,
      keybag: keybag, manifestKey: manifestKey,
      device: BackupDevice(
        identifier: "4C1F0A2B-9D3E5F60718293A4", name: "old-phone", productType: "iPhone15,2",
        productVersion: layout == .mbdb ? "9.3.6" : "18.1", buildVersion: nil, serialNumber: nil))
    try write(try manifest.serialized(), to: "Manifest.plist")
  }

  // MARK: Changes

  func write(_ bytes: [UInt8], to name: String) throws { try directory.write(bytes, to: "backup/\(name)") }

  /// Returns the path of a file by its domain and path, such as `HomeDomain/a.txt`, or by its name in the backup, such
  /// as `Manifest.db`.
  private func relativePath(of name: String) -> String { "backup/" + (storedPaths[name] ?? name) }

  /// Returns the path in the backup of a file by its domain and path.
  func storedPath(_ name: String) throws -> String { try #require(storedPaths[name]) }

  func read(_ name: String) throws -> [UInt8] { try directory.read(relativePath(of: name)) }

  func change(_ name: String, _ edit: (inout [UInt8]) -> Void) throws {
    var bytes = try read(name)
    edit(&bytes)
    try directory.write(bytes, to: relativePath(of: name))
  }

  func remove(_ name: String) throws {
    try FileManager.default.removeItem(atPath: directory.path(relativePath(of: name)))
  }

  /// Changes the first byte of the first value with a tag in the keybag.
  func changeKeybag(_ tag: String) throws {
    var bytes = keybag.serialized()
    let record = try #require(bytes.firstRange(of: Array(tag.utf8)))
    // The value follows a tag and a length of four bytes each.
    bytes[record.lowerBound + 8] ^= 0xFF
    keybag = try Keybag(parsing: bytes)
    try writeManifestPlist()
  }

  /// Removes a class from the keybag.
  func removeFromKeybag(_ keyClass: KeyClass) throws {
    keybag.classKeys.removeAll { $0.keyClass == keyClass }
    try writeManifestPlist()
  }

  func open() throws -> BackupArchive { try BackupArchive.open(.path(path)) }
}
