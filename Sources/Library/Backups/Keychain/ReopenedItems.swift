import Basics
import KeychainCrypto
import KeychainFormats
package import KeychainRules

/// The items of a keychain file, each opened whenever it is asked for. Those that were opened last are held, so that
/// whoever goes through all of them opens each once.
final class ReopenedItems: Sendable, CustomReflectable {
  private let file: KeychainIndex
  private let keys: ClassKeys
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

  init(_ file: KeychainIndex, _ keys: ClassKeys) {
    self.file = file
    self.keys = keys.sharing()
  }

  /// What the first opening of them showed, of the next ones in their order.
  func take(_ marks: [OrdinaryItem?]) {
    ordinary.withLock { all in
      if all.isEmpty { all.reserveCapacity(file.count) }
      all += marks
    }
  }

  /// What a plan needs of an item; `nil` if it has to be opened for one.
  func ordinary(at index: Int) -> OrdinaryItem? {
    ordinary.withLock { $0.indices.contains(index) ? $0[index] : nil }
  }

  /// Opens an item that opened before.
  ///
  /// - Returns: `nil` if the system does not give it again.
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
    try? ArchivedItem.open(range, of: file, with: keys)
  }

  /// A dump shows no item in clear.
  var customMirror: Mirror { Mirror(self, children: ["count": file.count]) }
}

/// What a restore has to know of an item that no rule leaves out and that is stored as it is, as long as nothing with its
/// primary key is in the way: so that it is not opened for a plan. There is one for every item.
package struct OrdinaryItem: Sendable {
  /// Half of its primary key's fingerprint.
  package let key: KeyHalf
  /// Whether it is marked to synchronize.
  package let isSynchronizable: Bool
  /// Whether its value has the form of a key of the Secure Enclave.
  package let holdsEnclaveKey: Bool

  /// A primary key in sixteen bytes of SHA-256: some 2^64 attempts find two alike. A plan that takes one for the other does not
  /// come true, so that the restore changes nothing.
  package struct KeyHalf: Sendable, Hashable {
    // Words of four bytes, so that an item's two marks take no more than four beside it.
    private let first, second, third, fourth: UInt32

    /// - Throws: `.notAvailable` where OpenSSL has no SHA-256.
    package init(_ key: PrimaryKey) throws(KeychainRuleError) {
      do throws(DataProtectionError) {
        (first, second, third, fourth) = try ItemFingerprint(of: key).half
      } catch {
        throw KeychainRuleError(.notAvailable, error.reason)
      }
    }
  }

  /// - Returns: `nil` for an item of which a plan has more to say, or may have.
  init?(_ archived: ArchivedItem) {
    guard let item = archived.item, !archived.isSecretOnly, !item.isTombstone,
      RestoreRules.reasonToLeaveOut(item, .strictest) == nil,
      let keyed = try? IncomingItem.Keyed(item, persistentReference: archived.persistentReference),
      keyed.incoming.item.isSynchronizable == item.isSynchronizable, let key = try? KeyHalf(keyed.primaryKey)
    else { return nil }
    self.key = key
    isSynchronizable = item.isSynchronizable
    holdsEnclaveKey = item.holdsEnclaveKey
  }
}

/// The bytes of a persistent reference, held in place where they are as many as one has: there is one for every item.
enum HeldReference: Sendable {
  case none
  /// Up to 20 bytes, the first ones lowest.
  case short(UInt64, UInt64, UInt32, count: UInt8)
  case long([UInt8])

  private static let longestShort = 20

  init(_ bytes: [UInt8]?) {
    guard let bytes else {
      self = .none
      return
    }
    guard bytes.count <= Self.longestShort else {
      self = .long(bytes)
      return
    }
    func word(_ range: Range<Int>) -> UInt64 {
      range.reversed().reduce(0) { $0 << 8 | ($1 < bytes.count ? UInt64(bytes[$1]) : 0) }
    }
    self = .short(word(0..<8), word(8..<16), UInt32(truncatingIfNeeded: word(16..<20)), count: UInt8(bytes.count))
  }

  var bytes: [UInt8]? {
    switch self {
    case .none: return nil
    case .long(let bytes): return bytes
    case .short(let first, let second, let third, let count):
      let words = [first, second, UInt64(third)]
      return (0..<Int(count)).map { UInt8(truncatingIfNeeded: words[$0 / 8] >> (8 * ($0 % 8))) }
    }
  }
}
