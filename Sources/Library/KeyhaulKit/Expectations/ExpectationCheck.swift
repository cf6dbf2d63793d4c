import Backups
import Basics

/// The result of comparing a list of expectations with one restore or with all four.
package struct ExpectationCheck: Sendable {
  /// The limit for comparisons of matchers with names, for all expectations together.
  static let maximumComparisonCount = 20_000_000
  /// The limit for items that do not meet an expectation, for all expectations together.
  static let maximumUnmetCount = 1_000_000

  /// An expectation, compared with one restore.
  package struct Case: Sendable {
    /// The expectation's index in the list, from 0.
    package let index: Int
    /// The expectation.
    package let expectation: PlanExpectation
    /// The restore.
    package let scenario: ActualScenario
    /// The number of items that certainly match.
    package let matchedCount: Int
    /// The unexpected outcomes.
    package let unmet: [PlanExpectation.Unmet]

    /// Whether the expectation is met.
    package var isMet: Bool { unmet.isEmpty }
  }

  /// The expectations in the order of the list.
  package let expectations: [PlanExpectation]
  /// The restores that were compared: the restore of a plan, or all four.
  package let scenarios: [ActualScenario]
  /// Each expectation with each restore that it applies to, by restore and then in the order of the list.
  package let cases: [Case]

  /// Compares a list with a plan. Expectations for other scenarios are not checked.
  ///
  /// - Parameters:
  ///   - expectations: The list.
  ///   - plan: The plan of a restore.
  ///   - scenario: The known properties of that restore.
  /// - Throws: `.malformedExpectations` if the list requires more work than the limit allows.
  package init(
    _ expectations: [PlanExpectation], _ plan: MigrationPlan, in scenario: ActualScenario
  ) throws(KeyhaulError) {
    try self.init(expectations, in: [scenario]) { _ in plan.decisions.map { ActualItem($0) } }
  }

  /// Compares a list with the four restores. Each expectation is checked in every restore that it applies to.
  ///
  /// - Throws: `.malformedExpectations` if the list requires more work than the limit allows.
  package init(_ expectations: [PlanExpectation], _ comparison: MigrationComparison) throws(KeyhaulError) {
    try self.init(expectations, in: RestoreScenario.allCases.map(ActualScenario.init)) { scenario in
      let restore = RestoreScenario(hasPassword: scenario.hasPassword, onSameDevice: scenario.onSameDevice == true)
      return comparison.items.map { ActualItem($0, in: restore) }
    }
  }

  private init(
    _ expectations: [PlanExpectation], in scenarios: [ActualScenario],
    items itemsInScenario: (ActualScenario) -> [ActualItem]
  ) throws(KeyhaulError) {
    self.expectations = expectations
    self.scenarios = scenarios
    var cases: [Case] = []
    // The items have equal names in every restore, so all restores share one index.
    var sharedIndex: ActualItemIndex?
    for scenario in scenarios {
      let items = itemsInScenario(scenario)
      var itemIndex = if let sharedIndex { sharedIndex } else { try ActualItemIndex(items, for: expectations) }
      let unmetCount = cases.reduce(0) { $0 + $1.unmet.count }
      var outcomes = ActualOutcomes(
        items, in: itemIndex.groups, unmetAtMost: Self.maximumUnmetCount - unmetCount)
      for (index, expectation) in expectations.enumerated() where expectation.applies(to: scenario) {
        let matches = itemIndex.matches(for: expectation.matcher)
        let matchedCount = matches.certain.reduce(0) { $0 + itemIndex.groups[$1].positions.count }
        let unmet = try outcomes.unmet(of: expectation, among: matches)
        cases.append(
          Case(
            index: index, expectation: expectation, scenario: scenario, matchedCount: matchedCount, unmet: unmet))
      }
      // Keeps the matches that were cached for this restore.
      sharedIndex = itemIndex
    }
    self.cases = cases
  }

  /// Returns the cases of one restore.
  package func cases(in scenario: ActualScenario) -> [Case] { cases.filter { $0.scenario == scenario } }

  /// The indexes of the expectations that apply to none of the restores.
  package var unchecked: [Int] {
    let checked = Set(cases.map(\.index))
    return expectations.indices.filter { !checked.contains($0) }
  }

  /// The number of expectations that were checked.
  package var checkedCount: Int { Set(cases.map(\.index)).count }

  /// The number of expectations that are met in every restore that they apply to.
  package var metCount: Int { checkedCount - Set(cases.filter { !$0.isMet }.map(\.index)).count }

  /// Whether every checked expectation is met. `false` if none was checked.
  package var isMet: Bool { !cases.isEmpty && cases.allSatisfy(\.isMet) }
}

extension ActualScenario {
  /// Creates the scenario of one of the four restores.
  package init(_ scenario: RestoreScenario) {
    self.init(hasPassword: scenario.hasPassword, onSameDevice: scenario.onSameDevice)
  }
}

extension KeyhaulError {
  static var tooManyComparisons: KeyhaulError {
    tooMuchWork(
      "its stars ask for more than \(HumanReadable.grouped(ExpectationCheck.maximumComparisonCount)) comparisons with "
        + "items",
      advice: "fewer expectations with a star, or one more member without a star in each")
  }

  static var tooManyUnmet: KeyhaulError {
    tooMuchWork(
      "more than \(HumanReadable.grouped(ExpectationCheck.maximumUnmetCount)) results are not as expected",
      advice: "fewer expectations that mean the same items")
  }

  private static func tooMuchWork(_ reason: String, advice: String) -> KeyhaulError {
    KeyhaulError(
      .malformedExpectations, .refused, "the list of expectations asks for too much work", reason: reason,
      advice: .words(advice))
  }
}
