import Backups
import Basics
import KeychainFormats

/// Items that were read before, in whose memory the same ones are held when they are read again: those of a backup, where
/// the device that made it is asked for its own.
struct KnownContents {
  private let items: [ArchivedItem]
  /// Both are in one order, but for what has come or gone since.
  private var next = 0
  private static let longestGap = 64

  init(_ items: [ArchivedItem]) { self.items = items }

  /// - Returns: The item as it is held already, where it is among those that come next; otherwise itself.
  mutating func shared(_ item: KeychainItem) -> KeychainItem {
    for place in next..<min(next + Self.longestGap, items.count) {
      guard let known = items[place].item, known.wasReadAlike(item) else { continue }
      next = place + 1
      return known
    }
    return item
  }
}
