import BackupArchive
import DataProtection
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
    if let reading = try Self(placedIn: archive, list, with: keys) {
      self = reading
      return
    }
    let payload = try archive.keychainFile(in: list, with: keys)
    index = try KeychainIndex(payload, of: archive, with: keys)
    keybagUUID = payload.file.keybagUUID
    byteCount = payload.bytes.count
    notes = payload.notes
  }

  /// Finds the places of the items in the archive's private copy, which is read a page at a time.
  ///
  /// - Returns: `nil` for a file that is in memory anyway, and for one of which anything is to be said: whoever reads it as
  ///   a whole says it.
  private init?(
    placedIn archive: BackupArchive, _ list: FileList, with keys: borrowing ClassKeys
  ) throws(BackupArchiveError) {
    guard let stored = archive.storedLargeKeychain else { return nil }
    let record = try archive.keychainRecord(in: list)
    let source = KeychainSource(stored, key: try archive.keychainKey(in: list, with: keys))
    guard let byteCount = try source.plainByteCount(), record.size == Int64(byteCount) else { return nil }
    if let digest = record.digest, try stored.sha1() != digest { return nil }
    let decryptor = try source.decryptor()
    guard !XMLPlist.isXML(try source.bytes(0..<min(64, byteCount), with: decryptor)) else { return nil }

    var failure: BackupArchiveError?
    let pages = PagedBytes(count: byteCount) { offset, page in
      do throws(BackupArchiveError) {
        page.copyBytes(from: try source.bytes(offset..<offset + page.count, with: decryptor))
        return true
      } catch {
        failure = error
        return false
      }
    }
    let file = try? KeychainBackupFile(placesIn: pages)
    if let failure { throw failure }
    guard let file, file.ignoredKeys.isEmpty else { return nil }
    index = KeychainIndex(file.entries, in: source)
    keybagUUID = file.keybagUUID
    self.byteCount = byteCount
    notes = archive.notes + list.notes
  }
}
