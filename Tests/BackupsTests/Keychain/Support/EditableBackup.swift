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

  struct File {
    var domain = "HomeDomain"
    var path: String
    var bytes: [UInt8]
    /// The kind of digest in the manifest.
    var digest: Digest = .ofStored
    var size: Int64?
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
  private var storedPaths: [String: String] = [:]

  var path: String { directory.path("backup") }

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
      let entries = try items.map { item in
        KeychainBackupFile.Entry(
          kind: item.kind, blob: try keys.seal(item, as: .backup, random: random).serialized(),
          persistentReference: try PersistentReference.uuid(item.kind, random.bytes(16)).serialized())
      }
      let file = KeychainBackupFile(
        keybagUUID: keybagUUID ?? keybag.uuidText, entries: try editEntries(entries))
      let binary = try editKeychain(try file.serialized())
      let bytes = keychainInXML ? try XMLPlist.encode(try BinaryPlist.decode(binary)) : binary
      var keychain = File(KeychainPayload.relativePath, bytes, domain: KeychainPayload.domain)
      keychain.digest = keychainDigest
      keychain.keyClass = keychainKeyClass
      allFiles.append(keychain)
    }
    var rows: [(File, ListedRow)] = []
    for file in allFiles { rows.append((file, try store(file, keys: keys, random: random))) }
    try writeFileList(rows, keys: keys, random: random)
    try write(
      try BackupStatus(uuid: nil, date: Self.date).serialized(), to: "Status.plist")
  }

  private struct ListedRow {
    let identifier: String
    let record: FileRecord
    let key: [UInt8]?
    let digest: [UInt8]?
  }

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
    let location = layout.storedPath(of: identifier)
    storedPaths["\(file.domain)/\(file.path)"] = location
    if file.isStored { try write(stored, to: location) }
    let record = FileRecord(
      relativePath: file.path, digest: digest, encryptionKey: try wrappedKey.map { try ClassWrappedKey(parsing: $0) },
      mode: 0o100644, size: file.size ?? Int64(file.bytes.count), protectionClass: .fileUntilFirstUserAuthentication)
    return ListedRow(identifier: identifier, record: record, key: wrappedKey, digest: digest)
  }

  private func writeFileList(
    _ rows: [(File, ListedRow)], keys: ClassKeys, random: SeededRandomSource
  ) throws {
    var manifestKey: [UInt8]?
    switch layout {
    case .manifestDB:
      var bytes = try ManifestDatabaseBuilder.build(
        rows.map { file, row in
          .init(
            fileIdentifier: row.identifier, domain: file.domain, relativePath: file.path, flags: 1,
            record: try row.record.archived())
        })
      if hasPassword {
        let key = try Secret(count: 32, from: random)
        manifestKey = try keys.wrapFileKey(key, keyClass: .fileUntilFirstUserAuthentication, random: random)
        bytes = try FileCipher.encrypt(bytes, key: key)
      }
      try write(bytes, to: "Manifest.db")
    case .mbdb:
      try write(MBDBFixture.bytes(rows.map { ($0.domain, $1.record, $1.key, $1.digest) }), to: "Manifest.mbdb")
    }
    try writeManifest(keybag, manifestKey: manifestKey)
    self.manifestKey = manifestKey
  }

  private var manifestKey: [UInt8]?

  private func writeManifest(_ keybag: Keybag, manifestKey: [UInt8]?) throws {
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

  /// Returns the stored path of a file by its domain and path, such as `HomeDomain/a.txt`. A name without a slash is
  /// that of a metadata file.
  private func relativePath(of name: String) -> String { "backup/" + (storedPaths[name] ?? name) }

  /// Returns the stored path of a file in the backup's directory.
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

  /// Changes a byte of the first record with a tag in the keybag.
  func changeKeybag(_ tag: String) throws {
    var bytes = keybag.serialized()
    let head = Array(tag.utf8)
    guard let start = bytes.indices.first(where: { bytes[$0...].starts(with: head) }) else { return }
    bytes[start + 8] ^= 0xFF
    keybag = try Keybag(parsing: bytes)
    try writeManifest(keybag, manifestKey: manifestKey)
  }

  func open() throws -> BackupArchive { try BackupArchive.open(.path(path)) }
}

/// A `Manifest.mbdb` of iOS 4 to 9, written by hand. Source: published readers (mbdb.py).
enum MBDBFixture {
  static func bytes(_ rows: [(domain: String, record: FileRecord, key: [UInt8]?, digest: [UInt8]?)]) -> [UInt8] {
    var bytes = Array("mbdb".utf8) + [5, 0]
    func add(_ value: [UInt8]?) {
      guard let value else {
        bytes += [0xFF, 0xFF]
        return
      }
      bytes += [UInt8(value.count >> 8), UInt8(value.count & 0xFF)] + value
    }
    func addInteger(_ value: UInt64, _ byteCount: Int) {
      for index in (0..<byteCount).reversed() { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * UInt64(index)))) }
    }
    for row in rows {
      add(Array(row.domain.utf8))
      add(Array(row.record.relativePath.utf8))
      add(nil)
      add(row.digest)
      add(row.key)
      addInteger(UInt64(row.record.mode), 2)
      addInteger(7, 8)
      addInteger(501, 4)
      addInteger(501, 4)
      for _ in 0..<3 { addInteger(1_450_000_000, 4) }
      addInteger(UInt64(row.record.size), 8)
      bytes += [UInt8(row.record.protectionClass.rawValue), 0]
    }
    return bytes
  }
}
