import KeyhaulKit
import Reports

/// What `-v` and `-vv` say of an archive whose items were tried.
struct OpeningDetails {
  private let named: NamedArchive
  private let session: Session
  private var count = 0
  private var readableCount = 0
  /// A line for each item, where they are shown.
  private var lines: [String] = []

  init(of named: NamedArchive, in session: Session) {
    self.named = named
    self.session = session
  }

  mutating func take(_ items: [BackupItem]) {
    count += items.count
    readableCount += items.count { $0.failure == nil }
    guard session.common.verbose > 1 else { return }
    for item in items {
      guard let blob = item.blob else { continue }
      let place = "\(HumanReadable.bytes(blob.byteCount)) at \(HumanReadable.grouped(blob.offset))"
      lines.append("  item \(item.index): \(place), \(ItemText.protection(item.protection))")
    }
  }

  /// - Parameter duration: How long it took to try all of them, where nothing else was done meanwhile.
  func say(tryingTook duration: Duration? = nil) {
    session.detail(
      "\(UntrustedText.escaped(named.name)): \(readableCount) of \(HumanReadable.count(count, "item")) can be decrypted here"
    )
    session.detail("  \(named.archive.digest)", level: 2)
    if let duration { session.detail("  tried in \(Int(duration / .milliseconds(1))) ms", level: 2) }
    for line in lines { session.detail(line, level: 2) }
  }
}
