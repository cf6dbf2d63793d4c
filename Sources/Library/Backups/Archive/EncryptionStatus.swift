import Basics
import KeychainCrypto
import KeychainFormats

/// The encryption of a backup's content, from its manifest and from the stored files.
struct EncryptionStatus {
  /// Whether payloads are encrypted.
  let isEncrypted: Bool
  /// Whether the list of files is an unencrypted database, although the backup has a key for it or a password.
  var isListClear = false
  /// The salt of the records in the list, if each record is encrypted.
  var recordSalt: RecordSalt?
  /// The evidence against the manifest's claim of a password, if the claim is false.
  var falseClaim: BackupAnomaly?

  /// Determines the encryption.
  ///
  /// - Throws: `.damaged` if the list is encrypted and its key is missing, or the error of an invalid list.
  init(
    of parts: MetadataFiles, _ manifest: BackupManifest, _ layout: BackupLayout,
    stored: () throws(KeyhaulError) -> StoredPayloads
  ) throws(KeyhaulError) {
    // Without a manifest, the stored content decides. If the manifest makes no claim, the key of an encrypted list
    // decides.
    let isManifestMissing = !parts.contains(.manifest)
    let claim = isManifestMissing || (manifest.isEncrypted ?? (manifest.manifestKey != nil))
    guard claim, layout == .manifestDB, let list = try Self.plaintextManifest(parts) else {
      guard !claim || layout != .manifestDB || parts.database == nil || manifest.manifestKey != nil else {
        throw KeyhaulError(.damaged, "\(MetadataFile.manifest.path) says it is encrypted, but has no ManifestKey")
      }
      isEncrypted = claim
      return
    }
    isListClear = true
    switch list {
    case .rowsAreSealed(let salt): (isEncrypted, recordSalt) = (true, salt)
    case .nothingIsEncrypted:
      (isEncrypted, falseClaim) = (false, isManifestMissing ? nil : .encryptionClaimed)
    case .filesHaveKeys:
      let count = try ManifestDatabase(parts.clearDatabase()).payloadCounts(try stored())
      isEncrypted = isManifestMissing ? count.encrypted > count.plain : count.encrypted >= count.plain
      guard !isEncrypted, !isManifestMissing else { return }
      let fact = "it says that it is encrypted, but its manifest and its files are stored unencrypted"
      falseClaim = .finding(.falseClaim(reason: fact))
    }
  }

  /// Returns the unencrypted list of files, or `nil` if the list is encrypted or unreadable, which its later reader
  /// reports.
  private static func plaintextManifest(_ parts: MetadataFiles) throws(KeyhaulError) -> PlaintextManifest? {
    guard let database = parts.database else { return nil }
    do throws(KeyhaulError) {
      return try PlaintextManifest(database, replacing: parts.replacedPages?.pages)
    } catch {
      guard error.category == .damaged else { throw error }
      return nil
    }
  }
}

extension ManifestDatabase {
  /// The maximum number of rows that are sampled.
  private static let maximumRowCount = 1_000

  /// Returns the number of payloads whose size equals that of the file, and of those that are longer by the padding.
  fileprivate func payloadCounts(
    _ stored: StoredPayloads
  ) throws(KeyhaulError) -> (plain: Int, encrypted: Int) {
    let block: Int64 = 16
    let records = RecordReader(key: nil)
    var (plainCount, encryptedCount) = (0, 0)
    try forEachRow("fileID, file", where: "file IS NOT NULL", atMost: Self.maximumRowCount) { row in
      guard let identifier = row.text(0), let size = records.file(in: row, 1)?.size, size > 0,
        let byteCount = stored.byteCount(of: identifier)
      else { return }
      if byteCount == size { plainCount += 1 }
      if byteCount - size == block - size % block { encryptedCount += 1 }
    }
    return (plainCount, encryptedCount)
  }
}

/// Claims in a manifest of less protection than its own content shows.
struct ManifestContradictions {
  let findings: [BackupFinding]

  /// Compares the manifest with its own content.
  ///
  /// - Parameter isEncrypted: Whether the content is encrypted, or the manifest claims so.
  init(in manifest: BackupManifest, isEncrypted: Bool) {
    guard !isEncrypted else {
      findings = Self.unusualWraps(of: manifest.keybag).map { [.wrapsUnusual(reason: $0)] } ?? []
      return
    }
    var facts: [String] = []
    if manifest.manifestKey != nil { facts.append("the key of an encrypted manifest (ManifestKey)") }
    if manifest.keybag.secondRound != nil { facts.append("a keybag with a password's iteration count (DPIC)") }
    findings =
      facts.isEmpty
      ? []
      : [.passwordDenied(reason: "it says that it is not encrypted, but contains \(HumanReadable.list(facts))")]
  }

  /// Describes unexpected wrapping of class keys in a backup with a password. A missing device layer is reported by the
  /// items it affects.
  private static func unusualWraps(of keybag: Keybag) -> String? {
    let bound = BackupKeybag.classesWithUnexpectedDeviceWrap(in: keybag)
    let bare = BackupKeybag.classesWithoutPasswordWrap(in: keybag)
    var facts: [String] = []
    if !bound.isEmpty {
      facts.append(
        "\(keys(bound, "is", "are")) wrapped with a device's hardware key. No device does this in a backup with a "
          + "password, and it makes migratable items appear to stay behind")
    }
    if !bare.isEmpty {
      facts.append("\(keys(bare, "is", "are")) not wrapped with the password, although every device does this")
    }
    return facts.isEmpty ? nil : facts.joined(separator: "; ")
  }

  private static func keys(_ classes: [KeyClass], _ one: String, _ several: String) -> String {
    let names = HumanReadable.list(classes.map { String($0.rawValue) })
    return classes.count == 1
      ? "the key of class \(names) in its keybag \(one)" : "the keys of classes \(names) in its keybag \(several)"
  }
}
