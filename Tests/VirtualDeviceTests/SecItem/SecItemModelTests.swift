import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import Keychains
@testable import VirtualDevice

/// Runs random sequences of calls, locks and passcode changes on the keychain and on a simple model, and compares every
/// status and item. A failing sequence is shortened before it is reported.
@Suite("SecItem: comparison with a model")
struct SecItemModelTests {
  static let sequencesPerBlock = 2_500
  static let quickSequencesPerBlock = 125
  static let stepsPerSequence = 4...8

  @Test("The keychain and a simple model agree in 20,000 random sequences (1,000 in a quick run)", arguments: 0..<8)
  func sequences(_ block: Int) throws {
    let phone = try SecItemPhone()
    for index in 0..<Cases.count(Self.sequencesPerBlock, quick: Self.quickSequencesPerBlock) {
      let seed = UInt64(block * Self.sequencesPerBlock + index)
      var random = SeededRandom(seed: seed)
      let isSyncing = Bool.random(using: &random)
      let count = Int.random(in: Self.stepsPerSequence, using: &random)
      let steps = (0..<count).map { _ in SecItemStep.random(using: &random) }
      guard try difference(steps, isSyncing, phone) != nil else { continue }
      let shortestSteps = try shortened(steps, isSyncing, phone)
      let difference = try difference(shortestSteps, isSyncing, phone) ?? "no difference"
      let sequence = shortestSteps.map(\.description).joined(separator: "; ")
      Issue.record("seed \(seed), syncing \(isSyncing): \(sequence): \(difference)")
      return
    }
  }

  /// Returns a failing sequence from which no step can be removed.
  private func shortened(
    _ steps: [SecItemStep], _ isSyncing: Bool, _ phone: SecItemPhone
  ) throws -> [SecItemStep] {
    for index in steps.indices {
      var fewerSteps = steps
      fewerSteps.remove(at: index)
      if try difference(fewerSteps, isSyncing, phone) != nil { return try shortened(fewerSteps, isSyncing, phone) }
    }
    return steps
  }

  /// Returns the first difference as text, or `nil` if there is none.
  private func difference(_ steps: [SecItemStep], _ isSyncing: Bool, _ phone: SecItemPhone) throws -> String? {
    try phone.reset()
    var run = SecItemRun(phone: phone, isSyncing: isSyncing)
    for (number, step) in steps.enumerated() {
      if let mismatch = try run.apply(step) { return "step \(number + 1): \(mismatch)" }
    }
    return try run.finalDifference()
  }
}

/// A run of one sequence on the keychain and the model.
private struct SecItemRun {
  let phone: SecItemPhone
  var model: SecItemModel

  init(phone: SecItemPhone, isSyncing: Bool) {
    self.phone = phone
    phone.isSyncing = isSyncing
    model = SecItemModel(hasPasscode: true, isSyncing: isSyncing)
  }

  /// Applies a step to both, and returns a description of the difference, or `nil` if there is none.
  mutating func apply(_ step: SecItemStep) throws -> String? {
    phone.now += 1
    switch step {
    case .add(let app, let draft):
      return compare(phone.statusOfAdding(draft.query, as: app), model.add(draft, app: app, now: phone.now))
    case .find(let app, let query, let all): return compareSearch(query, app: app, all: all)
    case .update(let app, let query, let change):
      return compare(
        phone.statusOfUpdating(query.query, change.changes, as: app),
        model.update(query, change, app: app, now: phone.now))
    case .delete(let app, let query):
      return compare(phone.statusOfDeleting(query.query, as: app), model.delete(query, app: app))
    case .lock, .unlock, .restart, .setPasscode, .changePasscode, .removePasscode:
      try changeState(step)
      return nil
    }
  }

  /// Changes the lock state or the passcode of both, if this is possible in the current state.
  private mutating func changeState(_ step: SecItemStep) throws {
    let isUnlocked = model.lock == .unlocked
    switch step {
    case .lock where isUnlocked && model.hasPasscode:
      phone.lock()
      model.lock = .locked
    case .unlock:
      try phone.unlock()
      model.lock = .unlocked
    case .restart:
      try phone.restart()
      model.lock = model.hasPasscode ? .boot : .unlocked
    case .setPasscode where !model.hasPasscode:
      try phone.changePasscode(to: "1234")
      model.hasPasscode = true
    case .changePasscode where isUnlocked && model.hasPasscode:
      try phone.changePasscode(to: "5678")
    case .removePasscode where isUnlocked && model.hasPasscode:
      try phone.changePasscode(to: "")
      model.removePasscode()
    default: break
    }
  }

  private func compare(_ status: SecItemStatus, _ expected: SecItemStatus) -> String? {
    status == expected ? nil : "the keychain returns \(status), the model \(expected)"
  }

  private func compareSearch(_ query: SecItemModel.Query, app: String, all: Bool) -> String? {
    var request = query.query
    request["r_Attributes"] = true
    request["r_Data"] = true
    request["m_Limit"] = all ? "m_LimitAll" : "m_LimitOne"
    var result: SecItemValue?
    let status = phone.status { () throws(SecItemError) in result = try phone.find(request, as: app) }
    let expected = model.find(query, app: app, all: all)
    if let mismatch = compare(status, expected.status) { return mismatch }
    let found = (result?.arrayValue ?? result.map { [$0] } ?? []).map { ComparedItem($0, query.kind) }
    let expectedItems = expected.items.map { ComparedItem($0) }
    return found == expectedItems ? nil : "the keychain returns \(found), the model \(expectedItems)"
  }

  /// Returns a difference between all items after the last step, unlocked.
  func finalDifference() throws -> String? {
    var run = self
    if model.lock != .unlocked { try run.changeState(.unlock) }
    for kind in SecItemModel.Kind.allCases where model.items.contains(where: { $0.key.kind == kind }) {
      let query = SecItemModel.Query(kind: kind, synchronized: .any)
      if let mismatch = run.compareSearch(query, app: "both", all: true) { return "at the end: \(mismatch)" }
    }
    let rows = try phone.store.rowSummaries(includingTombstones: true)
    guard rows.count == model.items.count else { return "\(rows.count) rows, the model has \(model.items.count)" }
    let tombstoneCount = rows.count(where: \.isTombstone)
    let expectedCount = model.items.count(where: \.isTombstone)
    return tombstoneCount == expectedCount ? nil : "\(tombstoneCount) tombstones, the model has \(expectedCount)"
  }
}

/// The compared values of an item.
private struct ComparedItem: Equatable, CustomStringConvertible {
  let description: String

  init(_ item: SecItemModel.Item) {
    description =
      "\(item.key.account)/\(item.key.service)/\(item.key.group)/\(item.key.isSynchronized)/\(item.protection.rawValue)/"
      + "\(item.label)/\(item.secret)/\(item.created)/\(item.modified)"
  }

  init(_ value: SecItemValue, _ kind: SecItemModel.Kind) {
    func text(_ key: String) -> String { value[key]?.stringValue ?? "" }
    func seconds(_ key: String) -> Double { value[key]?.dateValue?.secondsSinceReferenceDate ?? -1 }
    description =
      "\(text("acct"))/\(text(kind.serviceKey))/\(text("agrp"))/\(value["sync"] == 1)/\(text("pdmn"))/"
      + "\(text("labl"))/\(value["v_Data"]?.text ?? "")/\(seconds("cdat"))/\(seconds("mdat"))"
  }
}
