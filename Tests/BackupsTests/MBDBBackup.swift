import Backups
import Basics
import KeychainCrypto
import KeychainFormats
import TestSupport

/// A backup of iOS 4 to 9, written without Keyhaul's own code for `Manifest.mbdb`.
struct MBDBBackup {
  static let noteContent = Array("a note in HomeDomain".utf8)
  static let notePath = "Library/notes.txt"
  var files: [(path: String, bytes: [UInt8])] = []
  private var manifest = MBDBFixture()

  /// Creates the backup.
  ///
  /// - Parameters:
  ///   - sample: The sample whose keybag encrypts the files, if it has a password.
  ///   - additionalPaths: Paths of HomeDomain, which precede the last file.
  init(_ sample: borrowing SampleBackup, additionalPaths: [String] = []) throws {
    let contents = sample.contents
    manifest.addRecord(domain: KeychainPayload.domain, path: "", mode: 0o040700, keyClass: 0)
    try addFile(
      sample, domain: KeychainPayload.domain, path: KeychainPayload.relativePath, contents.keychainFile, keyClass: 3)
    manifest.addRecord(domain: "HomeDomain", path: "Library", mode: 0o040755, keyClass: 4)
    try addFile(sample, domain: "HomeDomain", path: Self.notePath, Self.noteContent, keyClass: 4)
    try addFile(sample, domain: "HomeDomain", path: "Library/empty", [], keyClass: 4)
    for path in additionalPaths { try addFile(sample, domain: "HomeDomain", path: path, Array(path.utf8), keyClass: 4) }
    manifest.addRecord(domain: "HomeDomain", path: "Library/link", target: "/etc/passwd", mode: 0o120777, keyClass: 0)
    try addPropertyLists(contents)
    files.append(("Manifest.mbdb", manifest.bytes))
  }

  private mutating func addPropertyLists(_ contents: BackupContents) throws {
    var root = PropertyDictionary()
    root["Version"] = .string("9.1")
    root["IsEncrypted"] = .boolean(contents.isEncrypted)
    root["BackupKeyBag"] = .data(contents.keybag.serialized())
    root["Lockdown"] = .dictionary([
      "DeviceName": .string("old-phone"), "ProductVersion": .string("9.3.6"),
      "UniqueDeviceID": .string(String(repeating: "ab", count: 20)),
    ])
    files.append(("Manifest.plist", try BinaryPlist.encode(.dictionary(root))))
    let status: PropertyDictionary = ["Version": .string("2.4"), "SnapshotState": .string("finished")]
    files.append(("Status.plist", try BinaryPlist.encode(.dictionary(status))))
  }

  static func identifier(_ domain: String, _ path: String) -> String {
    SHA1.hash(FileTreeBackup.bytes("\(domain)-\(path)")).hex
  }

  /// Adds a file and its record.
  private mutating func addFile(
    _ sample: borrowing SampleBackup, domain: String, path: String, _ plain: [UInt8], keyClass: UInt8
  ) throws {
    var stored = plain
    var wrappedKey: [UInt8]?
    if sample.contents.isEncrypted {
      let key = try Secret(count: 32, from: SeededRandomSource(seed: path))
      wrappedKey = try sample.keys.wrapFileKey(key, keyClass: KeyClass(rawValue: UInt32(keyClass)))
      stored = try FileCipher.encrypt(plain, key: key)
    }
    files.append((Self.identifier(domain, path), stored))
    manifest.addRecord(
      domain: domain, path: path, digest: SHA1.hash(stored), wrappedKey: wrappedKey, mode: 0o100644, size: plain.count,
      keyClass: keyClass, attributes: path == Self.notePath ? [("com.example.mark", [1, 2, 3])] : [])
  }

  /// Writes the files to a directory.
  func write(to directory: TemporaryDirectory, _ name: String) throws {
    for file in files { try directory.write(file.bytes, to: "\(name)/\(file.path)") }
  }
}

/// A writer of `Manifest.mbdb`, the manifest of iOS 4 to 9, without Keyhaul's own code. Source: published readers
/// (mbdb.py).
struct MBDBFixture {
  /// A magic number, the version 5.0, and records.
  private(set) var bytes = Array("mbdb".utf8) + [5, 0]

  mutating func addRecord(
    domain: String, path: String, target: String? = nil, digest: [UInt8]? = nil, wrappedKey: [UInt8]? = nil, mode: Int,
    size: Int = 0, keyClass: UInt8, attributes: [(String, [UInt8])] = []
  ) {
    func append(_ value: Int, byteCount: Int) { bytes += [UInt8](bigEndian: value, count: byteCount) }
    func append(_ value: [UInt8]?) {
      let absentLength = 0xFFFF
      append(value?.count ?? absentLength, byteCount: 2)
      bytes += value ?? []
    }
    append(FileTreeBackup.bytes(domain))
    append(FileTreeBackup.bytes(path))
    append(target.map(FileTreeBackup.bytes))
    append(digest)
    append(wrappedKey)
    append(mode, byteCount: 2)
    let (inode, owner, group) = (77, 501, 501)
    append(inode, byteCount: 8)
    append(owner, byteCount: 4)
    append(group, byteCount: 4)
    let (lastModified, lastStatusChange, birth) = (1_400_000_000, 1_400_000_001, 1_400_000_002)
    for time in [lastModified, lastStatusChange, birth] { append(time, byteCount: 4) }
    append(size, byteCount: 8)
    append(Int(keyClass), byteCount: 1)
    append(attributes.count, byteCount: 1)
    for (name, value) in attributes {
      append(FileTreeBackup.bytes(name))
      append(value)
    }
  }
}
