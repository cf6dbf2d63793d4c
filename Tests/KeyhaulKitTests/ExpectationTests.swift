import Backups
import KeychainFormats
import KeychainRules
import Testing

@testable import KeyhaulKit

private func decision(
  _ index: Int, _ identity: ItemDescriptor, _ outcome: MigrationPlan.Outcome
) -> MigrationPlan.Decision {
  MigrationPlan.Decision(index: index, identity: identity, protection: .whenUnlocked, outcome: outcome, detail: nil)
}

private func descriptor(
  _ account: String, service: String = "chat.example", label: String? = nil, kind: ItemKind = .genericPassword
) -> ItemDescriptor {
  var identity = ItemDescriptor(undecryptable: kind, accessGroup: "ABCDE12345.org.example.chat")
  (identity.account, identity.service, identity.label) = (account, service, label)
  return identity
}

private let plan = MigrationPlan(
  decisions: [
    decision(0, descriptor("session token", label: "Session"), .migrates(.new)),
    decision(1, descriptor("push token"), .staysBehind(.deviceBound)),
    decision(2, descriptor("anna", service: "mail.example"), .migrates(.replaces)),
    decision(3, descriptor("anna", service: "bank.example"), .staysBehind(.needsAuthentication)),
    decision(4, ItemDescriptor(undecryptable: .key), .staysBehind(.deviceBound)),
    decision(5, descriptor("broken"), .unreadable(.tagMismatch)),
  ], removed: [], policy: .replace, isSameDevice: false, imports: [], removedRowCount: 0)

@Suite("Looking up items of a plan by name")
struct PlanLookupTests {
  @Test("A lookup by account, service or label returns the outcome")
  func outcome() {
    #expect(plan["session token"] == .migrates)
    #expect(plan["Session"] == .migrates)
    #expect(plan["mail.example"] == .migrates)
    #expect(plan["push token"] == .staysBehind)
    #expect(plan["broken"] == .unreadable)
    #expect(plan["nobody"] == .absent)
    #expect(plan["ession"] == .absent)
  }

  @Test("A lookup of several items returns their common outcome, or ambiguous")
  func ambiguity() {
    #expect(plan["anna"] == .ambiguous)
    #expect(plan["chat.example"] == .ambiguous)
    #expect(plan[ItemMatcher(account: GlobPattern("anna"), service: GlobPattern("mail.example"))] == .migrates)
    #expect(plan[ItemMatcher(account: GlobPattern("* token"))] == .ambiguous)
    #expect(plan[ItemMatcher(kind: .key)] == .staysBehind)
    #expect(plan[ItemMatcher(kind: .key, label: GlobPattern("*"))] == .absent)
  }

  @Test("A lookup returns a reason only for a single item")
  func reason() {
    #expect(plan.reason(for: "push token") == .deviceBound)
    #expect(plan.reason(for: "session token") == nil && plan.reason(for: "anna") == nil)
  }

  @Test("A redacted plan has counts and reasons but no names")
  func redacted() {
    let redactedPlan = plan.redacted
    #expect(redactedPlan.summary == plan.summary)
    #expect(redactedPlan.decisions.map(\.outcome) == plan.decisions.map(\.outcome))
    #expect(redactedPlan.decisions[1].identity.label == "item-0001")
    for decision in redactedPlan.decisions {
      let identity = decision.identity
      #expect(identity.account == nil && identity.service == nil && identity.accessGroup == nil)
      #expect(identity.kind == plan.decisions[decision.index].identity.kind)
    }
  }
}

private func parseExpectations(_ expectations: String) throws -> [PlanExpectation] {
  let text = #"{"format": "plan-expectations/1", "expectations": [\#(expectations)]}"#
  return try PlanExpectations(parsing: Array(text.utf8)).expectations
}

private let anotherDevice = ActualScenario(hasPassword: true, onSameDevice: false)

@Suite("Expectations about a plan")
struct ExpectationTests {
  private func unmet(_ expectation: String) throws -> [PlanExpectation.Unmet] {
    try ExpectationCheck(try parseExpectations(expectation), plan, in: anotherDevice).cases.flatMap(\.unmet)
  }

