import Backups
import Foundation
import KeychainFormats
import KeychainRules
import Testing

@testable import KeyhaulKit
@testable import Reports

@Suite("Outlook page")
struct OutlookPageTests {
  private func identity(_ service: String, _ group: String) -> ItemDescriptor {
    var identity = ItemDescriptor(undecryptable: .genericPassword, accessGroup: group)
    identity.service = service
    return identity
  }

  /// Returns the page of a backup from an unavailable device: two items move, and three stay behind, two of them encrypted.
  private func page(phone: String? = "Santas Phone", hasPassword: Bool = true, isRedacted: Bool = false) -> OutlookPage
  {
    OutlookPage(summary(phone: phone, hasPassword: hasPassword, isRedacted: isRedacted), program: "keyhaul 1.0")
  }

  private func decisions(hasPassword: Bool, movedCount: Int, unreadableCount: Int) -> [MigrationPlan.Decision] {
    let movedOutcome: MigrationPlan.Outcome = hasPassword ? .migrates(.new) : .staysBehind(.backupNotEncrypted)
    let encrypted = ItemDescriptor(undecryptable: .genericPassword)
    var items: [(identity: ItemDescriptor, outcome: MigrationPlan.Outcome)] = [
      (identity("mail", "ABCDE12345.org.example.mail"), movedOutcome),
      (identity("web", "ABCDE12345.org.example.web"), movedOutcome),
      (identity("token", "ABCDE12345.org.example.bank"), .staysBehind(.deviceBound)),
      (encrypted, .staysBehind(.deviceBound)), (encrypted, .staysBehind(.deviceBound)),
    ]
    // The first two items move.
    items.removeFirst(2 - movedCount)
    for _ in 0..<unreadableCount { items.append((identity("x", "g"), .unreadable(.tagMismatch))) }
    return items.enumerated().map { index, item in
      .init(
        index: index, identity: item.identity, protection: .whenUnlocked, outcome: item.outcome, detail: nil)
    }
  }

  private func summary(
    phone: String? = "Santas Phone", hasPassword: Bool = true, isRedacted: Bool = false, movedCount: Int = 2,
    unreadableCount: Int = 0
  ) -> OutlookSummary {
    let newDeviceScenario = RestoreScenario(hasPassword: hasPassword, onSameDevice: false)
    let decisions = decisions(hasPassword: hasPassword, movedCount: movedCount, unreadableCount: unreadableCount)
    let items = decisions.map { decision in
      var restoreOutcomes: RestoreOutcomes = [:]
      for scenario in RestoreScenario.allCases {
        restoreOutcomes[scenario] = MigrationComparison.restoreOutcome(of: decision, in: scenario)
      }
      restoreOutcomes[newDeviceScenario] = RestoreOutcome(decision.outcome)
      return MigrationComparison.Item(decision, restoreOutcomes)
    }
    let plan = MigrationPlan(
      decisions: decisions, removed: [], policy: .replace, isSameDevice: false, imports: [], removedRowCount: 0)
    let restoreOutlook = RestoreOutlook(
      MigrationComparison(items, current: newDeviceScenario), planForNewDevice: plan, sourceIsBackup: true,
      triedDeviceKey: false)
    let source = PlanDocument.Source(
      kind: .archive, name: "family.backup", device: nil, backupDate: "2026-11-20T18:04:10Z", deviceName: phone,
      encrypted: hasPassword, digest: "sha256:" + String(repeating: "4f", count: 32))
    let apps = AppDirectory(
      installed: ["org.example.bank": "Example Bank", "org.example.mail": "Example Mail"],
      // The genre 6005 is Social Networking.
      apps: [InstalledApp(identifier: "a.b", name: "Signal - Private Messenger", genre: 6005)])
    return OutlookSummary(
      restoreOutlook, of: source, made: "2026-11-21T09:12:44Z", apps: apps, productType: "iPhone15,2",
      deviceKeyOwner: nil, sourceArgument: "family.backup", isRedacted: isRedacted)
  }

