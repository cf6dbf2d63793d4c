package import KeyhaulKit

/// The result of checking a list of expectations (`plan-expectation-result/1`).
package struct ExpectationDocument {
  let check: ExpectationCheck
  let move: MoveDocument

  package init(_ check: ExpectationCheck, move: MoveDocument) {
    self.check = check
    self.move = move
  }

  package var json: JSONValue {
    let document: JSONValue = [
      "format": "plan-expectation-result/1", "source": move.source.json, "target": move.target.json,
      "expectations": .count(check.expectations.count), "checked": .count(check.checkedCount),
      "met": .count(check.metCount), "unchecked": .array(check.unchecked.map { .count($0) }),
      "settings": .array(
        check.scenarios.map { scenario in
          let cases = check.cases(in: scenario)
          return .object(
            Self.fields(scenario) + [("checked", .count(cases.count)), ("met", .count(cases.count(where: \.isMet)))])
        }),
      "misses": .array(
        check.cases.flatMap { checkedCase in
          checkedCase.unmet.map { Self.json($0, index: checkedCase.index, in: checkedCase.scenario) }
        }),
    ]
    return document.adding(move.findingFields + move.source.blindSpotFields)
  }

  private static func json(
    _ unmet: PlanExpectation.Unmet, index: Int, in scenario: ActualScenario
  ) -> JSONValue {
    let fields: [(String, JSONValue)] = [
      ("index", .count(index)), ("expected", json(unmet.expectation)), ("setting", .object(Self.fields(scenario))),
      ("item", unmet.item.map(json) ?? .null),
    ]
    return .object(fields + (unmet.encryptedCount > 0 ? [("sealed", .count(unmet.encryptedCount))] : []))
  }

  /// Returns an expectation in the form of the expectation list.
  private static func json(_ expectation: PlanExpectation) -> JSONValue {
    var fields = ExpectationMessages.fields(expectation.matcher).map { field in
      (field.name, JSONValue.string(field.pattern))
    }
    fields.append(("expect", .string(expectation.outcome.rawValue)))
    if let reason = expectation.reason { fields.append(("reason", .string(reason.rawValue))) }
    if let hasPassword = expectation.hasPassword { fields.append(("password", .boolean(hasPassword))) }
    if let onSameDevice = expectation.onSameDevice { fields.append(("same_device", .boolean(onSameDevice))) }
    return .object(fields)
  }

  /// Returns an item with its outcome. In a comparison, the object has no `change`, because there is no target.
  private static func json(_ item: ActualItem) -> JSONValue {
    var fields: [(String, JSONValue)] = [("index", .count(item.index))]
    fields += JSONValue.identity(item.identity)
    fields += [
      ("protection", .text(item.protection?.rawValue)), ("outcome", .string(item.restoreOutcome.fate.rawValue)),
    ]
    let optionalFields = [
      ("change", item.change?.rawValue), ("reason", item.restoreOutcome.reason?.rawValue), ("detail", item.detail),
    ]
    return .object(fields + optionalFields.compactMap { name, text in text.map { (name, .string($0)) } })
  }

  private static func fields(_ scenario: ActualScenario) -> [(String, JSONValue)] {
    [
      ("password", .boolean(scenario.hasPassword)),
      ("same_device", scenario.onSameDevice.map(JSONValue.boolean) ?? .null),
    ]
  }
}
