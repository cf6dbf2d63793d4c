package import Basics
package import KeychainCrypto
import KeychainFormats

/// Writes a backup as a device would, completely or not at all.
///
/// Equal contents, keys, random sources, and formats result in equal bytes.
package struct BackupWriter: Sendable {
  private let installer: BackupInstaller

  /// Creates a writer to the real file system.
  package init() { self.init(system: .real) }

  package init(system: FileSystem) { installer = BackupInstaller(system: system) }

  /// Writes a backup, completely or not at all.
  ///
  /// - Parameters:
  ///   - contents: The content of the backup.
  ///   - keys: The class keys of the content's keybag. Not used if the backup has no password.
  ///   - random: The source of file keys.
  ///   - destination: The location and format.
  ///   - replace: Whether to replace an existing backup or file.
  /// - Throws: `.occupied` if the destination must not be replaced; `.noSpace` or `.unwritable`; `.noTemporarySpace` if
  ///   there is no space for a large keychain. After an error, the previous content of the destination is unchanged,
  ///   and no other files remain.
  package func write(
    _ contents: BackupContents, keys: ClassKeys, random: some RandomSource = SystemRandomSource(),
    to destination: BackupDestination, replace: Bool = false
  ) throws(KeyhaulError) -> WrittenBackup {
    let backup = try BackupAssembly(contents: contents, system: installer.system).assemble(keys: keys, random: random)
    let installed = try installer.place(backup.outgoing, at: destination, replace: replace)
    return WrittenBackup(
      path: installed.path, byteCount: installed.byteCount, isDurable: installed.isDurable,
      leftover: installed.leftover)
  }
}

/// The result of writing a backup.
package struct WrittenBackup: Sendable, Equatable {
  /// The path of the backup, which may be a directory in the given one, or `nil` if it is a stream.
  package let path: String?
  /// The size of the file or stream, or the total size of the files in the directory.
  package let byteCount: Int64
  /// Whether the directory entry was synced, so that the backup survives a power failure. `false` for a stream.
  package let isDurable: Bool
  /// The path of a replaced backup that could not be removed.
  package let leftover: String?
}

/// Assembles the files of a backup from its content, encrypted if it has a password. A large keychain is kept in a
/// temporary file.
struct BackupAssembly {
  let contents: BackupContents
  let system: FileSystem

  /// The class of the keychain file and the manifest database: readable after the first unlock.
  private static let keyClass = KeyClass.fileUntilFirstUserAuthentication
  private static let systemDomainsVersion = "24.0"

  /// Assembles the backup. Draws random bytes in a fixed order, so that equal sources result in equal bytes.
  func assemble(
    keys: ClassKeys, random: some RandomSource
  ) throws(KeyhaulError) -> StoredBackup {
    let directoryName = try directoryName()
    guard let time = Int64(exactly: contents.date.secondsSince1970.rounded(.down)), time >= 0 else {
      throw KeyhaulError(.unwritable, "the date cannot be stored as a file date")
    }
    let keychain = try store(
      minimumByteCount: contents.keychain.minimumByteCount, keys: keys, random: random, contents.keychain.forEachChunk
    )
    let list = try manifestDatabase(for: keychain, time: time)
    let database = try store(minimumByteCount: list.count, keys: keys, random: random) {
      (body) throws(KeyhaulError) in try list.withRawBytes(body)
    }
    let identifiers = try translatingErrors(in: "the identifiers") { () throws(DataProtectionError) in
      try random.bytes(32)
    }
    let status = BackupStatus(uuid: UUIDText.uppercase(Array(identifiers.prefix(16))), date: contents.date)
    let info = InfoPlistWriter(contents, guid: Array(identifiers.suffix(16)))
    let files = [
      try StoredFile(path: MetadataFile.manifest.path, bytes: manifest(with: database.key).serialized()),
      try StoredFile(path: MetadataFile.status.path, bytes: status.serialized()),
      try StoredFile(path: MetadataFile.info.path, bytes: info.serialized()),
      StoredFile(path: MetadataFile.database.path, content: database.stored),
      StoredFile(path: MetadataFile.keychain.path, content: keychain.stored),
    ]
    let seal = try seal(of: files, database.key, keys: keys)
    return StoredBackup(
      directoryName: directoryName, modificationTime: time, isEncrypted: contents.isEncrypted,
      files: files + [try StoredFile(path: MetadataFile.seal.path, bytes: seal.bytes)])
  }

