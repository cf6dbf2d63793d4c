import Basics
import KeychainCrypto
import KeychainFormats

/// Whether what a backup stores is encrypted: what its manifest says, held against what is stored.
struct FoundEncryption {
  /// Whether payloads are encrypted.
  let isEncrypted: Bool
  /// Whether the list of files is a database in clear, though there is a key for it or a password.
  var isListClear = false
  /// Of the records in the list, where each of them is sealed.
  var recordSalt: RecordSalt?
  /// What the manifest's word that there is a password is held against, where it is not true.
  var falseClaim: ArchiveNote?

  /// - Throws: `.damaged` where the list is encrypted and its key is missing; what a list that no device makes gives.
  init(
    of parts: StoredParts, _ manifest: BackupManifest, _ layout: BackupLayout,
    stored: () throws(KeyhaulError) -> StoredPayloads
  ) throws(KeyhaulError) {
    // Without a manifest there is no claim, and what is stored decides. Where a manifest does not say, the key decides that
    // only an encrypted list has.
    let isManifestMissing = !parts.contains(.manifest)
    let claim = isManifestMissing || (manifest.isEncrypted ?? (manifest.manifestKey != nil))
    guard claim, layout == .manifestDB, let list = try Self.clearList(parts) else {
      guard !claim || layout != .manifestDB || parts.database == nil || manifest.manifestKey != nil else {
        throw KeyhaulError(.damaged, "\(StoredPart.manifest.path) says it is encrypted, but has no ManifestKey")
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

  /// - Returns: `nil` if the stored file list is not an unencrypted database, or cannot be read. The later reader of
  ///   the list reports the reason.
  private static func clearList(_ parts: StoredParts) throws(KeyhaulError) -> ClearList? {
    guard let database = parts.database else { return nil }
    do throws(KeyhaulError) {
      return try ClearList(database, replacing: parts.replacedPages?.pages)
    } catch {
      guard error.category == .damaged else { throw error }
      return nil
    }
  }
}

extension ManifestDatabase {
  /// Rows that are looked at.
  private static let maximumRowCount = 1_000

  /// How many payloads are as long as what they hold, and how many are longer by the padding of an encrypted one.
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

/// In what a manifest claims less protection than its own parts show.
struct FoundContradictions {
  let findings: [ArchiveFinding]

  /// - Parameter isEncrypted: Whether what is stored is encrypted, or the manifest says so.
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

  /// What of the wraps of class keys in a backup with a password is as no device makes it, but for the hardware's layer
  /// where that is missing: such keys are told of by what they open.
  private static func unusualWraps(of keybag: Keybag) -> String? {
    let bound = BackupKeybag.classesWithUnexpectedDeviceWrap(in: keybag)
    let bare = BackupKeybag.classesWithoutPassword(of: keybag)
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
