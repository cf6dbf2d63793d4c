import Backups
import Basics

/// An index of items by name, so that each expectation is compared only with the items that it may mean.
///
/// Items with equal names count as one until they must be told apart. Each matcher is looked up only once. Only
/// patterns with stars are compared with every name, and the number of these comparisons is limited.
struct ExpectedItems {
  /// The limit for comparisons of matchers with names, for all expectations together.
  static let maximumComparisonCount = 20_000_000
  /// The limit for items with an unexpected outcome, for all expectations together.
  static let maximumMissCount = 1_000_000

  /// The items that have equal names, by their positions.
  struct Group {
    let identity: ItemDescriptor
    var places: [Int]
  }

  private(set) var groups: [Group] = []
  /// The groups by each kind of name that an expectation can require, in the order of `asked`.
  private var byName: [[ByteName: [Int]]]
  /// The groups of encrypted items without a known name.
  private var nameless: [Int] = []
  private var known: [ItemMatcher: Meant] = [:]

  /// The groups that a matcher certainly means, and the groups that it may mean.
  struct Meant {
    var certain: [Int] = []
    var possible: [Int] = []
  }

  /// A name, compared by its bytes.
  private typealias ByteName = [UInt8]

  private static func asked(of matcher: ItemMatcher) -> [GlobPattern?] {
    [matcher.account, matcher.service, matcher.label, matcher.server, matcher.accessGroup]
  }

  private static func names(of identity: ItemDescriptor) -> [String?] {
    [identity.account, identity.service, identity.label, identity.server, identity.accessGroup]
  }

  /// - Parameter expectations: All expectations that will be looked up.
  /// - Throws: `.malformedExpectations` if they require more comparisons than the limit allows.
  init(_ items: [ExpectedItem], for expectations: [PlanExpectation]) throws(KeyhaulError) {
    byName = Array(repeating: [:], count: Self.asked(of: ItemMatcher()).count)
    var numbers: [ItemDescriptor: Int] = [:]
    for (place, item) in items.enumerated() {
      if let number = numbers[item.identity] {
        groups[number].places.append(place)
        continue
      }
      let number = groups.count
      numbers[item.identity] = number
      groups.append(Group(identity: item.identity, places: [place]))
      if item.identity.isEncrypted, item.identity.names.isEmpty { nameless.append(number) }
      for (position, name) in Self.names(of: item.identity).enumerated() {
        if let name { byName[position][Array(name.utf8), default: []].append(number) }
      }
    }
    var comparisonCount = 0
    for matcher in Set(expectations.map(\.matcher)) {
      comparisonCount += (candidates(for: matcher)?.count ?? groups.count) + nameless.count
      guard comparisonCount <= Self.maximumComparisonCount else { throw .tooManyComparisons }
    }
  }

  /// Returns the groups that have one of the names that a matcher spells in full; `nil` if it spells none.
  private func candidates(for matcher: ItemMatcher) -> [Int]? {
    var candidates: [Int]?
    for (position, pattern) in Self.asked(of: matcher).enumerated() {
      guard let text = pattern?.text else { continue }
      let found = byName[position][Array(text.utf8)] ?? []
      if found.count < candidates?.count ?? .max { candidates = found }
    }
    return candidates
  }

  /// Returns the groups that a matcher certainly means, and the groups that it may mean.
  mutating func meant(by matcher: ItemMatcher) -> Meant {
    if let meant = known[matcher] { return meant }
    var meant = Meant()
    if let candidates = candidates(for: matcher) {
      meant.certain = candidates.filter { matcher.matches(groups[$0].identity) }
    } else {
      meant.certain = groups.indices.filter { matcher.matches(groups[$0].identity) }
    }
    meant.possible = nameless.filter { matcher.couldMatch(groups[$0].identity) }
    known[matcher] = meant
    return meant
  }
}

/// The outcomes of the items in one restore.
struct ExpectedOutcomes {
  private let items: [ExpectedItem]
  /// The positions of each group's items, by outcome.
  private let places: [[RestoreOutcome: [Int]]]
  /// The number of items with an unexpected outcome that may still be reported.
  private var remainingMissCount: Int

  init(_ items: [ExpectedItem], in groups: [ExpectedItems.Group], missesAtMost count: Int) {
    self.items = items
    places = groups.map { group in Dictionary(grouping: group.places) { items[$0].restoreOutcome } }
    remainingMissCount = count
  }

  /// - Throws: `.malformedExpectations` if there are more items with an unexpected outcome than may be listed.
  mutating func misses(
    of expectation: PlanExpectation, among meant: ExpectedItems.Meant
  ) throws(KeyhaulError) -> [PlanExpectation.Miss] {
    func unmet(_ groups: [Int]) -> [[Int]] {
      groups.flatMap { places[$0].filter { !expectation.isMet(by: $0.key) }.values }
    }
    let found = unmet(meant.certain)
    remainingMissCount -= found.reduce(0) { $0 + $1.count } + 1
    guard remainingMissCount >= 0 else { throw .tooManyMisses }
    var misses = found.joined().sorted().map {
      PlanExpectation.Miss(expectation: expectation, item: items[$0], encryptedCount: 0, isAnyItemMeant: true)
    }
    let isMissing = meant.certain.isEmpty && expectation.fate != .absent
    let sealed = isMissing ? meant.possible.flatMap { places[$0].values } : unmet(meant.possible)
    let encryptedCount = sealed.reduce(0) { $0 + $1.count }
    if isMissing || encryptedCount > 0 && (expectation.fate == .absent || expectation.matcher.canMatchSeveral) {
      misses.append(
        PlanExpectation.Miss(
          expectation: expectation, item: nil, encryptedCount: encryptedCount, isAnyItemMeant: !meant.certain.isEmpty))
    }
    return misses
  }
}

extension KeyhaulError {
  fileprivate static var tooManyComparisons: KeyhaulError {
    tooMuchWork(
      "its stars ask for more than \(HumanReadable.grouped(ExpectedItems.maximumComparisonCount)) comparisons with items",
      advice: "fewer expectations with a star, or one more member without a star in each")
  }

  fileprivate static var tooManyMisses: KeyhaulError {
    tooMuchWork(
      "more than \(HumanReadable.grouped(ExpectedItems.maximumMissCount)) results are not as expected",
      advice: "fewer expectations that mean the same items")
  }

  private static func tooMuchWork(_ reason: String, advice: String) -> KeyhaulError {
    KeyhaulError(
      .malformedExpectations, .refused, "the list of expectations asks for too much work", reason: reason,
      advice: .words(advice))
  }
}
