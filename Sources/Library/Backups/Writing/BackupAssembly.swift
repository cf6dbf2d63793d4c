import Basics
import KeychainCrypto
import KeychainFormats

/// Turns contents into the files of a backup, encrypted where it has a password. A large one is kept in a temporary file.
struct BackupAssembly {
  let contents: BackupContents
  let system: FileSystem

  /// The class that protects the keychain file and the manifest database: readable after the first unlock.
  private static let keyClass = KeyClass.fileUntilFirstUserAuthentication
  private static let systemDomainsVersion = "24.0"

  /// Draws from `random` always in the same order, so that the same source gives the same bytes.
  func assemble(
    keys: borrowing ClassKeys, random: some RandomSource
  ) throws(BackupArchiveError) -> StoredBackup {
    let directoryName = try directoryName()
    guard let time = Int64(exactly: contents.date.secondsSince1970.rounded(.down)), time >= 0 else {
      throw BackupArchiveError(.unwritable, "the date cannot be stored as a file date")
    }
    let keychain = try protect(
      leastByteCount: contents.keychain.leastByteCount, keys: keys, random: random, contents.keychain.forEachPortion)
    let list = try manifestDatabase(for: keychain, time: time)
    let database = try protect(leastByteCount: list.count, keys: keys, random: random) {
      (body) throws(BackupArchiveError) in try list.withRawBytes(body)
    }
    let identifiers = try explained("the identifiers") { () throws(DataProtectionError) in try random.bytes(32) }
    let manifest = BackupManifest(
      date: contents.date, isEncrypted: contents.isEncrypted, wasPasscodeSet: contents.wasPasscodeSet,
      keybag: contents.keybag, manifestKey: database.key?.serialized(), device: contents.device,
      others: [
        "Applications": .dictionary(PropertyDictionary()), "SystemDomainsVersion": .string(Self.systemDomainsVersion),
      ])
    let status = BackupStatus(uuid: UUIDText.uppercase(Array(identifiers.prefix(16))), date: contents.date)
    let info = ComputerInfo(contents, guid: Array(identifiers.suffix(16)))
    let files = [
      try StoredFile(path: StoredPart.manifest.path, bytes: manifest.serialized()),
      try StoredFile(path: StoredPart.status.path, bytes: status.serialized()),
      try StoredFile(path: StoredPart.info.path, bytes: info.serialized()),
      StoredFile(path: StoredPart.database.path, stored: database.stored),
      StoredFile(path: StoredPart.keychain.path, stored: keychain.stored),
    ]
    let seal = try seal(of: files, database.key, keys: keys)
    return StoredBackup(
      directoryName: directoryName, modificationTime: time, isEncrypted: contents.isEncrypted,
      files: files + [try StoredFile(path: StoredPart.seal.path, bytes: seal.bytes)])
  }

  private func seal(
    of files: [StoredFile], _ manifestKey: ClassWrappedKey?, keys: borrowing ClassKeys
  ) throws(BackupArchiveError) -> SealList {
    let entries = files.map {
      SealList.Entry(path: $0.path, byteCount: Int64($0.stored.byteCount), sha256: $0.stored.sha256)
    }
    guard let field = manifestKey?.serialized() else { return try SealMaker(manifestKey: nil).seal(of: entries) }
    let key = try explained("the seal") { () throws(DataProtectionError) in try keys.unwrapFileKey(field) }
    return try SealMaker(manifestKey: key.copy()).seal(of: entries)
  }

  /// A file as it is stored, and the wrapped key where it is encrypted.
  private struct Protected {
    let stored: StoredBytes
    let plainByteCount: Int
    let key: ClassWrappedKey?
  }

  /// - Parameters:
  ///   - expected: How many bytes there are at least.
  ///   - forEachPortion: Lends the bytes in their order.
  private func protect(
    leastByteCount expected: Int, keys: borrowing ClassKeys, random: some RandomSource,
    _ forEachPortion: ((UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> Protected {
    var collector = try StoredBytesCollector(.temporaryFile, system: system, expecting: Int64(expected))
    var plainByteCount = 0
    guard contents.isEncrypted else {
      try forEachPortion { (portion) throws(BackupArchiveError) in
        plainByteCount += portion.count
        try collector.append(portion)
      }
      return Protected(stored: try collector.finish(), plainByteCount: plainByteCount, key: nil)
    }
    let key = try explained("the key of a file") { () throws(DataProtectionError) in
      try Secret(count: 32, from: random)
    }
    let field = try explained("the key of a file") { () throws(DataProtectionError) in
      try keys.wrapFileKey(key, keyClass: Self.keyClass, random: random)
    }
    let encryptor = try explained("a file") { () throws(DataProtectionError) in try FileEncryptor(key: key) }
    try forEachPortion { (portion) throws(BackupArchiveError) in
      plainByteCount += portion.count
      let bytes = try explained("a file") { () throws(DataProtectionError) in try encryptor.update(portion) }
      try bytes.withRawBytes { (bytes) throws(BackupArchiveError) in try collector.append(bytes) }
    }
    let end = try explained("a file") { () throws(DataProtectionError) in try encryptor.finish() }
    try end.withRawBytes { (bytes) throws(BackupArchiveError) in try collector.append(bytes) }
    return Protected(
      stored: try collector.finish(), plainByteCount: plainByteCount,
      key: try explained("the key of a file") { () throws(FormatError) in try ClassWrappedKey(parsing: field) })
  }

  private func directoryName() throws(BackupArchiveError) -> String {
    guard let name = contents.device.identifier, (1...64).contains(name.utf8.count),
      name.utf8.allSatisfy({ (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || $0 == 45 })
    else {
      throw BackupArchiveError(.unwritable, "the device's identifier is not letters, digits and hyphens")
    }
    return name
  }

  /// Lists the keychain's directory and file, owned by root as on a device.
  private func manifestDatabase(for keychain: Protected, time: Int64) throws(BackupArchiveError) -> [UInt8] {
    let identifier = try explained("the manifest database") { () throws(DataProtectionError) in
      try ListedFile.fileIdentifier(domain: KeychainPayload.domain, relativePath: "")
    }
    let directory = FileRecord(
      relativePath: "", mode: 0o040700, inode: 1, userID: 0, groupID: 0, lastModified: time, lastStatusChange: time,
      birth: time, protectionClass: KeyClass(rawValue: 0))
    let file = FileRecord(
      relativePath: KeychainPayload.relativePath, digest: try keychain.stored.sha1(), encryptionKey: keychain.key,
      mode: 0o100600, inode: 2, userID: 0, groupID: 0, lastModified: time, lastStatusChange: time, birth: time,
      size: Int64(keychain.plainByteCount), protectionClass: Self.keyClass)
    return try ManifestDatabaseBuilder.build([
      .init(
        fileIdentifier: identifier, domain: KeychainPayload.domain, relativePath: "", flags: 2,
        record: try archived(directory)),
      .init(
        fileIdentifier: KeychainPayload.fileIdentifier, domain: KeychainPayload.domain,
        relativePath: KeychainPayload.relativePath, flags: 1, record: try archived(file)),
    ])
  }

  private func archived(_ record: FileRecord) throws(BackupArchiveError) -> [UInt8] {
    try explained("a file's record") { () throws(FormatError) in try record.archived() }
  }
}