  @Test("The heading has at most 12 words, and the verdict at most 15 words and 100 characters, with any phone name")
  func headings() throws {
    let names = [
      nil, "Santas Phone", "a phone with a name of many words that goes on and on", String(repeating: "x", count: 300),
      "",
    ]
    for name in names {
      let html = try page(phone: name).html()
      let heading = try #require(try PageReader(html).texts(of: "h1").first)
      #expect(heading.split(separator: " ").count <= 12)
      for summary in [
        summary(phone: name), summary(phone: name, hasPassword: false), summary(phone: name, unreadableCount: 3),
      ] {
        #expect(summary.verdict.split(separator: " ").count <= 15, "\(summary.verdict)")
        #expect(summary.verdict.count <= 100, "\(summary.verdict)")
      }
    }
    #expect(summary().verdict == "2 of 5 keychain items reach a new iPhone; 3 stay with Santas Phone.")
    #expect(summary(phone: nil).verdict == "2 of 5 keychain items reach a new iPhone; 3 stay behind.")
    #expect(
      summary(unreadableCount: 1).verdict == "2 of 6 keychain items reach a new iPhone; 3 stay behind, 1 unreadable.")
  }

  @Test("The outlook page has tiles, the diagram by app, cards and the checklist")
  func parts() throws {
    let html = try page().html()
    let reader = try PageReader(html)
    for part in ["class=\"tiles\"", "class=\"views\"", "class=\"flow by-app\"", "class=\"card stays\"", "checklist"] {
      #expect(html.contains(part), "\(part)")
    }
    #expect(reader.elements.count { $0 == "main" } == 1 && reader.elements.count { $0 == "h1" } == 1)
    let visibleText = reader.visibleText
    #expect(visibleText.contains("Example Bank") && visibleText.contains("Example Mail"))
    // The index of an encrypted item does not help the user.
    #expect(
      visibleText.contains("The names of 2 items are encrypted too, so Keyhaul cannot say which apps they belong to."))
    #expect(!visibleText.contains("items 3 and 4"))
  }

  @Test("The tile of the moved items says moves for one item, and could move if the backup cannot be restored")
  func movedTile() throws {
    let cases: [(movedCount: Int, condition: BackupCondition, text: String)] = [
      (0, .usable, "move to a new iPhone"), (1, .usable, "moves to a new iPhone"), (2, .usable, "move to a new iPhone"),
      (1, .decryptedCopy, "could move to a new iPhone"), (2, .decryptedCopy, "could move to a new iPhone"),
    ]
    for (movedCount, condition, text) in cases {
      var summary = summary(movedCount: movedCount)
      summary.backupCondition = condition
      let reader = try PageReader(OutlookPage(summary, program: "keyhaul 1.0").html())
      #expect(reader.texts.first { $0.element == "li" }?.text == " " + text, "\(movedCount) \(condition)")
    }
  }

  @Test("In print, the checklist follows the heading")
  func printing() throws {
    let html = try page().html()
    #expect(html.contains("@media print{main{display:flex"))
    #expect(html.contains("main>.checklist{order:1}"))
  }

  @Test("A redacted page has no name of an app, a device or a backup")
  func redacted() throws {
    let visibleText = try PageReader(page(isRedacted: true).html()).visibleText
    for name in ["Example Bank", "Santas Phone", "family.backup", "Signal", "org.example"] {
      #expect(!visibleText.contains(name), "\(name)")
    }
  }
}

@Suite("Published steps")
struct PublishedStepTests {
  @Test("A step has its row in docs/Rules.md, with its source", arguments: PublishedStep.allCases)
  func documented(_ step: PublishedStep) throws {
    let row = "| \(step.rawValue) | \(step.text) | \(step.source) |"
    #expect(try linesOfRulesPage().contains(Substring(row)), "docs/Rules.md lacks:\n\(row)")
  }

  @Test("The explain topic describes how to turn on the backup password, and the effects of a reset")
  func topic() throws {
    let topic = try #require(Explanation.vocabulary.first { $0.id == "backup-password" })
    for step in PublishedStep.passwordSteps { #expect(topic.action.contains(step.text)) }
    for step in [PublishedStep.earlierBackups, .forgottenPassword, .resetKeeps, .resetCosts] {
      #expect(topic.effect.contains(step.text))
    }
    // The number of Apple's support article.
    #expect(topic.source?.contains("108353") == true)
  }
}
