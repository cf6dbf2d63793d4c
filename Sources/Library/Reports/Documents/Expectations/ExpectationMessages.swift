package import KeyhaulKit

/// Messages about expectations, one line each. They contain untrusted names, which must be escaped.
package struct ExpectationMessages: Sendable {
  let check: ExpectationCheck
  let source: PlanDocument.Source

  /// Creates the messages about a check.
  ///
  /// - Parameters:
  ///   - check: The result of checking the expectations.
  ///   - source: The backup, or the device of a simulated backup.
  package init(_ check: ExpectationCheck, source: PlanDocument.Source) {
    self.check = check
    self.source = source
  }

  /// Whether the messages name the restore, because several restores were checked.
  private var isComparison: Bool { check.scenarios.count > 1 }

  private func scenarioPrefix(_ scenario: ActualScenario) -> String {
    isComparison ? "\(Self.description(of: scenario)): " : ""
  }

  /// Returns the line of an unmet expectation: `missed: generic password "chat.example · push token": expected
  /// migrates, the plan says stays-behind (device-bound)`.
  package func line(of unmet: PlanExpectation.Unmet, in scenario: ActualScenario) -> String {
    "missed: \(scenarioPrefix(scenario))\(sentence(of: unmet))"
  }

  /// Returns the line of a met expectation: "met: service chat.example: migrates (1 item)".
  package func line(ofMet checkedCase: ExpectationCheck.Case) -> String {
    "met: \(scenarioPrefix(checkedCase.scenario))\(Self.conditions(of: checkedCase.expectation.matcher)): "
      + "\(checkedCase.expectation.outcome.rawValue) (\(HumanReadable.count(checkedCase.matchedCount, "item")))"
  }

  /// The result in one line: "4 of 5 expectations met." It also states the number of unchecked expectations.
  package var verdict: String {
    let met =
      "\(HumanReadable.grouped(check.metCount)) of \(HumanReadable.count(check.checkedCount, "expectation")) met"
    let uncheckedCount = check.unchecked.count
    guard uncheckedCount > 0 else { return met + "." }
    let uncheckedClause =
      uncheckedCount == 1
      ? "1 more is for another restore and was"
      : "\(HumanReadable.grouped(uncheckedCount)) more are for other restores and were"
    return "\(met); \(uncheckedClause) not checked (\(SuggestedCommands.comparing) checks all four restores)."
  }

  /// Returns the text of `line(of:in:)` without the word "missed" and without the restore.
  func sentence(of unmet: PlanExpectation.Unmet) -> String {
    let expectation = unmet.expectation
    var expected = "expected \(expectation.outcome.rawValue)"
    if let reason = expectation.reason { expected += " (\(reason.rawValue))" }
    guard let item = unmet.item else {
      return "\(Self.conditions(of: expectation.matcher)): \(expected), \(reasonWithoutItem(unmet))"
    }
    let reasons = [item.restoreOutcome.reason?.rawValue ?? item.change?.rawValue, item.detail].compactMap(\.self)
    let brackets = reasons.isEmpty ? "" : " (\(reasons.joined(separator: ": ")))"
    return "\(Self.name(of: item)): \(expected), the \(isComparison ? "comparison" : "plan") says "
      + "\(item.restoreOutcome.fate.rawValue)\(brackets)"
  }

  /// Returns the reason why an expectation is unmet, if no single item is the cause.
  private func reasonWithoutItem(_ unmet: PlanExpectation.Unmet) -> String {
    let encryptedCount = unmet.encryptedCount
    let encryptedClause =
      "\(HumanReadable.count(encryptedCount, "encrypted item")) in the plan "
      + "\(encryptedCount == 1 ? "has" : "have") no name"
    if encryptedCount > 0, unmet.expectation.outcome == .absent || unmet.hasCertainMatch {
      return "which cannot be known: \(encryptedClause)"
    }
    var hint = ""
    if encryptedCount > 0 {
      hint = " (\(encryptedClause))"
    } else if source.kind == .archive, unmet.expectation.outcome == .staysBehind {
      hint = " (a plan made from a backup does not list items that no backup contains)"
    }
    return "but no item matches\(hint)"
  }

  /// Returns the description of a restore: "with a password, to another device".
  package static func description(of scenario: ActualScenario) -> String {
    let device =
      switch scenario.onSameDevice {
      case true?: "to the same device"
      case false?: "to another device"
      case nil: "to a device that may be the same or another one"
      }
    return "\(scenario.hasPassword ? "with" : "without") a password, \(device)"
  }

  /// Returns the conditions of a matcher as one text: "kind key, label ssh*".
  static func conditions(of matcher: ItemMatcher) -> String {
    fields(matcher).map { "\($0.name) \($0.pattern)" }.joined(separator: ", ")
  }

  /// Returns the conditions of a matcher, with their names in the expectation list.
  static func fields(_ matcher: ItemMatcher) -> [(name: String, pattern: String)] {
    let patterns = [
      ("label", matcher.label), ("account", matcher.account), ("service", matcher.service),
      ("server", matcher.server), ("access_group", matcher.accessGroup),
    ]
    var fields: [(name: String, pattern: String)] = []
    if let kind = matcher.kind { fields.append((name: "kind", pattern: kind.reportName)) }
    for (name, pattern) in patterns {
      if let pattern { fields.append((name: name, pattern: pattern.source)) }
    }
    return fields
  }

  private static func name(of item: ActualItem) -> String {
    let names = item.identity.names
    let state = item.identity.isEncrypted ? "encrypted" : "unnamed"
    let name = names.isEmpty ? "(\(state), item \(item.index))" : names.joined(separator: " · ")
    return "\(item.identity.kind.noun) \"\(name)\""
  }
}

extension RestoreOutcome {
  /// The outcome without its reason.
  var fate: ItemFate {
    switch self {
    case .arrives: .migrates
    case .staysBehind: .staysBehind
    case .unreadable: .unreadable
    }
  }
}
