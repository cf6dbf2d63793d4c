import ArchivedKeychain
import Foundation
import KeychainFormats
import KeychainRules
import Testing

@testable import Migration

private func decision(
  _ index: Int, _ identity: ItemIdentity, _ outcome: MigrationPlan.Outcome
) -> MigrationPlan.Decision {
  MigrationPlan.Decision(index: index, identity: identity, protection: .whenUnlocked, outcome: outcome, detail: nil)
}

private func named(
  _ account: String, service: String = "chat.example", label: String? = nil, kind: ItemKind = .genericPassword
) -> ItemIdentity {
  var identity = ItemIdentity(sealed: kind, accessGroup: "ABCDE12345.org.example.chat")
  (identity.account, identity.service, identity.label) = (account, service, label)
  return identity
}

private let plan = MigrationPlan(
  decisions: [
    decision(0, named("session token", label: "Session"), .migrates(.new)),
    decision(1, named("push token"), .staysBehind(.deviceBound)),
    decision(2, named("anna", service: "mail.example"), .migrates(.replaces)),
    decision(3, named("anna", service: "bank.example"), .staysBehind(.needsAuthentication)),
    decision(4, ItemIdentity(sealed: .key), .staysBehind(.deviceBound)),
    decision(5, named("broken"), .unreadable(.tagMismatch)),
  ], removed: [], policy: .replace, isSameDevice: false, imports: [], clearedRowCount: 0)

@Suite("Asking a plan for an item by name")
struct AskingTests {
  @Test("gives its fate, by account, service or label")
  func fate() {
    #expect(plan["session token"] == .migrates)
    #expect(plan["Session"] == .migrates)
    #expect(plan["mail.example"] == .migrates)
    #expect(plan["push token"] == .staysBehind)
    #expect(plan["broken"] == .unreadable)
    #expect(plan["nobody"] == .absent)
    #expect(plan["ession"] == .absent)
  }

  @Test("of several items it is what they share, and otherwise ambiguous, which is equal to nothing else")
  func ambiguity() {
    #expect(plan["anna"] == .ambiguous)
    #expect(plan["chat.example"] == .ambiguous)
    #expect(plan[ItemMatcher(account: ItemPattern("anna"), service: ItemPattern("mail.example"))] == .migrates)
    #expect(plan[ItemMatcher(account: ItemPattern("* token"))] == .ambiguous)
    #expect(plan[ItemMatcher(kind: .key)] == .staysBehind)
    #expect(plan[ItemMatcher(kind: .key, label: ItemPattern("*"))] == .absent)
  }

  @Test("why it stays is told of one item alone")
  func reason() {
    #expect(plan.reason(for: "push token") == .deviceBound)
    #expect(plan.reason(for: "session token") == nil && plan.reason(for: "anna") == nil)
  }

  @Test("a redacted plan keeps counts and reasons, and no name")
  func redacted() {
    let shown = plan.redacted
    #expect(shown.summary == plan.summary)
    #expect(shown.decisions.map(\.outcome) == plan.decisions.map(\.outcome))
    #expect(shown.decisions[1].identity.label == "item-0001")
    for decision in shown.decisions {
      let identity = decision.identity
      #expect(identity.account == nil && identity.service == nil && identity.accessGroup == nil)
      #expect(identity.kind == plan.decisions[decision.index].identity.kind)
    }
  }
}

@Suite("What someone expects of a plan")
struct ExpectationTests {
  private func read(_ expectations: String) throws -> [PlanExpectation] {
    let text = #"{"format": "plan-expectations/1", "expectations": [\#(expectations)]}"#
    return try JSONDecoder().decode(PlanExpectations.self, from: Data(text.utf8)).expectations
  }

  @Test(
    "is met, or missed item by item",
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
      // The sealed key has neither account nor service; whether it has this label or group, nobody knows.
      (#"{"access_group": "*.org.example.chat", "kind": "key", "expect": "absent"}"#, [nil]),
      (#"{"label": "nobody's", "expect": "absent"}"#, [nil]),
      (#"{"label": "S*", "expect": "migrates"}"#, [nil]), (#"{"label": "S*", "expect": "stays-behind"}"#, [0]),
      (#"{"label": "*", "kind": "key", "expect": "stays-behind", "reason": "device-bound"}"#, [nil]),
    ] as [(String, [Int?])])
  func misses(_ expectation: String, _ expected: [Int?]) throws {
    #expect(plan.misses(of: try read(expectation)).map { $0.decision?.index } == expected)
  }

  @Test("says how many sealed items may be meant, where that keeps it from being known")
  func sealed() throws {
    func counts(_ expectation: String) throws -> [Int] { plan.misses(of: try read(expectation)).map(\.sealedCount) }
    #expect(try counts(#"{"label": "nobody's", "expect": "absent"}"#) == [1])
    #expect(try counts(#"{"label": "nobody's", "expect": "migrates"}"#) == [1])
    #expect(try counts(#"{"account": "nobody", "expect": "migrates"}"#) == [0])
    #expect(try counts(#"{"account": "push token", "expect": "migrates"}"#) == [0])
  }

  @Test(
    "a file that is not exactly as the format says is refused, so that no mistyped word widens an expectation",
    arguments: [
      #"{"acount": "x", "expect": "migrates"}"#, #"{"expect": "migrates"}"#, #"{"account": "x"}"#,
      #"{"account": "x", "expect": "moves"}"#, #"{"account": 1, "expect": "migrates"}"#,
      #"{"kind": "generic", "expect": "migrates"}"#, #"{"account": "x", "expect": "migrates", "reason": "deleted"}"#,
      #"{"account": "x", "expect": "stays-behind", "reason": "because"}"#, "[]", "1",
    ])
  func refused(_ expectation: String) {
    #expect(throws: DecodingError.self) { try read(expectation) }
  }

  @Test("another format, or something else beside the list, is refused")
  func format() {
    for text in [
      #"{"format": "plan-expectations/2", "expectations": []}"#, #"{"expectations": []}"#,
      #"{"format": "plan-expectations/1"}"#, #"{"format": "plan-expectations/1", "expectations": []}"#,
      #"{"format": "plan-expectations/1", "expectations": [], "x": 1}"#,
    ] {
      #expect(throws: DecodingError.self) {
        try JSONDecoder().decode(PlanExpectations.self, from: Data(text.utf8))
      }
    }
  }
}
