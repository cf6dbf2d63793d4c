import Backups
import Basics
import KeychainCrypto
import KeychainFormats
import TestSupport

/// A backup of iOS 4 to 9, written by hand from the description of the format.
struct MBDBBackup {
  static let text = Array("a note in HomeDomain".utf8)
  static let notePath = "Library/notes.txt"
  var files: [(path: String, bytes: [UInt8])] = []
  private var records: [UInt8] = Array("mbdb".utf8) + [5, 0]

  /// Creates the backup.
  ///
  /// - Parameters:
  ///   - sample: The sample whose keybag encrypts the files, if it has a password.
  ///   - further: Additional paths of HomeDomain, which precede the last file.
  init(_ sample: borrowing SampleBackup, further: [String] = []) throws {
    let contents = sample.contents
    append(domain: KeychainPayload.domain, path: "", mode: 0o040700, keyClass: 0)
    try add(
      sample, domain: KeychainPayload.domain, path: KeychainPayload.relativePath, contents.keychainFile, keyClass: 3)
    append(domain: "HomeDomain", path: "Library", mode: 0o040755, keyClass: 4)
    try add(sample, domain: "HomeDomain", path: Self.notePath, Self.text, keyClass: 4)
    try add(sample, domain: "HomeDomain", path: "Library/empty", [], keyClass: 4)
    for path in further { try add(sample, domain: "HomeDomain", path: path, Array(path.utf8), keyClass: 4) }
    append(domain: "HomeDomain", path: "Library/link", target: "/etc/passwd", mode: 0o120777, keyClass: 0)
    var manifest = PropertyDictionary()
    manifest["Version"] = .string("9.1")
    manifest["IsEncrypted"] = .boolean(contents.isEncrypted)
    manifest["BackupKeyBag"] = .data(contents.keybag.serialized())
    manifest["Lockdown"] = .dictionary([
      "DeviceName": .string("old-phone"), "ProductVersion": .string("9.3.6"),
      "UniqueDeviceID": .string(String(repeating: "ab", count: 20)),
    ])
    files.append(("Manifest.plist", try BinaryPlist.encode(.dictionary(manifest))))
    files.append(
      (
        "Status.plist",
        try BinaryPlist.encode(.dictionary(["Version": .string("2.4"), "SnapshotState": .string("finished")]))
      ))
    files.append(("Manifest.mbdb", records))
  }

  static func identifier(_ domain: String, _ path: String) -> String {
    SHA1.hash(FileTreeBackup.bytes("\(domain)-\(path)")).hex
  }

  private mutating func add(
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
    append(
      domain: domain, path: path, digest: SHA1.hash(stored), key: wrappedKey, mode: 0o100644, size: plain.count,
      keyClass: keyClass, attributes: path == Self.notePath ? [("com.example.mark", [1, 2, 3])] : [])
  }

  private mutating func append(
    domain: String, path: String, target: String? = nil, digest: [UInt8]? = nil, key: [UInt8]? = nil, mode: Int,
    size: Int = 0, keyClass: UInt8, attributes: [(String, [UInt8])] = []
  ) {
    func integer(_ value: Int, _ count: Int) -> [UInt8] {
      (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
    func data(_ bytes: [UInt8]?) -> [UInt8] { bytes.map { integer($0.count, 2) + $0 } ?? [0xFF, 0xFF] }
    records +=
      data(FileTreeBackup.bytes(domain)) + data(FileTreeBackup.bytes(path)) + data(target.map(FileTreeBackup.bytes))
    records += data(digest) + data(key) + integer(mode, 2) + integer(77, 8) + integer(501, 4) + integer(501, 4)
    records += integer(1_400_000_000, 4) + integer(1_400_000_001, 4) + integer(1_400_000_002, 4) + integer(size, 8)
    records += [keyClass, UInt8(attributes.count)]
    for (name, value) in attributes { records += data(FileTreeBackup.bytes(name)) + data(value) }
  }

  /// Writes the files to a directory.
  func write(to directory: TemporaryDirectory, _ name: String) throws {
    for file in files { try directory.write(file.bytes, to: "\(name)/\(file.path)") }
  }
}
