import Backups
import Basics

/// An index of items by name, so that each expectation is compared only with the items that may match.
///
/// Items with equal names form a group, which is compared only once. The matches of each matcher are cached. Only
/// patterns with stars are compared with every name, and the number of these comparisons is limited.
struct ActualItemIndex {
  /// The limit for comparisons of matchers with names, for all expectations together.
  static let maximumComparisonCount = 20_000_000
  /// The limit for items with an unexpected outcome, for all expectations together.
  static let maximumUnmetCount = 1_000_000

  /// The positions of all items with the same names.
  struct Group {
    let identity: ItemDescriptor
    var positions: [Int]
  }

  private(set) var groups: [Group] = []
  /// The groups by name, with one dictionary for each name that an expectation can require, in the order of `patterns`.
  private var groupsByName: [[ByteName: [Int]]]
  /// The groups of encrypted items without a known name.
  private var namelessGroups: [Int] = []
  private var cachedMatches: [ItemMatcher: Matches] = [:]

  /// The groups that certainly match, and the nameless groups that may match.
  struct Matches {
    var certain: [Int] = []
    var possible: [Int] = []
  }

  /// A name, compared by its bytes.
  private typealias ByteName = [UInt8]

  private static func patterns(of matcher: ItemMatcher) -> [GlobPattern?] {
    [matcher.account, matcher.service, matcher.label, matcher.server, matcher.accessGroup]
  }

  /// Returns the names in the order of `patterns`.
  private static func names(of identity: ItemDescriptor) -> [String?] {
    [identity.account, identity.service, identity.label, identity.server, identity.accessGroup]
  }

  /// - Parameter expectations: All expectations that will be looked up.
  /// - Throws: `.malformedExpectations` if they require more comparisons than the limit allows.
  init(_ items: [ActualItem], for expectations: [PlanExpectation]) throws(KeyhaulError) {
    groupsByName = Array(repeating: [:], count: Self.patterns(of: ItemMatcher()).count)
    var groupIndexes: [ItemDescriptor: Int] = [:]
    for (position, item) in items.enumerated() {
      if let index = groupIndexes[item.identity] {
        groups[index].positions.append(position)
        continue
      }
      let index = groups.count
      groupIndexes[item.identity] = index
      groups.append(Group(identity: item.identity, positions: [position]))
      if item.identity.isEncrypted, item.identity.names.isEmpty { namelessGroups.append(index) }
      for (attribute, name) in Self.names(of: item.identity).enumerated() {
        if let name { groupsByName[attribute][Array(name.utf8), default: []].append(index) }
      }
    }
    var comparisonCount = 0
    for matcher in Set(expectations.map(\.matcher)) {
      comparisonCount += (candidates(for: matcher)?.count ?? groups.count) + namelessGroups.count
      guard comparisonCount <= Self.maximumComparisonCount else { throw .tooManyComparisons }
    }
  }

  /// Returns the groups with the rarest name that a matcher requires without a star; `nil` if all its patterns have
  /// stars.
  private func candidates(for matcher: ItemMatcher) -> [Int]? {
    var candidates: [Int]?
    for (attribute, pattern) in Self.patterns(of: matcher).enumerated() {
      guard let name = pattern?.text else { continue }
      let namedGroups = groupsByName[attribute][Array(name.utf8)] ?? []
      if namedGroups.count < candidates?.count ?? .max { candidates = namedGroups }
    }
    return candidates
  }

  /// Returns the groups that match.
  mutating func matches(for matcher: ItemMatcher) -> Matches {
    if let matches = cachedMatches[matcher] { return matches }
    let candidates = candidates(for: matcher) ?? Array(groups.indices)
    let matches = Matches(
      certain: candidates.filter { matcher.matches(groups[$0].identity) },
      possible: namelessGroups.filter { matcher.couldMatch(groups[$0].identity) })
    cachedMatches[matcher] = matches
    return matches
  }
}

/// The outcomes of the items in one restore.
struct ActualOutcomes {
  private let items: [ActualItem]
  /// The positions of each group's items, by outcome.
  private let positions: [[RestoreOutcome: [Int]]]
  /// The number of items with an unexpected outcome that may still be reported.
  private var remainingUnmetCount: Int

  init(_ items: [ActualItem], in groups: [ActualItemIndex.Group], unmetAtMost count: Int) {
    self.items = items
    positions = groups.map { group in Dictionary(grouping: group.positions) { items[$0].restoreOutcome } }
    remainingUnmetCount = count
  }

  /// Returns the unexpected outcomes.
  ///
  /// - Throws: `.malformedExpectations` if there are more items with an unexpected outcome than may be listed.
  mutating func unmet(
    of expectation: PlanExpectation, among matches: ActualItemIndex.Matches
  ) throws(KeyhaulError) -> [PlanExpectation.Unmet] {
    func unexpected(in groups: [Int]) -> [[Int]] {
      groups.flatMap { positions[$0].filter { !expectation.isMet(by: $0.key) }.values }
    }
    let unexpectedItems = unexpected(in: matches.certain)
    remainingUnmetCount -= unexpectedItems.reduce(0) { $0 + $1.count } + 1
    guard remainingUnmetCount >= 0 else { throw .tooManyUnmet }
    var unmet = unexpectedItems.joined().sorted().map {
      PlanExpectation.Unmet(expectation: expectation, item: items[$0], encryptedCount: 0, hasCertainMatch: true)
    }
    let isMissing = matches.certain.isEmpty && expectation.fate != .absent
    let encryptedItems =
      isMissing ? matches.possible.flatMap { positions[$0].values } : unexpected(in: matches.possible)
    let encryptedCount = encryptedItems.reduce(0) { $0 + $1.count }
    if isMissing || encryptedCount > 0 && (expectation.fate == .absent || expectation.matcher.canMatchSeveral) {
      unmet.append(
        PlanExpectation.Unmet(
          expectation: expectation, item: nil, encryptedCount: encryptedCount,
          hasCertainMatch: !matches.certain.isEmpty))
    }
    return unmet
  }
}

extension KeyhaulError {
  fileprivate static var tooManyComparisons: KeyhaulError {
    tooMuchWork(
      "its stars ask for more than \(HumanReadable.grouped(ActualItemIndex.maximumComparisonCount)) comparisons with items",
      advice: "fewer expectations with a star, or one more member without a star in each")
  }

  fileprivate static var tooManyUnmet: KeyhaulError {
    tooMuchWork(
      "more than \(HumanReadable.grouped(ActualItemIndex.maximumUnmetCount)) results are not as expected",
      advice: "fewer expectations that mean the same items")
  }

  private static func tooMuchWork(_ reason: String, advice: String) -> KeyhaulError {
    KeyhaulError(
      .malformedExpectations, .refused, "the list of expectations asks for too much work", reason: reason,
      advice: .words(advice))
  }
}
