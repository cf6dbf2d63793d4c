import Backups
import Basics
import KeychainCrypto
import KeychainFormats

/// Sample items that are encrypted with the keys of one keybag. The fuzzer tries these keys on its own bytes too.
enum EncryptedSamples {
  static let secrets: [[UInt8]] = [Array("first secret".utf8), Array("second, longer secret".utf8)]

  private final class SampleKeys: Sendable {
    let keys: ClassKeys
    let keybag: Keybag
    init() throws {
      let hardware = try HardwareUID(from: FixedRandomSource())
      let unlockedKeybag = try BackupKeybag.make(
        password: Secret(utf8: "fuzzed"), deviceKey: try hardware.deviceKey(), rounds: 1, random: FixedRandomSource())
      keybag = unlockedKeybag.keybag
      keys = unlockedKeybag.classKeys
    }
  }

  private static let sampleKeys: SampleKeys = {
    do {
      return try SampleKeys()
    } catch {
      fatalError("no keybag: \(error)")
    }
  }()

  static var keybag: Keybag { sampleKeys.keybag }

  /// Returns the blobs of the encrypted items.
  static func blobs() throws -> [[UInt8]] {
    try secrets.map { secret in
      try sampleKeys.keys.seal(item(secret), as: .backup, random: FixedRandomSource()).serialized()
    }
  }

  /// Returns an item with a secret.
  static func item(_ secret: [UInt8]) -> KeychainItem {
    var item = KeychainItem(kind: .genericPassword)
    item[.account] = .string("fuzzed")
    item[.accessGroup] = .string("ABCDE12345.org.example.fuzzed")
    item.protection = .whenUnlocked
    item.secret = SensitiveBytes(copying: secret)
    return item
  }

  static func opened(_ entries: [KeychainBackupFile.Entry]) throws -> [BackupItem] {
    try BackupItem.openAll(in: KeychainBackupFile(keybagUUID: nil, entries: entries), with: sampleKeys.keys)
  }

  /// Returns blobs with access control (version 6).
  static func accessControlledItemBlobs() throws -> [[UInt8]] {
    try secrets.map { secret in
      try sampleKeys.keys.sealAccessControlled(
        item(secret), constraints: ["od": .boolean(true)], random: FixedRandomSource()
      ).serialized()
    }
  }

  /// Returns an access control, blobs of every version as in the rows of a device's database, and an archived box.
  static func rows() throws -> [[UInt8]] {
    let key = SensitiveBytes(copying: Array(repeating: 9, count: 32))
    let keys = try DatabaseKeys(
      metadataKeys: [.whenUnlocked: key], classKeys: [.whenUnlocked: key])
    let access = ItemAccessControl(protection: .whenUnlocked)
    var rows: [[UInt8]] = [try access.serialized()]
    for version in DatabaseItemBlob.Version.allCases {
      rows.append(
        try keys.seal(
          item(secrets[0]), accessControl: access, version: version, wrapping: .classKey, random: FixedRandomSource()
        ).serialized())
    }
    rows.append(
      try ArchivedBox(
        nonce: Array(repeating: 1, count: 32), ciphertext: [1, 2, 3], tag: Array(repeating: 2, count: 16)
      ).archive())
    return rows
  }

  /// Returns the secret of a blob; `nil` if the blob cannot be decrypted.
  static func open(_ blob: [UInt8]) -> [UInt8]? {
    guard let item = try? sampleKeys.keys.open(blob: blob, kind: .genericPassword) else { return nil }
    return item.secret?.withBytes { Array($0) } ?? []
  }
}

extension FuzzedFormat {
  /// A manifest with one record.
  private static var manifestWithOneRecord: [UInt8] {
    // A string or data begins with its length in two bytes. The length FFFF means that it is missing.
    func field(_ text: String?) -> [UInt8] {
      guard let text else { return [255, 255] }
      return [UInt8(text.utf8.count >> 8), UInt8(text.utf8.count & 255)] + Array(text.utf8)
    }
    let domain = field("HomeDomain")
    let path = field("Library/plain.txt")
    let target = field(nil)
    let digest = field(String(repeating: "d", count: 20))
    let wrappedKey = field(nil)
    let mode: [UInt8] = [0x81, 0xA4]
    // The sizes of the other numbers, in bytes.
    let (inode, userAndGroup, timestamps, size) = (8, 4 + 4, 3 * 4, 8)
    let numbers = mode + [UInt8](repeating: 1, count: inode + userAndGroup + timestamps + size)
    let protectionClassAndAttributeCount: [UInt8] = [3, 1]
    let attribute = field("com.apple.x") + field("y")
    let record =
      [domain, path, target, digest, wrappedKey, numbers, protectionClassAndAttributeCount, attribute].flatMap(\.self)
    return Array("mbdb".utf8) + [5, 0] + record
  }

  func examples() throws -> [[UInt8]] {
    let plain: PropertyValue = .dictionary([
      "text": .string("käse"), "number": .integer(-7), "data": .data([0, 1, 2]), "truth": .boolean(true),
      "list": .array([.real(1.5), .date(KeychainDate(secondsSince1970: 1_795_197_850)), .string("")]),
    ])
    let record = FileRecord(
      relativePath: "Library/plain.txt", digest: Array(repeating: 7, count: 20), mode: 0o100644, inode: 2, userID: 501,
      groupID: 501, lastModified: 1, lastStatusChange: 2, birth: 3, size: 5, protectionClass: .fileComplete)
    switch self {
    case .keybag: return [EncryptedSamples.keybag.serialized()]
    case .itemBlob, .sealedItem: return try EncryptedSamples.blobs()
    case .accessControlledItemBlob: return try EncryptedSamples.accessControlledItemBlobs()
    case .databaseItem: return try EncryptedSamples.rows()
    case .persistentReference:
      return [try PersistentReference.uuid(.genericPassword, Array(repeating: 5, count: 16)).serialized()]
    case .der:
      return [
        try DERPropertyList.encode(.dictionary(["acct": .string("käse"), "cdat": .integer(300), "v": .data([1])]))
      ]
    case .binaryPlist: return [try BinaryPlist.encode(plain)]
    case .xmlPlist: return [try XMLPlist.encode(plain)]
    case .fileRecord: return [try record.archived()]
    case .oldManifest: return [Self.manifestWithOneRecord]
    case .keychainFile:
      let entries = try EncryptedSamples.blobs().map {
        KeychainBackupFile.Entry(kind: .genericPassword, blob: $0, persistentReference: nil)
      }
      return [try KeychainBackupFile(keybagUUID: EncryptedSamples.keybag.uuidText, entries: entries).serialized()]
    }
  }
}
