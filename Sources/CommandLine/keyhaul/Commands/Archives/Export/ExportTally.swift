import KeyhaulKit
import Reports

/// The items that an export went through, counted as they went by.
struct ExportTally {
  /// How many there were, readable or not.
  private(set) var count = 0
  /// Those that can be read, by their kind.
  private(set) var readable: [ItemKind: Int] = [:]
  /// Those that cannot, for each reason.
  private(set) var unreadable: [Reason: Int] = [:]
  /// Why items cannot be read, in the order in which each reason was met first.
  private(set) var reasons: [Reason] = []
  /// How many have a secret that a document would show.
  private(set) var revealableCount = 0
  /// Those that ask for their owner, by their kind.
  private var guarded: [ItemKind: Int] = [:]
  /// Whether an access control keeps a secret back: a dump has it in clear all the same.
  private let keepsGuarded: Bool

  init(keepingGuarded keepsGuarded: Bool) { self.keepsGuarded = keepsGuarded }

  mutating func take(_ entry: ItemDocument.Entry) {
    count += 1
    switch entry.content {
    case .readable(let item):
      readable[item.kind, default: 0] += 1
      if isGuarded(item) {
        guarded[item.kind, default: 0] += 1
      } else if item.secret != nil {
        revealableCount += 1
      }
    case .unreadable(let reason, _):
      let reason = reason ?? .malformed
      if unreadable[reason] == nil { reasons.append(reason) }
      unreadable[reason, default: 0] += 1
    }
  }

  /// Whether an item's secret stays where it is.
  func isGuarded(_ item: KeychainItem) -> Bool { keepsGuarded && item.asksForOwner }

  func guardedCount(of kinds: [ItemKind]) -> Int { kinds.reduce(0) { $0 + (guarded[$1] ?? 0) } }

  var unreadableCount: Int { unreadable.values.reduce(0, +) }
}
