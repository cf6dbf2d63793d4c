package import Basics
package import KeychainCrypto
package import KeychainFormats

/// Writes a backup as a device would have: whole, or not at all.
///
/// The same contents, keys, random source and destination format give the same bytes.
package struct BackupWriter: Sendable {
  private let placement: BackupPlacement

  /// Creates a writer to the real file system.
  package init() { self.init(system: .real) }

  package init(system: FileSystem) { placement = BackupPlacement(system: system) }

  /// Writes a backup, whole or not at all.
  ///
  /// - Parameters:
  ///   - contents: What goes into the backup.
  ///   - keys: The class keys of the contents' keybag. Without a password nothing is encrypted with them here.
  ///   - random: Gives the keys of the files.
  ///   - destination: Where it goes, and in which form.
  ///   - replace: Whether a backup, or a file, that stands at the destination may go.
  /// - Throws: `.occupied` where something stands there that may not be replaced, `.noSpace` and `.unwritable` where the
  ///   system refuses, `.noTemporarySpace` where it gives no room for a large keychain meanwhile. After an error what
  ///   stood there before stands there still, and nothing else was left.
  package func write(
    _ contents: BackupContents, keys: ClassKeys, random: some RandomSource = SystemRandomSource(),
    to destination: ArchiveDestination, replace: Bool = false
  ) throws(KeyhaulError) -> WrittenBackup {
    let backup = try BackupAssembly(contents: contents, system: placement.system).assemble(keys: keys, random: random)
    let placed = try placement.place(backup.outgoing, at: destination, replace: replace)
    return WrittenBackup(
      path: placed.path, byteCount: placed.byteCount, isDurable: placed.isDurable, leftover: placed.leftover)
  }
}

/// What was written, and where.
package struct WrittenBackup: Sendable, Equatable {
  /// Where the backup now stands, which may be a directory inside of the one that was named; `nil` for a stream.
  package let path: String?
  /// Of the file or stream, or of all files in the directory.
  package let byteCount: Int64
  /// Whether the disk confirmed that it keeps the backup's name too, so that a power cut cannot take it; never so for a
  /// stream.
  package let isDurable: Bool
  /// A replaced backup that could not be removed, by its path.
  package let leftover: String?
}

/// Turns contents into the files of a backup, encrypted where it has a password. A large one is kept in a temporary file.
struct BackupAssembly {
  let contents: BackupContents
  let system: FileSystem

  /// The class that protects the keychain file and the manifest database: readable after the first unlock.
  private static let keyClass = KeyClass.fileUntilFirstUserAuthentication
  private static let systemDomainsVersion = "24.0"