  private func manifest(with manifestKey: ClassWrappedKey?) -> BackupManifest {
    BackupManifest(
      date: contents.date, isEncrypted: contents.isEncrypted, wasPasscodeSet: contents.wasPasscodeSet,
      keybag: contents.keybag, manifestKey: manifestKey?.serialized(), device: contents.device,
      others: [
        "Applications": .dictionary(PropertyDictionary()), "SystemDomainsVersion": .string(Self.systemDomainsVersion),
      ])
  }

  private func seal(
    of files: [StoredFile], _ manifestKey: ClassWrappedKey?, keys: ClassKeys
  ) throws(KeyhaulError) -> SealFile {
    let entries = files.map {
      SealFile.Entry(path: $0.path, byteCount: Int64($0.content.byteCount), sha256: $0.content.sha256)
    }
    guard let field = manifestKey?.serialized() else { return try SealBuilder(manifestKey: nil).seal(of: entries) }
    let key = try translatingErrors(in: "the seal") { () throws(DataProtectionError) in try keys.unwrapFileKey(field) }
    return try SealBuilder(manifestKey: key.copy()).seal(of: entries)
  }

  /// A stored file, and its wrapped key if it is encrypted.
  private struct StoredContent {
    let stored: SpooledData
    let plainByteCount: Int
    let key: ClassWrappedKey?
  }

