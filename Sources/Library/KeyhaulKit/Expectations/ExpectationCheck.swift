import Backups
import Basics

/// What a list of expectations comes to, in one restore or in all four.
package struct ExpectationCheck: Sendable {
  /// One expectation, held against one restore.
  package struct Case: Sendable {
    /// Its place in the list, from 0.
    package let index: Int
    /// The expectation.
    package let expectation: PlanExpectation
    /// The restore.
    package let scenario: ExpectedScenario
    /// How many items are known to be meant.
    package let matchedCount: Int
    /// What is not as expected.
    package let misses: [PlanExpectation.Miss]

    /// Whether everything is as expected.
    package var isMet: Bool { misses.isEmpty }
  }

  /// The list, in its order.
  package let expectations: [PlanExpectation]
  /// The restores that it was held against: that of a plan, or all four.
  package let scenarios: [ExpectedScenario]
  /// Each expectation in each restore that it holds for: restore by restore, in the order of the list.
  package let cases: [Case]

  /// Holds a list against a plan. What is for another setting than the plan's is not checked.
  ///
  /// - Parameters:
  ///   - expectations: The list.
  ///   - plan: What a restore would do.
  ///   - scenario: What is known of that restore.
  /// - Throws: `.malformedExpectations` if the list requires more work than the limit allows.
  package init(
    _ expectations: [PlanExpectation], _ plan: MigrationPlan, in scenario: ExpectedScenario
  ) throws(KeyhaulError) {
    try self.init(expectations, in: [scenario]) { _ in plan.decisions.map { ExpectedItem($0) } }
  }

  /// Holds a list against the four restores. Every expectation is checked in each that it holds for.
  ///
  /// - Throws: `.malformedExpectations` if the list requires more work than the limit allows.
  package init(_ expectations: [PlanExpectation], _ comparison: MigrationComparison) throws(KeyhaulError) {
    try self.init(expectations, in: RestoreScenario.allCases.map(ExpectedScenario.init)) { scenario in
      let scenario = RestoreScenario(hasPassword: scenario.hasPassword, onSameDevice: scenario.onSameDevice == true)
      return comparison.items.map { ExpectedItem($0, in: scenario) }
    }
  }

  private init(
    _ expectations: [PlanExpectation], in scenarios: [ExpectedScenario], items: (ExpectedScenario) -> [ExpectedItem]
  ) throws(KeyhaulError) {
    self.expectations = expectations
    self.scenarios = scenarios
    var cases: [Case] = []
    // The items have equal names in every restore.
    var named: ExpectedItems?
    for scenario in scenarios {
      let items = items(scenario)
      var known: ExpectedItems
      if let named { known = named } else { known = try ExpectedItems(items, for: expectations) }
      var outcomes = ExpectedOutcomes(
        items, in: known.groups, missesAtMost: ExpectedItems.maximumMissCount - cases.reduce(0) { $0 + $1.misses.count }
      )
      for (index, expectation) in expectations.enumerated() where expectation.holds(for: scenario) {
        let meant = known.meant(by: expectation.matcher)
        cases.append(
          Case(
            index: index, expectation: expectation, scenario: scenario,
            matchedCount: meant.certain.reduce(0) { $0 + known.groups[$1].places.count },
            misses: try outcomes.misses(of: expectation, among: meant)))
      }
      named = known
    }
    self.cases = cases
  }

  /// The cases of one restore.
  package func cases(in scenario: ExpectedScenario) -> [Case] { cases.filter { $0.scenario == scenario } }

  /// The expectations that hold for none of the restores, by their places in the list.
  package var unchecked: [Int] {
    let checked = Set(cases.map(\.index))
    return expectations.indices.filter { !checked.contains($0) }
  }

  /// How many expectations were held against a restore.
  package var checkedCount: Int { Set(cases.map(\.index)).count }

  /// How many of those are met in every restore that they hold for.
  package var metCount: Int { checkedCount - Set(cases.filter { !$0.isMet }.map(\.index)).count }

  /// Whether nothing that was checked is missed; nothing checked is nothing met.
  package var isMet: Bool { !cases.isEmpty && cases.allSatisfy(\.isMet) }
}

extension ExpectedScenario {
  /// One of the four.
  package init(_ scenario: RestoreScenario) {
    self.init(hasPassword: scenario.hasPassword, onSameDevice: scenario.onSameDevice)
  }
}