  /// Draws from `random` always in the same order, so that the same source gives the same bytes.
  func assemble(
    keys: ClassKeys, random: some RandomSource
  ) throws(KeyhaulError) -> StoredBackup {
    let directoryName = try directoryName()
    guard let time = Int64(exactly: contents.date.secondsSince1970.rounded(.down)), time >= 0 else {
      throw KeyhaulError(.unwritable, "the date cannot be stored as a file date")
    }
    let keychain = try protect(
      leastByteCount: contents.keychain.leastByteCount, keys: keys, random: random, contents.keychain.forEachPortion)
    let list = try manifestDatabase(for: keychain, time: time)
    let database = try protect(leastByteCount: list.count, keys: keys, random: random) {
      (body) throws(KeyhaulError) in try list.withRawBytes(body)
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
    of files: [StoredFile], _ manifestKey: ClassWrappedKey?, keys: ClassKeys
  ) throws(KeyhaulError) -> SealList {
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
    leastByteCount expected: Int, keys: ClassKeys, random: some RandomSource,
    _ forEachPortion: ((UnsafeRawBufferPointer) throws(KeyhaulError) -> Void) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> Protected {
    var collector = try StoredBytesCollector(.temporaryFile, system: system, expecting: Int64(expected))
    var plainByteCount = 0
    guard contents.isEncrypted else {
      try forEachPortion { (portion) throws(KeyhaulError) in
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
    try forEachPortion { (portion) throws(KeyhaulError) in
      plainByteCount += portion.count
      let bytes = try explained("a file") { () throws(DataProtectionError) in try encryptor.update(portion) }
      try bytes.withRawBytes { (bytes) throws(KeyhaulError) in try collector.append(bytes) }
    }
    let end = try explained("a file") { () throws(DataProtectionError) in try encryptor.finish() }
    try end.withRawBytes { (bytes) throws(KeyhaulError) in try collector.append(bytes) }
    return Protected(
      stored: try collector.finish(), plainByteCount: plainByteCount,
      key: try explained("the key of a file") { () throws(FormatError) in try ClassWrappedKey(parsing: field) })
  }

  private func directoryName() throws(KeyhaulError) -> String {
    guard let name = contents.device.identifier, (1...64).contains(name.utf8.count),
      name.utf8.allSatisfy({ (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || $0 == 45 })
    else {
      throw KeyhaulError(.unwritable, "the device's identifier must consist of letters, digits and hyphens")
    }
    return name
  }

  /// Lists the keychain's directory and file, owned by root as on a device.
  private func manifestDatabase(for keychain: Protected, time: Int64) throws(KeyhaulError) -> [UInt8] {
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

  private func archived(_ record: FileRecord) throws(KeyhaulError) -> [UInt8] {
    try explained("a file's record") { () throws(FormatError) in try record.archived() }
  }
}

/// What goes into a backup that is about to be written.
package struct BackupContents: Sendable {
  /// Its identifier is needed: it names the backup's directory.
  package var device: BackupDevice
  /// When the backup is made; it stands in the manifest and in every file's record.
  package var date: KeychainDate
  /// Goes into the backup as it is; the class keys that `BackupWriter` is given have to be this bag's.
  package var keybag: Keybag
  /// Whether it has a password; the manifest and the files' form follow from it.
  package var isEncrypted: Bool
  /// Whether the device has a passcode, which the manifest says.
  package var wasPasscodeSet: Bool
  /// The keychain, its items sealed under the keybag.
  package var keychain: SealedKeychain
  /// Bundle identifiers of the apps on the device.
  package var applications: [String]

  /// The keychain file's property list, in memory.
  ///
  /// - Throws: As `SealedKeychain.bytes()`.
  package var keychainFile: [UInt8] { get throws(KeyhaulError) { try keychain.bytes() } }

  /// Creates the contents of one backup.
  package init(
    device: BackupDevice, date: KeychainDate, keybag: Keybag, isEncrypted: Bool, wasPasscodeSet: Bool,
    keychain: SealedKeychain, applications: [String] = []
  ) {
    self.device = device
    self.date = date
    self.keybag = keybag
    self.isEncrypted = isEncrypted
    self.wasPasscodeSet = wasPasscodeSet
    self.keychain = keychain
    self.applications = applications
  }

  /// The same with the keychain file's property list, its items sealed under the keybag.
  package init(
    device: BackupDevice, date: KeychainDate, keybag: Keybag, isEncrypted: Bool, wasPasscodeSet: Bool,
    keychainFile: [UInt8], applications: [String] = []
  ) {
    self.init(
      device: device, date: date, keybag: keybag, isEncrypted: isEncrypted, wasPasscodeSet: wasPasscodeSet,
      keychain: SealedKeychain(keychainFile), applications: applications)
  }
}

/// A backup's `Info.plist`, which the computer writes. Other readers want the device's identifier from it.
///
/// Source: libimobiledevice, `idevicebackup2.c`.
struct ComputerInfo {
  private let contents: BackupContents
  private let guid: [UInt8]

  /// - Parameter guid: Sixteen bytes that identify this backup to the computer.
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
      throw KeyhaulError(.unwritable, "\(StoredPart.info.path): \(error.reason)")
    }
  }
}
