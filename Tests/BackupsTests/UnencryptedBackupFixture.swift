import Backups
import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport

/// A backup without a password, with files of several classes, and the device key.
final class UnencryptedBackupFixture {
  static let udid = "4C1F0A2B-9D3E5F60718293A4"

  /// The files, with contents that are shorter and longer than a cipher block of 16 bytes, or have its size.
  static let files: [(domain: String, path: String, keyClass: UInt32, content: [UInt8])] = [
    ("HomeDomain", "Library/empty", 3, []),
    ("HomeDomain", "Library/fifteen", 1, Array("plain text here".utf8)),
    ("HomeDomain", "Library/sixteen", 2, Array("plain text here!".utf8)),
    ("CameraRollDomain", "Media/large.jpg", 4, (0..<300_001).map { UInt8(truncatingIfNeeded: $0 / 7) }),
    // Without a class, as in manifests of some other tools.
    ("AppDomain-com.example", "Documents/notes", 0, Array("plain text here, and more".utf8)),
  ]

  let keybag: Keybag
  let deviceKey: DeviceKey
  let keychain: [UInt8]

  init() throws {
    let random = SeededRandomSource(seed: "desk")
    let key = try HardwareUID(from: random).deviceKey()
    let newKeybag = try BackupKeybag.make(password: nil, deviceKey: key, random: random).keybag
    deviceKey = key
    keybag = newKeybag
    let file = KeychainBackupFile(
      keybagUUID: newKeybag.uuidText,
      entries: [.init(kind: .genericPassword, blob: try random.bytes(200), persistentReference: nil)])
    keychain = try file.serialized()
  }

  /// Returns all stored files, including the keychain file.
  func contents() throws -> [(identifier: String, domain: String, path: String, bytes: [UInt8])] {
    let keychainFile = (KeychainPayload.domain, KeychainPayload.relativePath, keychain)
    let files = Self.files.map { ($0.domain, $0.path, $0.content) } + [keychainFile]
    return try files.map { domain, path, bytes in
      (try ListedFile.fileIdentifier(domain: domain, relativePath: path), domain, path, bytes)
    }
  }

  /// Returns the record of a file, with extended attributes that are not a property list.
  private static func record(_ path: String, _ keyClass: UInt32, _ bytes: [UInt8]) throws -> [UInt8] {
    try FileRecord(
      relativePath: path, digest: SHA1.hash(bytes), mode: 0o100644, inode: 7, size: Int64(bytes.count),
      protectionClass: KeyClass(rawValue: keyClass), extendedAttributes: [1, 2, 3]
    ).archived()
  }

  /// Returns the stored files with their paths. They are created only once, because they are always equal.
  func stored() throws -> [(path: String, bytes: [UInt8])] { try Self.allStored.get() }

  private static let allStored = Result { try UnencryptedBackupFixture().newFiles() }

  private func newFiles() throws -> [(path: String, bytes: [UInt8])] {
    var sql = ExternalDatabase.schema
    let directory = try ListedFile.fileIdentifier(domain: "HomeDomain", relativePath: "Library")
    sql += ExternalDatabase.row(
      directory, domain: "HomeDomain", path: "Library", flags: 2,
      record: try FileRecord(relativePath: "Library", mode: 0o040755, protectionClass: KeyClass(rawValue: 0)).archived()
    )
    var files: [(path: String, bytes: [UInt8])] = []
    let keychainFileClass: UInt32 = 3
    for (file, keyClass) in zip(try contents(), Self.files.map(\.keyClass) + [keychainFileClass]) {
      sql += ExternalDatabase.row(
        file.identifier, domain: file.domain, path: file.path, record: try Self.record(file.path, keyClass, file.bytes))
      files.append(("\(file.identifier.prefix(2))/\(file.identifier)", file.bytes))
    }
    let manifest = BackupManifest(
      date: KeychainDate(secondsSince1970: 1_795_197_850), isEncrypted: false, wasPasscodeSet: true, keybag: keybag,
      manifestKey: nil, device: BackupDevice(identifier: Self.udid, name: "old-phone", productVersion: "18.1"),
      others: ["SystemDomainsVersion": .string("24.0"), "Kept": .array([.integer(1), .data([2])])])
    let status = BackupStatus(uuid: "x", date: nil)
    return [
      ("Manifest.plist", try manifest.serialized()), ("Status.plist", try status.serialized()),
      ("Info.plist", Array("<plist><dict/></plist>".utf8)), ("Manifest.db", try ExternalDatabase.bytes(sql)),
    ] + files
  }

  func write(to directory: TemporaryDirectory, as name: String = "backup") throws {
    for file in try stored() { try directory.write(file.bytes, to: "\(name)/\(file.path)") }
  }

  func keybagWithoutPassword(_ keybag: Keybag, _ password: String) throws -> Keybag {
    try BackupKeybag.removingPassword(
      keybag, passcodeKey: keybag.passcodeKey(password: Secret(utf8: password)), deviceKey: deviceKey)
  }

  func keybagWithPassword(_ password: String) throws -> Keybag {
    try BackupKeybag.addingPassword(
      keybag, passcodeKey: keybag.passcodeKey(password: .empty), with: Secret(utf8: password), deviceKey: deviceKey,
      rounds: 10, random: SeededRandomSource(seed: "new"))
  }
}

extension Keybag {
  func keys(_ password: String) throws -> ClassKeys { try unlock(password: Secret(utf8: password), deviceKey: nil) }
}

extension BackupArchive {
  /// Returns the plaintext of each file by domain and path, with the result of reading it.
  func plainFiles(_ keys: ClassKeys) throws -> [String: (
    bytes: [UInt8], reading: PayloadScan, record: FileRecord
  )] {
    var listed: [ListedFile] = []
    try fileList(with: keys).forEachFile { if $0.kind == .file { listed.append($0) } }
    var files: [String: (bytes: [UInt8], reading: PayloadScan, record: FileRecord)] = [:]
    for file in listed {
      var bytes: [UInt8] = []
      let reading = try readPayload(of: file, with: keys) { bytes.append(contentsOf: $0) }
      guard let record = try file.record() else { continue }
      files["\(file.domain ?? "")-\(file.relativePath ?? "")"] = (bytes, reading, record)
    }
    return files
  }
}

/// Returns the content of each file in a directory, by path.
func bytes(in directory: TemporaryDirectory, _ name: String) throws -> [String: [UInt8]] {
  var files: [String: [UInt8]] = [:]
  for path in try FileManager.default.subpathsOfDirectory(atPath: directory.path(name)) {
    var isDirectory: ObjCBool = false
    _ = FileManager.default.fileExists(atPath: directory.path("\(name)/\(path)"), isDirectory: &isDirectory)
    if !isDirectory.boolValue { files[path] = try directory.read("\(name)/\(path)") }
  }
  return files
}

/// A file system without syncs, which the tests do not need.
let unsynced = FileSystem { $0 == .sync || $0 == .syncFileSystem ? .omitted : nil }
