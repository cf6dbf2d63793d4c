import Backups
import Basics

/// An index of items by name, so that each expectation is compared only with the items that may match.
///
/// Items with equal names form a group, which is compared only once. The matches of each matcher are cached. Only
/// patterns with stars are compared with every name, and the number of these comparisons is limited.
struct ActualItemIndex {
  /// The positions of all items with the same names.
  struct Group {
    let identity: ItemDescriptor
    var positions: [Int]
  }

  private(set) var groups: [Group] = []
  /// For each attribute, in the order of `patterns`, the indices of the groups by name.
  private var groupsByName: [[ByteName: [Int]]]
  /// The indices of the groups of encrypted items without a known name.
  private var namelessGroups: [Int] = []
  private var cachedMatches: [ItemMatcher: Matches] = [:]

  /// The indices of the groups that certainly match, and of the nameless groups that may match.
  struct Matches {
    var certain: [Int] = []
    var possible: [Int] = []
  }

  /// A name, compared by its bytes.
  private typealias ByteName = [UInt8]

  /// Returns the pattern of each attribute.
  private static func patterns(of matcher: ItemMatcher) -> [GlobPattern?] {
    [matcher.account, matcher.service, matcher.label, matcher.server, matcher.accessGroup]
  }

  /// Returns the names in the order of `patterns`.
  private static func names(of identity: ItemDescriptor) -> [String?] {
    [identity.account, identity.service, identity.label, identity.server, identity.accessGroup]
  }

  /// Creates an index.
  ///
  /// - Parameter expectations: All expectations that will be looked up.
  /// - Throws: `.malformedExpectations` if the expectations require more comparisons than the limit allows.
  init(_ items: [ActualItem], for expectations: [PlanExpectation]) throws(KeyhaulError) {
    groupsByName = Array(repeating: [:], count: Self.patterns(of: ItemMatcher()).count)
    var groupIndices: [ItemDescriptor: Int] = [:]
    for (position, item) in items.enumerated() {
      if let index = groupIndices[item.identity] {
        groups[index].positions.append(position)
      } else {
        groupIndices[item.identity] = groups.count
        addGroup(Group(identity: item.identity, positions: [position]))
      }
    }
    try checkComparisonCount(for: expectations)
  }

  private mutating func addGroup(_ group: Group) {
    let index = groups.count
    groups.append(group)
    if group.identity.isEncrypted, group.identity.names.isEmpty { namelessGroups.append(index) }
    for (attribute, name) in Self.names(of: group.identity).enumerated() {
      if let name { groupsByName[attribute][Array(name.utf8), default: []].append(index) }
    }
  }

  /// Checks that the expectations do not require more comparisons than the limit allows.
  private func checkComparisonCount(for expectations: [PlanExpectation]) throws(KeyhaulError) {
    var comparisonCount = 0
    for matcher in Set(expectations.map(\.matcher)) {
      comparisonCount += (candidates(for: matcher)?.count ?? groups.count) + namelessGroups.count
      guard comparisonCount <= ExpectationCheck.maximumComparisonCount else { throw .tooManyComparisons }
    }
  }

  /// Returns the indices of the smallest set of groups that share an exact (star-free) name with the matcher, or `nil` if
  /// the matcher has no exact name.
  private func candidates(for matcher: ItemMatcher) -> [Int]? {
    var candidates: [Int]?
    for (attribute, pattern) in Self.patterns(of: matcher).enumerated() {
      // A pattern with a star has no text.
      guard let name = pattern?.text else { continue }
      let namedGroups = groupsByName[attribute][Array(name.utf8)] ?? []
      if namedGroups.count < candidates?.count ?? .max { candidates = namedGroups }
    }
    return candidates
  }

  /// Returns the indices of the groups that match.
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
