import Basics
import KeychainCrypto
import KeychainFormats

/// A backup's keychain file after it was read: where its items are, and what of it was unusual.
struct KeychainReading: Sendable {
  let index: KeychainIndex
  /// The keybag that it names.
  let keybagUUID: String?
  /// The length of the plain file, in bytes.
  let byteCount: Int
  /// Of the archive, its list and the file.
  let notes: [ArchiveNote]

  /// Reads the file. A large one that is as devices write it is held at no time.
  ///
  /// - Parameters:
  ///   - list: The archive's list of files.
  ///   - keys: Of its keybag.
  /// - Throws: As `keychainFile(in:with:)`, and `.unreadable` where the system does not give the private copy.
  init(of archive: BackupArchive, in list: FileList, with keys: borrowing ClassKeys) throws(BackupArchiveError) {
    let sections = try Self.sections(of: archive, list, with: keys)
    if let sections, let reading = try Self(placedIn: sections, of: archive, list) {
      self = reading
      return
    }
    let payload = try archive.keychainFile(in: list, with: keys)
    // What was written in XML has no bytes of its own in the file.
    if let sections, !payload.file.isXML {
      index = KeychainIndex(payload.file.entries.map { .init($0, in: []) }, in: sections)
    } else {
      index = KeychainIndex(payload.file)
    }
    keybagUUID = payload.file.keybagUUID
    byteCount = payload.bytes.count
    notes = payload.notes
  }

  /// The file in the archive's private copy; `nil` where it is in memory anyway.
  private static func sections(
    of archive: BackupArchive, _ list: FileList, with keys: borrowing ClassKeys
  ) throws(BackupArchiveError) -> StoredSections? {
    guard let stored = archive.storedLargeKeychain else { return nil }
    return StoredSections(of: stored, key: try archive.keychainKey(in: list, with: keys), called: "the keychain file")
  }

  /// Finds the places of the items in the archive's private copy, which is read a page at a time.
  ///
  /// - Returns: `nil` for one of which anything is to be said: whoever reads it as a whole says it.
  private init?(
    placedIn sections: StoredSections, of archive: BackupArchive, _ list: FileList
  ) throws(BackupArchiveError) {
    let record = try archive.keychainRecord(in: list)
    let reader = try sections.reader()
    guard let byteCount = try Self.plainByteCount(reader), record.size == Int64(byteCount) else { return nil }
    if let digest = record.digest, try reader.stored.sha1() != digest { return nil }
    guard !XMLPlist.isXML(try reader.bytes(0..<min(64, byteCount))) else { return nil }

    var failure: BackupArchiveError?
    let pages = PagedBytes(count: byteCount) { offset, page in
      do throws(BackupArchiveError) {
        try reader.read(at: offset, into: page)
        return true
      } catch {
        failure = error
        return false
      }
    }
    let file = try? KeychainBackupFile(placesIn: pages)
    if let failure { throw failure }
    guard let file, file.ignoredKeys.isEmpty else { return nil }
    index = KeychainIndex(file.entries, in: sections)
    keybagUUID = file.keybagUUID
    self.byteCount = byteCount
    notes = archive.notes + list.notes
  }

  /// The length of the plain file; `nil` for one that does not end in its padding.
  private static func plainByteCount(_ reader: StoredSections.Reader) throws(BackupArchiveError) -> Int? {
    let count = reader.stored.byteCount
    guard reader.isEncrypted else { return count }
    guard count > 0, count.isMultiple(of: StoredSections.blockByteCount) else { return nil }
    return try reader.paddingByteCount(endingAt: count).map { count - $0 }
  }
}
