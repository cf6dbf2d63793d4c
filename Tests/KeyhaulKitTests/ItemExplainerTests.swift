import Backups
import KeychainFormats
import KeychainRules
import Keychains
import Testing
import VirtualDevice

@testable import KeyhaulKit

@Suite("Explanations of items")
struct ItemExplainerTests {
  private let phones: TwoPhones
  private let path: String

  init() throws {
    phones = try TwoPhones()
    path = try phones.setup.backUp(phones.old, password: TestSetup.password)
  }

  private func explainer(_ account: String, index: Int? = nil) -> ItemExplainer {
    ItemExplainer(
      .init(ItemQuery(attributes: [.account: .string(account)]), index: index) {
        $0[.account]?.stringValue == account
      })
  }

  @Test("An item in the backup is explained with the effect of a restore on the target")
  func archived() throws {
    let target = try phones.new.openTestSession(.reading)
    defer { target.invalidate() }
    let unlocked = try phones.setup.open(path, password: TestSetup.password, on: target)
    let plan = try Restorer.plan(unlocked, onto: target, policy: .replace)
    let explanations = try explainer("ak").explanations(
      in: unlocked, named: "b", sourceDevice: nil, onto: (target, plan))
    let explanation = try #require(explanations.first)
    #expect(
      explanations.count == 1 && explanation.location == .archive(index: 0) && explanation.identity.account == "ak")
    #expect(explanation.decisionOnTarget?.outcome == .migrates(.new) && explanation.restoreOutcomes.count == 4)
  }

  @Test("An index outside of the backup is refused")
  func invalidPositions() throws {
    let unlocked = try phones.setup.open(path, password: TestSetup.password, on: nil)
    let count = unlocked.items.count
    // The last index is valid, whether or not its item is the selected one.
    let last = try explainer("aku", index: count - 1).explanations(
      in: unlocked, named: "b", sourceDevice: nil, onto: nil)
    #expect(last.count <= 1)
    for index in [-1, count] {
      let error = try keyhaulError {
        _ = try explainer("ak", index: index).explanations(in: unlocked, named: "b", sourceDevice: nil, onto: nil)
      }
      #expect(error?.code == .noSuchItem && error?.category == .usage)
      #expect(error?.reason == "b has \(count) items, counted from 0")
    }
  }

  @Test("An item that is not in the backup is found on the source device or on the target")
  func elsewhere() throws {
    let sourceDevice = try phones.old.openTestSession()
    let target = try phones.new.openTestSession()
    defer {
      sourceDevice.invalidate()
      target.invalidate()
    }
    try sourceDevice.insertUnchanged(
      .password("later", .whenUnlocked), .password("never", .whenPasscodeSetThisDeviceOnly))
    try target.insertUnchanged(.password("own", .whenUnlocked))
    let unlocked = try phones.setup.open(path, password: TestSetup.password, on: target)
    let plan = try Restorer.plan(unlocked, onto: target, policy: .replace)
    func location(of account: String) throws -> ItemExplanation.Location? {
      try explainer(account).explanations(in: unlocked, named: "b", sourceDevice: sourceDevice, onto: (target, plan))
        .first?
        .location
    }
    #expect(try location(of: "later") == .missing(from: sourceDevice.name, rule: nil))
    #expect(try location(of: "never") == .missing(from: sourceDevice.name, rule: .passcodeOnly))
    #expect(try location(of: "own") == .targetOnly(isRemoved: true))
    #expect(try location(of: "nobody") == nil)
  }

  @Test("An item of a device is explained with the outcomes of a backup that is made now")
  func device() throws {
    let session = try phones.old.openTestSession()
    defer { session.invalidate() }
    let explanations = try explainer("aku").explanations(on: session, onto: nil, policy: .replace)
    let explanation = try #require(explanations.first)
    #expect(explanations.count == 1 && explanation.identity.account == "aku")
    #expect(
      explanation.restoreOutcomes[RestoreScenario(hasPassword: true, onSameDevice: false)] == .staysBehind(.deviceBound)
    )
    #expect(try explainer("nobody").explanations(on: session, onto: nil, policy: .replace).isEmpty)
  }
}
