import Backups
import Basics

/// The outcomes of the items in one restore.
struct ActualOutcomes {
  private let items: [ActualItem]
  /// For each group of an `ActualItemIndex`, the positions of its items by outcome.
  private let positionsByOutcome: [[RestoreOutcome: [Int]]]
  /// The number of unmet results that may still be returned.
  private var remainingUnmetCount: Int

  init(_ items: [ActualItem], in groups: [ActualItemIndex.Group], unmetAtMost count: Int) {
    self.items = items
    positionsByOutcome = groups.map { group in Dictionary(grouping: group.positions) { items[$0].restoreOutcome } }
    remainingUnmetCount = count
  }

  /// Returns one result for each item that certainly matches and has an unexpected outcome. A result without an item
  /// follows in two cases: if an expected item is missing, or if encrypted items that may match have an unexpected outcome.
  ///
  /// - Throws: `.malformedExpectations` if there are more items with an unexpected outcome than may be listed.
  mutating func unmet(
    of expectation: PlanExpectation, among matches: ActualItemIndex.Matches
  ) throws(KeyhaulError) -> [PlanExpectation.Unmet] {
    let unexpectedLists = unexpectedPositions(in: matches.certain, for: expectation)
    // One is reserved for the result without an item, even if there is none.
    remainingUnmetCount -= Self.count(unexpectedLists) + 1
    guard remainingUnmetCount >= 0 else { throw .tooManyUnmet }
    let unmetOfItems = unexpectedLists.joined().sorted().map {
      PlanExpectation.Unmet(expectation: expectation, item: items[$0], encryptedCount: 0, hasCertainMatch: true)
    }
    let isMissing = matches.certain.isEmpty && expectation.outcome != .absent
    // If the item is missing, every encrypted item that may match counts. Otherwise, only those with an unexpected outcome.
    let encryptedCount = Self.count(
      isMissing ? allPositions(in: matches.possible) : unexpectedPositions(in: matches.possible, for: expectation))
    // Encrypted items matter if the expectation says that no item matches, or if its matcher can match several items.
    // Otherwise, the items that certainly match decide.
    let concernsEncryptedItems = expectation.outcome == .absent || expectation.matcher.canMatchSeveral
    let isUnmetByEncryptedItems = concernsEncryptedItems && encryptedCount > 0
    guard isMissing || isUnmetByEncryptedItems else { return unmetOfItems }
    let unmetWithoutItem = PlanExpectation.Unmet(
      expectation: expectation, item: nil, encryptedCount: encryptedCount, hasCertainMatch: !matches.certain.isEmpty)
    return unmetOfItems + [unmetWithoutItem]
  }

  /// Returns the positions of the groups' items, as one list for each group and outcome.
  private func allPositions(in groups: [Int]) -> [[Int]] { groups.flatMap { positionsByOutcome[$0].values } }

  /// Returns the positions of the groups' items that do not meet an expectation.
  private func unexpectedPositions(in groups: [Int], for expectation: PlanExpectation) -> [[Int]] {
    groups.flatMap { group in positionsByOutcome[group].filter { !expectation.isMet(by: $0.key) }.values }
  }

  private static func count(_ lists: [[Int]]) -> Int { lists.reduce(0) { $0 + $1.count } }
}