  @Test(
    "An expectation is met, or each item with a different outcome is reported",
    arguments: [
      (#"{"account": "session token", "expect": "migrates"}"#, []),
      (#"{"account": "session *", "service": "chat.example", "kind": "generic-password", "expect": "migrates"}"#, []),
      (#"{"account": "push token", "expect": "migrates"}"#, [1]),
      (#"{"account": "push token", "expect": "stays-behind"}"#, []),
      (#"{"account": "push token", "expect": "stays-behind", "reason": "device-bound"}"#, []),
      (#"{"account": "push token", "expect": "stays-behind", "reason": "passcode-only"}"#, [1]),
      (#"{"account": "anna", "expect": "migrates"}"#, [3]),
      (#"{"account": "*", "expect": "stays-behind"}"#, [0, 2, 5]),
      (#"{"account": "broken", "expect": "stays-behind"}"#, [5]), (#"{"account": "broken", "expect": "absent"}"#, [5]),
      (#"{"account": "nobody", "expect": "absent"}"#, []), (#"{"account": "nobody", "expect": "migrates"}"#, [nil]),
      (#"{"account": "nobody", "expect": "stays-behind"}"#, [nil]),
      (#"{"account": "anna", "expect": "absent"}"#, [2, 3]),
      (#"{"label": "Session", "expect": "migrates"}"#, []), (#"{"server": "*", "expect": "absent"}"#, []),
      // A key has no account and no service, but an encrypted key may have this label or group.
      (#"{"access_group": "*.org.example.chat", "kind": "key", "expect": "absent"}"#, [nil]),
      (#"{"label": "nobody's", "expect": "absent"}"#, [nil]),
      (#"{"label": "S*", "expect": "migrates"}"#, [nil]), (#"{"label": "S*", "expect": "stays-behind"}"#, [0]),
      (#"{"label": "*", "kind": "key", "expect": "stays-behind", "reason": "device-bound"}"#, [nil]),
    ] as [(String, [Int?])])
  func unmet(_ expectation: String, _ expected: [Int?]) throws {
    #expect(try unmet(expectation).map { $0.item?.index } == expected)
  }

  @Test("An unmet expectation states how many encrypted items may match")
  func encryptedItems() throws {
    func counts(_ expectation: String) throws -> [Int] { try unmet(expectation).map(\.encryptedCount) }
    #expect(try counts(#"{"label": "nobody's", "expect": "absent"}"#) == [1])
    #expect(try counts(#"{"label": "nobody's", "expect": "migrates"}"#) == [1])
    #expect(try counts(#"{"account": "nobody", "expect": "migrates"}"#) == [0])
    #expect(try counts(#"{"account": "push token", "expect": "migrates"}"#) == [0])
  }

  @Test(
    "An expectation is checked only for the restores that it applies to",
    arguments: [
      (#""password": true"#, [true]), (#""password": false"#, []), (#""same_device": false"#, [true]),
      (#""same_device": true"#, []), (#""password": true, "same_device": false"#, [true]),
      (#""password": true, "same_device": true"#, []), (#""reason": "device-bound""#, [true]),
    ] as [(String, [Bool])])
  func scenario(_ members: String, _ expected: [Bool]) throws {
    let list = try parseExpectations(#"{"account": "push token", "expect": "stays-behind", \#(members)}"#)
    let check = try ExpectationCheck(list, plan, in: anotherDevice)
    #expect(check.cases.map(\.isMet) == expected)
    #expect(check.unchecked == (expected.isEmpty ? [0] : []))
    // A list without applicable expectations is not met.
    #expect(check.isMet == !expected.isEmpty)
  }

  @Test("Wildcard expectations with too many comparisons are refused, but the same number of exact names is checked")
  func tooManyComparisons() throws {
    let items = (0..<5_000).map { number in
      MigrationComparison.Item(
        index: number, identity: descriptor("item \(number)"), protection: .afterFirstUnlock,
        allOutcomes: restoreOutcomes(.afterFirstUnlock))
    }
    let many = MigrationComparison(items, current: RestoreScenario(hasPassword: true, onSameDevice: false))
    // With stars, 4,001 expectations and 5,000 items require 20,005,000 comparisons, which is more than the limit.
    func list(_ suffix: String) -> [PlanExpectation] {
      (0..<4_001).map { number in
        PlanExpectation(
          ItemMatcher(account: GlobPattern("item \(number)\(suffix)")), .migrates, hasPassword: true,
          onSameDevice: false)
      }
    }
    let check = try ExpectationCheck(list(""), many)
    #expect(check.isMet && check.checkedCount == 4_001 && check.cases.allSatisfy { $0.matchedCount == 1 })
    #expect(try ExpectationCheck(Array(list("*").prefix(400)), many).isMet)
    let error = #expect(throws: KeyhaulError.self) { try ExpectationCheck(list("*"), many) }
    #expect(error?.code == .malformedExpectations && error?.category == .refused)
  }

  @Test("Items that share every name are counted together, but each has its own outcome")
  func sharedNames() throws {
    let items = (0..<6).map { number in
      MigrationComparison.Item(
        index: number, identity: descriptor("twin"), protection: .afterFirstUnlock,
        allOutcomes: restoreOutcomes(number.isMultiple(of: 2) ? .afterFirstUnlock : .whenUnlockedThisDeviceOnly))
    }
    let twins = MigrationComparison(items, current: RestoreScenario(hasPassword: true, onSameDevice: false))
    let list = try parseExpectations(
      #"{"account": "twin", "expect": "migrates", "password": true, "same_device": false}"#)
    let check = try ExpectationCheck(list, twins)
    #expect(check.cases.map(\.matchedCount) == [6])
    #expect(check.cases.flatMap(\.unmet).map { $0.item?.index } == [1, 3, 5])
  }

  @Test("An expectation about the device is not checked if it is unknown whether the target is the source device")
  func unknownDevice() throws {
    let unknown = ActualScenario(hasPassword: true, onSameDevice: nil)
    for member in ["true", "false"] {
      let list = try parseExpectations(
        #"{"account": "push token", "expect": "stays-behind", "same_device": \#(member)}"#)
      #expect(try ExpectationCheck(list, plan, in: unknown).cases.isEmpty)
    }
    let list = try parseExpectations(#"{"account": "push token", "expect": "stays-behind", "password": true}"#)
    #expect(try ExpectationCheck(list, plan, in: unknown).isMet)
  }
}

/// A comparison of two items: one that moves with a password, and one that never leaves its device.
private let comparison = MigrationComparison(
  [
    .init(
      index: 0, identity: descriptor("token"), protection: .afterFirstUnlock,
      allOutcomes: restoreOutcomes(.afterFirstUnlock)),
    .init(
      index: 1, identity: descriptor("device id"), protection: .whenUnlockedThisDeviceOnly,
      allOutcomes: restoreOutcomes(.whenUnlockedThisDeviceOnly)),
  ], current: RestoreScenario(hasPassword: true, onSameDevice: false))

private func restoreOutcomes(_ protection: ProtectionClass) -> RestoreOutcomes {
  var restoreOutcomes = RestoreOutcomes()
  for scenario in RestoreScenario.allCases { restoreOutcomes[scenario] = protection.restoreOutcome(in: scenario) }
  return restoreOutcomes
}

@Suite("Expectations about all four restores")
struct FourRestoresExpectationTests {
  @Test("An expectation is checked in each restore that it applies to")
  func scenarios() throws {
    let list = try parseExpectations(
      """
      {"account": "token", "expect": "migrates", "password": true},
      {"account": "token", "expect": "stays-behind", "password": false, "same_device": false},
      {"account": "device id", "expect": "stays-behind", "reason": "device-bound", "same_device": false},
      {"account": "nobody", "expect": "absent"}
      """)
    let check = try ExpectationCheck(list, comparison)
    // The expectations that apply to each restore, in the order of `RestoreScenario.allCases`.
    #expect(check.scenarios.map { check.cases(in: $0).map(\.index) } == [[0, 3], [0, 2, 3], [3], [1, 2, 3]])
    #expect(check.unchecked == [] && check.checkedCount == 4)
    // A this-device-only item has the same reason with and without a password.
    #expect(check.isMet && check.metCount == 4)
  }

  @Test("An unmet expectation in one of the four restores names the restore")
  func unmet() throws {
    let check = try ExpectationCheck(try parseExpectations(#"{"account": "token", "expect": "migrates"}"#), comparison)
    #expect(check.metCount == 0 && check.checkedCount == 1)
    let unmet = check.cases.filter { !$0.isMet }
    #expect(unmet.map(\.scenario) == [ActualScenario(hasPassword: false, onSameDevice: false)])
    #expect(unmet.first?.unmet.first?.item?.restoreOutcome == .staysBehind(.backupNotEncrypted))
  }
}

@Suite("Invalid expectation lists")
struct ExpectationListTests {
  private func errorReason(_ text: String) -> String? {
    do throws(KeyhaulError) {
      _ = try PlanExpectations(parsing: Array(text.utf8))
      return nil
    } catch {
      #expect(error.code == .malformedExpectations && error.category == .usage)
      return error.reason
    }
  }

  @Test("An expectation list may have at most a million values")
  func values() throws {
    // The object, its format and the list count as three values.
    let count = PlanExpectations.maximumValueCount - 3
    for (added, isOver) in [(0, false), (1, true)] {
      let zeros = String(repeating: "0,", count: count + added - 1) + "0"
      let actual = try #require(errorReason(#"{"format": "plan-expectations/1", "expectations": [\#(zeros)]}"#))
      #expect(actual.hasPrefix("it has more values than Keyhaul reads") == isOver, "\(actual)")
    }
  }

  @Test(
    "An invalid expectation is refused with the reason and its position",
    arguments: [
      (#"{"acount": "x", "expect": "migrates"}"#, #""acount" is not a known member; "account" is similar"#),
      (
        #"{"account": "x", "expect": "migrates", "same-device": true}"#,
        #""same-device" is not a known member; "same_device" is similar"#
      ),
      (#"{"expect": "migrates"}"#, "it selects no item: add service, account, kind …"),
      (#"{"account": "x"}"#, #"it has no "expect""#),
      (
        #"{"account": "x", "expect": "moves"}"#,
        #""moves" cannot be expected; known are migrates, stays-behind and absent"#
      ),
      (#"{"account": 1, "expect": "migrates"}"#, #""account" should be a string, not a whole number"#),
      (#"{"account": null, "expect": "migrates"}"#, #""account" should be a string, not null"#),
      (
        #"{"account": "x", "expect": "migrates", "password": "true"}"#,
        #""password" should be true or false, not a string"#
      ),
      (
        #"{"account": "x", "expect": "migrates", "same_device": 1}"#,
        #""same_device" should be true or false, not a whole number"#
      ),
      (#"{"kind": "generic", "expect": "migrates"}"#, #""generic" is not a kind; "generic-password" is similar"#),
      (
        #"{"account": "x", "expect": "migrates", "reason": "deleted"}"#,
        "only stays-behind can have a reason"
      ),
      (
        #"{"account": "x", "expect": "stays-behind", "reason": "because"}"#,
        #""because" is not a reason; explain lists them"#
      ),
      ("[]", "it should be an object, not an array"),
      (
        #"{"account": "x", "expect": "absent"}, 1"#, "expectation 2, line 1: it should be an object, not a whole number"
      ),
      (
        #"{"account": "x", "account": "y", "expect": "absent"}"#,
        "an object in it has two members with the same name (line 1, column 78)"
      ),
    ])
  func expectation(_ text: String, _ expected: String) throws {
    let actual = try #require(errorReason(#"{"format": "plan-expectations/1", "expectations": [\#(text)]}"#))
    #expect(actual == expected || actual == "expectation 1, line 1: \(expected)", "\(actual)")
  }

  @Test(
    "An invalid expectation list is refused completely",
    arguments: [
      (
        #"{"format": "plan-expectations/2", "expectations": []}"#,
        #"the list, line 1: its format is "plan-expectations/2"; Keyhaul reads plan-exp"#
      ),
      (#"{"expectations": []}"#, #"the list: it has no "format""#),
      (#"{"format": "plan-expectations/1"}"#, #"the list: it has no "expectations""#),
      (
        #"{"format": "plan-expectations/1", "expectations": []}"#,
        "the list, line 1: it contains no expectations, so every plan meets it"
      ),
      (
        #"{"format": "plan-expectations/1", "expectations": {}}"#,
        #"the list, line 1: "expectations" should be an array, not an object"#
      ),
      (#"{"format": 1, "expectations": []}"#, #"the list, line 1: "format" should be a string, not a whole number"#),
      (
        #"{"format": "plan-expectations/1", "expectation": []}"#,
        #"the list, line 1: "expectation" is not a known member; "expectations" is similar"#
      ),
      ("[]", "the list: it should be an object, not an array"), ("", "it is not JSON (line 1, column 1)"),
      ("{\"format\": \"plan-expectations/1\",\n \"expectations\": [,]}", "it is not JSON (line 2, column 19)"),
      ("{} {}", "it is not JSON (line 1, column 4)"), ("\u{FEFF}[]", "the list: it should be an object, not an array"),
    ])
  func list(_ text: String, _ expected: String) {
    #expect(errorReason(text)?.hasPrefix(expected) == true, "\(errorReason(text) ?? "")")
  }

  @Test("An expectation list is refused if it is too deep, too large or not UTF-8")
  func limits() throws {
    let deep = String(repeating: "[", count: 101)
    #expect(errorReason(#"{"format": \#(deep)"#)?.hasPrefix("it is nested more than 100 deep (line 1, ") == true)
    let many = "[" + String(repeating: "1,", count: PlanExpectations.maximumValueCount) + "1]"
    #expect(errorReason(many)?.hasPrefix("it has more values than Keyhaul reads") == true)
    #expect(throws: KeyhaulError.self) { try PlanExpectations(parsing: [0x22, 0xFF, 0x22]) }
  }
}
