import DataProtection
import KeychainFormats

/// Holds every file of a backup against its seal: the payloads as they come by, in whatever order.
package final class SealCheck: PayloadWatcher {
  private let archive: BackupArchive
  private let list: SealList
  /// By the lines of the list.
  private var isSeen: [Bool]
  private let digest: DigestStream
  private var byteCount: Int64 = 0
  private var state = State.unread
  /// What of the payloads is not what was sealed.
  package private(set) var breaks: [SealBreak] = []
  /// How many files, the parts among them, are what was sealed.
  package private(set) var rightCount = 0

  private enum State { case unread, begun, whole }

  /// - Returns: `nil` where nothing of a seal can be read.
  package init?(_ archive: BackupArchive) throws(BackupArchiveError) {
    guard let list = archive.seal?.list else { return nil }
    self.archive = archive
    self.list = list
    isSeen = Array(repeating: false, count: list.count)
    digest = try explained(StoredPart.seal.path) { () throws(DataProtectionError) in try DigestStream(.sha256) }
    for part in StoredPart.sealed(in: archive.layout) where part != archive.layout.keychainPart {
      take(try archive.parts.sealEntry(of: part), at: part.path, isEntered: true)
    }
  }

  /// - Parameter isEntered: Whether what is wrong with it was said when the backup was opened.
  private func take(_ found: SealList.Entry?, at path: String, isEntered: Bool) {
    for line in list.lines(of: path) { isSeen[line] = true }
    if let fact = list.fact(of: found, at: path) {
      if !isEntered { breaks.append(SealBreak(path, fact)) }
    } else if found != nil {
      rightCount += 1
    }
  }

  /// Has a payload measured while it is read.
  package func watching(_ payload: StoredPayload) throws(BackupArchiveError) -> StoredPayload {
    // What broke off left its bytes in the digest.
    if state != .unread {
      _ = try explained(StoredPart.seal.path) { () throws(DataProtectionError) in try digest.finish() }
    }
    (state, byteCount) = (.unread, 0)
    var watched = payload
    watched.watcher = self
    return watched
  }

  func begin() { state = .begun }

  func see(_ bytes: UnsafeRawBufferPointer) throws(BackupArchiveError) {
    byteCount += Int64(bytes.count)
    try explained(StoredPart.seal.path) { () throws(DataProtectionError) in try digest.update(bytes) }
  }

  func end() { state = .whole }

  /// Takes in a payload that was watched, and reads it where nobody did.
  ///
  /// - Returns: How it is not what was sealed; `nil` where it is.
  @discardableResult
  package func conclude(_ payload: StoredPayload) throws(BackupArchiveError) -> SealBreak? {
    if state == .unread { _ = try? watching(payload).forEachPortion { (_) throws(BackupArchiveError) in } }
    let isWhole = state == .whole
    let sha256 = try explained(StoredPart.seal.path) { () throws(DataProtectionError) in try digest.finish() }
    state = .unread
    let path = archive.layout.storedPath(of: payload.fileIdentifier)
    // What breaks off is not what was sealed.
    let found = SealList.Entry(path: path, byteCount: isWhole ? byteCount : -1, sha256: sha256)
    take(found, at: path, isEntered: payload.fileIdentifier == StoredPart.keychainFileIdentifier)
    return list.fact(of: found, at: path).map { SealBreak(path, $0) }
  }

  /// Adds the files that were sealed and did not come by, in the order of their paths.
  package func finish() {
    for line in 0..<list.count where !isSeen[line] {
      let path = list[line].path
      // That it is not there was said when the backup was opened.
      guard path != archive.layout.keychainPart.path else { continue }
      breaks.append(SealBreak(path, .missing))
    }
    breaks.sort { $0.file.utf8.lexicographicallyPrecedes($1.file.utf8) }
  }
}
