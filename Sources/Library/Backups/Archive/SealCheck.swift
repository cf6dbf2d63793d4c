/// Holds every file of a backup against its seal: the payloads as they come by, in whatever order.
package final class SealCheck {
  private let archive: BackupArchive
  private let list: SealList
  /// By the lines of the list.
  private var isSeen: [Bool]
  /// What of the payloads is not what was sealed.
  package private(set) var breaks: [SealBreak] = []
  /// How many files, the parts among them, are what was sealed.
  package private(set) var rightCount = 0

  /// - Returns: `nil` where nothing of a seal can be read.
  package init?(_ archive: BackupArchive) throws(BackupArchiveError) {
    guard let list = archive.seal?.list else { return nil }
    self.archive = archive
    self.list = list
    isSeen = Array(repeating: false, count: list.count)
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

  /// Takes in a payload that was read.
  ///
  /// - Parameter entry: What a `SealMeter` found.
  /// - Returns: How it is not what was sealed; `nil` where it is.
  @discardableResult
  package func take(_ entry: SealList.Entry) -> SealBreak? {
    take(entry, at: entry.path, isEntered: entry.path == archive.layout.keychainPart.path)
    return list.fact(of: entry, at: entry.path).map { SealBreak(entry.path, $0) }
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
