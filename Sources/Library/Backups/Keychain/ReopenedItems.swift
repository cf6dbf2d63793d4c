import Basics
import KeychainCrypto
import KeychainFormats

/// The items of a keychain file, each opened whenever it is asked for. Those that were opened last are held, so that
/// whoever goes through all of them opens each once.
final class ReopenedItems: Sendable, CustomReflectable {
  private let file: KeychainIndex
  private let keys: SharedClassKeys
  private let recent = Locked(Recent())
  /// Known when all were opened for the first time.
  private let ordinary = Locked<[OrdinaryItem?]>([])

  /// Those that stand side by side and were opened together.
  private struct Recent {
    var items: [ArchivedItem] = []
    /// The position of the first of them.
    var start = 0
    /// The position behind the item that was asked for last.
    var next = 0
  }

  /// How many are opened at a time.
  private static let portionCount = 128
  /// By how much whoever goes through them may go ahead: what did not open is not asked for again.
  private static let longestGap = 64

  init(_ file: KeychainIndex, _ keys: borrowing ClassKeys) throws(DataProtectionError) {
    self.file = file
    self.keys = try SharedClassKeys(keys)
  }

  /// What the first opening of them showed, of the next ones in their order.
  func take(_ marks: [OrdinaryItem?]) {
    ordinary.withLock { all in
      if all.isEmpty { all.reserveCapacity(file.count) }
      all += marks
    }
  }

  /// What a plan needs of an item; `nil` where it has to be opened for one.
  func ordinary(at index: Int) -> OrdinaryItem? {
    ordinary.withLock { $0.indices.contains(index) ? $0[index] : nil }
  }

  /// Opens an item that opened before.
  ///
  /// - Returns: `nil` where the system does not give it again.
  func item(at index: Int) -> ArchivedItem? {
    recent.withLock { recent in
      let isNext = (recent.next...recent.next + Self.longestGap).contains(index) || index == 0
      recent.next = index + 1
      let place = index - recent.start
      if recent.items.indices.contains(place) { return recent.items[place] }
      guard (0..<file.count).contains(index) else { return nil }
      guard isNext else { return opened(index..<index + 1)?.first }
      // The last ones are gone before these come.
      recent.items = []
      recent.items = opened(index..<min(index + Self.portionCount, file.count)) ?? []
      recent.start = index
      return recent.items.first
    }
  }

  private func opened(_ range: Range<Int>) -> [ArchivedItem]? {
    try? ArchivedItem.open(range, of: file, with: keys.keys)
  }

  /// A dump shows no item in clear.
  var customMirror: Mirror { Mirror(self, children: ["count": file.count]) }
}
