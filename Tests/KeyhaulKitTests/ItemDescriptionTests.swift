import Backups
import KeychainFormats
import KeychainRules
import TestSupport
import Testing
import VirtualDevice

@testable import KeyhaulKit

@Suite("Descriptions of items")
struct ItemDescriptionTests {
  @Test("A reason counts as damage if the item or its key is damaged, but not if a rule excludes the item")
  func damage() {
    let damage: Set<Reason> = [.noClassKey, .tagMismatch, .malformed, .unsupportedVersion]
    for reason in Reason.allCases { #expect(reason.isDamage == damage.contains(reason)) }
  }

  @Test("Names are text, decoded data, numbers or hexadecimal")
  func names() {
    let item = KeychainItem.password(
      "a",
      attributes: [.label: .data(Array("Läufer".utf8)), .account: .data([0, 0xFF, 0xA]), .service: .integer(-7)])
    let identity = ItemDescriptor(item)
    #expect(identity.label == "Läufer")
    #expect(identity.account == "0x00ff0a")
    #expect(identity.service == "-7")
    #expect(identity.server == nil)
    #expect(identity.accessGroup == "app")
    #expect(ItemDescriptor(item.with([.label: .array([])])).label == nil)
  }
}

@Suite("Secrets in descriptions")
struct SecretDescriptionTests {
  private static let secretText = "planted-SECRET-4711"

  /// Returns all descriptions of a value that Swift can print.
  private func descriptions(of value: Any) -> String {
    var text = String(describing: value) + "\n" + String(reflecting: value) + "\n"
    dump(value, to: &text)
    return text
  }

  private func containsSecret(_ text: String) -> Bool {
    let bytes = Array(Self.secretText.utf8)
    let commaSeparated = bytes.map { "\($0)" }.joined(separator: ", ")
    // `dump` writes each element of an array on its own line.
    let lines = text.split(separator: "\n").map { $0.drop { " -▿".contains($0) } }.joined(separator: ",")
    let column = bytes.map { "\($0)" }.joined(separator: ",")
    return text.contains(Self.secretText) || text.contains(commaSeparated) || lines.contains(column)
  }

  @Test("No description of a plan, item, report or error contains a secret")
  func noSecret() throws {
    // The search finds a secret in both forms.
    #expect(containsSecret(descriptions(of: Self.secretText)))
    #expect(containsSecret(descriptions(of: Array(Self.secretText.utf8))))
    let setup = try TestSetup(seed: "printed")
    let phone = try setup.phone("phone", passcode: "1234")
    let session = try phone.openTestSession()
    try session.insertUnchanged(
      ProtectionClass.allCases.map { KeychainItem.password($0.rawValue, $0).with(secret: Self.secretText) }
        + [.password("own", group: "lockdown-identities").with(secret: Self.secretText)])
    let prepared = try BackupExporter.prepare(session, password: secret(TestSetup.password), rounds: 1)
    #expect(!containsSecret(descriptions(of: prepared.report)))
    #expect(!containsSecret(descriptions(of: prepared.contents)))
    let (path, destination) = setup.destination("printed", .tar)
    _ = try prepared.write(to: destination)
    let unlocked = try setup.open(path, password: TestSetup.password, on: session)
    #expect(unlocked.items.allSatisfy { $0.item?.secretBytes == Array(Self.secretText.utf8) })
    #expect(!containsSecret(descriptions(of: unlocked.items)))
    #expect(!containsSecret(descriptions(of: unlocked)))
    for policy in ExistingItemPolicy.allCases {
      let plan = try Restorer.plan(unlocked, onto: session, policy: policy)
      #expect(!containsSecret(descriptions(of: plan)))
      let rows = try Restorer.targetRows(of: session)
      // One item of each of the seven classes, and the system's own item.
      #expect(rows.count == 8)
      #expect(!containsSecret(descriptions(of: rows)))
      // A wrong number of removed rows makes the restore fail.
      let stalePlan = MigrationPlan(plan, policy: .replace, removedRowCount: 99)
      let error = try #require(try keyhaulError { try Restorer.restore(stalePlan, onto: session) })
      #expect(!containsSecret(descriptions(of: error)))
    }
    let error = try #require(try keyhaulError { _ = try setup.open(path, password: Self.secretText, on: session) })
    #expect(!containsSecret(descriptions(of: error)))
    #expect(error.description == "\(error.summary): \(error.reason)")
  }
}