  /// Stores a file, encrypted if the backup has a password.
  ///
  /// - Parameters:
  ///   - minimumByteCount: The minimum size of the plaintext.
  ///   - forEachChunk: Passes the bytes in order.
  private func store(
    minimumByteCount: Int, keys: ClassKeys, random: some RandomSource,
    _ forEachChunk: ((UnsafeRawBufferPointer) throws(KeyhaulError) -> Void) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> StoredContent {
    var builder = try SpooledDataBuilder(.temporaryFile, system: system, expecting: Int64(minimumByteCount))
    var plainByteCount = 0
    guard contents.isEncrypted else {
      try forEachChunk { (chunk) throws(KeyhaulError) in
        plainByteCount += chunk.count
        try builder.append(chunk)
      }
      return StoredContent(stored: try builder.finish(), plainByteCount: plainByteCount, key: nil)
    }
    let (key, wrappedKey) = try keys.makeFileKey(of: Self.keyClass, random: random)
    let encryptor = try translatingErrors(in: "a file") { () throws(DataProtectionError) in
      try FileEncryptor(key: key.secret)
    }
    try forEachChunk { (chunk) throws(KeyhaulError) in
      plainByteCount += chunk.count
      let bytes = try translatingErrors(in: "a file") { () throws(DataProtectionError) in
        try encryptor.update(chunk)
      }
      try bytes.withRawBytes { (bytes) throws(KeyhaulError) in try builder.append(bytes) }
    }
    let end = try translatingErrors(in: "a file") { () throws(DataProtectionError) in try encryptor.finish() }
    try end.withRawBytes { (bytes) throws(KeyhaulError) in try builder.append(bytes) }
    return StoredContent(stored: try builder.finish(), plainByteCount: plainByteCount, key: wrappedKey)
  }

  private func directoryName() throws(KeyhaulError) -> String {
    guard let identifier = contents.device.identifier, BackupDirectory.isValidName(identifier) else {
      throw KeyhaulError(.unwritable, "the device's identifier must consist of letters, digits and hyphens")
    }
    return identifier
  }

  /// Creates a manifest database with the keychain's directory and file, owned by root as on a device.
  private func manifestDatabase(for keychain: StoredContent, time: Int64) throws(KeyhaulError) -> [UInt8] {
    let identifier = try translatingErrors(in: "the manifest database") { () throws(DataProtectionError) in
      try ListedFile.fileIdentifier(domain: KeychainPayload.domain, relativePath: "")
    }
    let directory = FileRecord(
      relativePath: "", mode: 0o040700, inode: 1, userID: 0, groupID: 0, lastModified: time, lastStatusChange: time,
      birth: time, protectionClass: KeyClass(rawValue: 0))
    let file = FileRecord(
      relativePath: KeychainPayload.relativePath, digest: try keychain.stored.sha1(), encryptionKey: keychain.key,
      mode: 0o100600, inode: 2, userID: 0, groupID: 0, lastModified: time, lastStatusChange: time, birth: time,
      size: Int64(keychain.plainByteCount), protectionClass: Self.keyClass)
    // The flags are 2 for a directory and 1 for a file.
    return try ManifestDatabaseBuilder.build([
      .init(
        fileIdentifier: identifier, domain: KeychainPayload.domain, relativePath: "", flags: 2,
        record: try archived(directory)),
      .init(
        fileIdentifier: KeychainPayload.fileIdentifier, domain: KeychainPayload.domain,
        relativePath: KeychainPayload.relativePath, flags: 1, record: try archived(file)),
    ])
  }

  private func archived(_ record: FileRecord) throws(KeyhaulError) -> [UInt8] {
    try translatingErrors(in: "a file's record") { () throws(FormatError) in try record.archived() }
  }
}

extension ClassKeys {
  /// Creates a file key, and wraps it with the key of a class.
  ///
  /// - Returns: The key in a box, because a noncopyable `Secret` cannot be in a tuple, and the wrapped key.
  func makeFileKey(
    of keyClass: KeyClass, random: some RandomSource
  ) throws(KeyhaulError) -> (SecretBox, ClassWrappedKey) {
    let part = "the key of a file"
    let key = try translatingErrors(in: part) { () throws(DataProtectionError) in
      SecretBox(try Secret(count: 32, from: random))
    }
    let field = try translatingErrors(in: part) { () throws(DataProtectionError) in
      try wrapFileKey(key.secret, keyClass: keyClass, random: random)
    }
    return (key, try translatingErrors(in: part) { () throws(FormatError) in try ClassWrappedKey(parsing: field) })
  }
}

/// The `Info.plist` of a backup, which the computer writes. Other readers require the device identifier in it.
///
/// Source: libimobiledevice, `idevicebackup2.c`.
struct InfoPlistWriter {
  private let contents: BackupContents
  private let guid: [UInt8]

  /// Creates the property list.
  ///
  /// - Parameter guid: 16 bytes that identify the backup to the computer.
  init(_ contents: BackupContents, guid: [UInt8]) {
    self.contents = contents
    self.guid = guid
  }

  func serialized() throws(KeyhaulError) -> [UInt8] {
    let device = contents.device
    var root: PropertyDictionary = [:]
    root["Applications"] = .dictionary(PropertyDictionary())
    root["Build Version"] = device.buildVersion.map { .string($0) }
    root["Device Name"] = device.name.map { .string($0) }
    root["Display Name"] = device.name.map { .string($0) }
    root["GUID"] = .string(String(hexadecimal: guid).uppercased())
    root["Installed Applications"] = .array(contents.applications.sorted().map { .string($0) })
    root["Last Backup Date"] = .date(contents.date)
    root["Product Type"] = device.productType.map { .string($0) }
    root["Product Version"] = device.productVersion.map { .string($0) }
    root["Serial Number"] = device.serialNumber.map { .string($0) }
    root["Target Identifier"] = device.identifier.map { .string($0) }
    root["Target Type"] = .string("Device")
    root["Unique Identifier"] = device.identifier.map { .string($0.uppercased()) }
    do throws(FormatError) {
      return try XMLPlist.encode(.dictionary(root))
    } catch {
      throw KeyhaulError(.unwritable, "\(MetadataFile.info.path): \(error.reason)")
    }
  }
}
