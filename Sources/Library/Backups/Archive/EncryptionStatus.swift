import Basics
import KeychainCrypto
import KeychainFormats

/// The encryption of a backup's content, from its manifest and from the stored files.
struct EncryptionStatus {
  /// Whether payloads are encrypted.
  let isEncrypted: Bool
  /// Whether the list of files is an unencrypted database, although the backup has a key for it or a password.
  var isListPlaintext = false
  /// The salt of the records in the list, if each record is encrypted.
  var recordSalt: RecordSalt?
  /// The evidence against the manifest's claim of a password, if the claim is false.
  var falseClaim: ToleratedAnomaly?

  /// Determines the encryption.
  ///
  /// - Throws: `.damaged` if the list is encrypted and its key is missing, or the error of an invalid list.
  init(
    of parts: MetadataFiles, _ manifest: BackupManifest, _ layout: BackupLayout,
    stored: () throws(KeyhaulError) -> StoredPayloads
  ) throws(KeyhaulError) {
    let isManifestMissing = !parts.contains(.manifest)
    // Without a manifest, the stored content decides. If a manifest makes no claim, a key for the list counts as one.
    let claimsEncryption = isManifestMissing || (manifest.isEncrypted ?? (manifest.manifestKey != nil))
    guard claimsEncryption, layout == .manifestDB, let list = try Self.plaintextManifest(parts) else {
      let hasEncryptedDatabase = claimsEncryption && layout == .manifestDB && parts.database != nil
      guard !hasEncryptedDatabase || manifest.manifestKey != nil else {
        throw KeyhaulError(.damaged, "\(MetadataFile.manifest.path) says it is encrypted, but has no ManifestKey")
      }
      isEncrypted = claimsEncryption
      return
    }
    isListPlaintext = true
    switch list {
    case .rowsAreEncrypted(let salt): (isEncrypted, recordSalt) = (true, salt)
    case .nothingIsEncrypted:
      (isEncrypted, falseClaim) = (false, isManifestMissing ? nil : .encryptionClaimed)
    case .filesHaveKeys:
      let counts = try ManifestDatabase(parts.plaintextDatabase()).payloadCounts(try stored())
      // Equal counts do not disprove the manifest's claim.
      isEncrypted = isManifestMissing ? counts.encrypted > counts.plain : counts.encrypted >= counts.plain
      guard !isEncrypted, !isManifestMissing else { return }
      falseClaim = .finding(
        .falseClaim(reason: "it says that it is encrypted, but its manifest and its files are stored unencrypted"))
    }
  }

  /// Returns which content is encrypted according to an unencrypted list of files. Returns `nil` if the list itself is
  /// encrypted or unreadable. `fileList(with:)` reports an unreadable list.
  private static func plaintextManifest(_ parts: MetadataFiles) throws(KeyhaulError) -> PlaintextManifest? {
    guard let database = parts.database else { return nil }
    do throws(KeyhaulError) {
      return try PlaintextManifest(database, replacing: parts.replacementPages?.pages)
    } catch {
      guard error.category == .damaged else { throw error }
      return nil
    }
  }
}

extension ManifestDatabase {
  /// The maximum number of rows that are sampled.
  private static let maximumSampleCount = 1_000

  /// Counts the unencrypted and the encrypted payloads in a sample, by their size. An unencrypted payload has the size
  /// of its file, and an encrypted one also has AES padding.
  fileprivate func payloadCounts(
    _ stored: StoredPayloads
  ) throws(KeyhaulError) -> (plain: Int, encrypted: Int) {
    let blockByteCount = Int64(RandomAccessDecryptor.blockByteCount)
    let records = RecordReader(key: nil)
    var (plainCount, encryptedCount) = (0, 0)
    try forEachRow("fileID, file", where: "file IS NOT NULL", atMost: Self.maximumSampleCount) { row in
      guard let identifier = row.text(0), let size = records.file(in: row, 1)?.size, size > 0,
        let storedByteCount = stored.byteCount(of: identifier)
      else { return }
      let paddingByteCount = blockByteCount - size % blockByteCount
      if storedByteCount == size { plainCount += 1 }
      if storedByteCount - size == paddingByteCount { encryptedCount += 1 }
    }
    return (plainCount, encryptedCount)
  }
}

/// The claims in a manifest that its own content contradicts.
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
    var signsOfPassword: [String] = []
    if manifest.manifestKey != nil { signsOfPassword.append("the key of an encrypted manifest (ManifestKey)") }
    if manifest.keybag.secondStep != nil {
      signsOfPassword.append("a keybag with a password's iteration count (DPIC)")
    }
    let list = HumanReadable.list(signsOfPassword)
    findings =
      signsOfPassword.isEmpty
      ? [] : [.passwordDenied(reason: "it says that it is not encrypted, but contains \(list)")]
  }

  /// Describes class keys that are wrapped in a way that no device uses in a backup with a password, or returns `nil`
  /// if there are none. A missing wrap with the device key is not described, because each affected item reports it.
  private static func unusualWraps(of keybag: Keybag) -> String? {
    let deviceBound = BackupKeybag.classesWithUnexpectedDeviceWrap(in: keybag)
    let withoutPassword = BackupKeybag.classesWithoutPasswordWrap(in: keybag)
    var clauses: [String] = []
    if !deviceBound.isEmpty {
      clauses.append(
        "\(subject(deviceBound)) wrapped with a device key. No device does this in a backup with a "
          + "password, and it makes migratable items appear to stay behind")
    }
    if !withoutPassword.isEmpty {
      clauses.append("\(subject(withoutPassword)) not wrapped with the password, although every device does this")
    }
    return clauses.isEmpty ? nil : clauses.joined(separator: "; ")
  }

  /// Returns the start of a sentence, such as "the keys of classes 6 and 7 in its keybag are".
  private static func subject(_ classes: [KeyClass]) -> String {
    let names = HumanReadable.list(classes.map { String($0.rawValue) })
    return classes.count == 1
      ? "the key of class \(names) in its keybag is" : "the keys of classes \(names) in its keybag are"
  }
}
