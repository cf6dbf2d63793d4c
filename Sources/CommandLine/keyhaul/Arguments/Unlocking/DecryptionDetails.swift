import KeyhaulKit
import Reports

/// The details of decryption that `-v` and `-vv` print.
struct DecryptionDetails {
  private let loaded: LoadedBackup
  private let session: Session
  private var count = 0
  private var readableCount = 0
  /// A line for each item; empty unless `-vv` was given.
  private var lines: [String] = []

  init(of loaded: LoadedBackup, in session: Session) {
    self.loaded = loaded
    self.session = session
  }

  mutating func record(_ items: [BackupItem]) {
    count += items.count
    readableCount += items.count { $0.failure == nil }
    guard session.common.verbose > 1 else { return }
    for item in items {
      guard let blob = item.blob else { continue }
      let position = "\(HumanReadable.bytes(blob.byteCount)) at \(HumanReadable.grouped(blob.offset))"
      lines.append("  item \(item.index): \(position), \(ItemText.protection(item.protection))")
    }
  }

  /// Prints the details.
  ///
  /// - Parameter decryptionTime: The time that it took to try all items; `nil` if it was not measured.
  func report(decryptionTime: Duration? = nil) {
    session.debug(
      "\(UntrustedText.escaped(loaded.name)): \(readableCount) of \(HumanReadable.count(count, "item")) can be decrypted here"
    )
    session.debug("  \(loaded.archive.digest)", level: 2)
    if let decryptionTime { session.debug("  tried in \(Int(decryptionTime / .milliseconds(1))) ms", level: 2) }
    for line in lines { session.debug(line, level: 2) }
  }
}
