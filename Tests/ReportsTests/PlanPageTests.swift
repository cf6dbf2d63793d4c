import Backups
import KeychainCrypto
import KeychainFormats
import KeychainRules
import KeyhaulKit
import Testing

@testable import Reports

@Suite("Plan page")
struct PlanPageTests {
  private func visibleText(of page: PlanPage) throws -> String { try PageReader(page.html()).visibleText }

  @Test("The verdict states in one sentence what moves, stays behind, cannot be read and is removed")
  func verdicts() {
    let move = decision(0, .migrates(.new))
    let stay = decision(1, .staysBehind(.deviceBound))
    let lost = decision(2, .unreadable(.tagMismatch))
    let needsPassword = decision(3, .staysBehind(.backupNotEncrypted))
    let existing = [identity("a"), identity("b")]
    let verdicts: [(page: PlanPage, verdict: String)] = [
      (.make([]), "There is nothing to move to new-phone."),
      (.make([move]), "The only item in the backup moves to new-phone."),
      (.make([move, move]), "All 2 items in the backup move to new-phone."),
      (.make([move, move], isSameDevice: true), "All 2 items in the backup are restored to new-phone."),
      (.make([move, stay]), "1 of 2 items moves to new-phone; 1 stays behind."),
      (.make([move, move, stay, stay, lost]), "2 of 5 items move to new-phone; 2 stay behind, 1 cannot be read."),
      (.make([stay]), "The only item cannot move to new-phone."),
      (.make([stay, lost]), "None of the 2 items can move to new-phone."),
      (.make([needsPassword, stay]), "Nothing can move to new-phone, because the backup has no password."),
      (
        .make([move], removed: existing),
        "The only item in the backup moves to new-phone; 2 items on the target are removed."
      ),
      (
        .make([move, stay], removed: [existing[0]]),
        "1 of 2 items moves to new-phone; 1 stays behind, 1 item on the target is removed."
      ),
      (
        .make([stay], removed: existing),
        "The only item cannot move to new-phone; a restore would only remove 2 items from it."
      ),
    ]
    for (page, verdict) in verdicts { #expect(page.verdict == verdict) }
  }

  @Test("If the manifest and the files disagree about a password, the page does not say that there is none")
  func contradictoryPasswordFindings() throws {
    func text(_ findings: [BackupFinding], isEncrypted: Bool) throws -> String {
      try visibleText(of: .make([decision(0, .migrates(.new))], isEncrypted: isEncrypted, findings: findings))
    }
    #expect(try text([], isEncrypted: false).contains(", without a password."))
    #expect(try text([], isEncrypted: true).contains(", with a password."))
    for (finding, protection) in [
      (BackupFinding.passwordDenied(reason: ""), "with no password according to Manifest.plist, but made with one."),
      (.falseClaim(reason: ""), "with unencrypted files, although Manifest.plist says that the backup is encrypted."),
      (.decryptedCopy, "a decrypted copy with password-protected items."),
    ] {
      let visibleText = try text([finding], isEncrypted: false)
      #expect(visibleText.contains(protection) && !visibleText.contains("without a password"), "\(visibleText)")
    }
  }

  @Test("The page explains every reason that occurs, and no other", arguments: Reason.allCases)
  func reasons(_ reason: Reason) throws {
    let outcome: MigrationPlan.Outcome = reason.isDamage ? .unreadable(reason) : .staysBehind(reason)
    let visibleText = try visibleText(of: .make([decision(0, outcome)]))
    let explanation = reason.explanation
    // The page capitalizes the first letter of the headline.
    for text in [
      explanation.headline.dropFirst(), explanation.rule[...], explanation.effect[...], explanation.action[...],
    ] {
      #expect(visibleText.contains(text), "\(text)")
    }
    for otherReason in Reason.allCases where otherReason != reason {
      #expect(!visibleText.contains(otherReason.explanation.rule))
    }
  }

  @Test("The plan page is well-formed with any contents")
  func structure() throws {
    let pages: [PlanPage] = [
      .make([]), .make(allOutcomes), .make(allOutcomes, removed: (0..<30).map { identity("there \($0)") }),
      .make([], removed: [identity("x")]),
      .make(allOutcomes, policy: .merge, kind: .device),
      .make((0..<120).map { decision($0, .migrates(.new)) }, isSameDevice: nil),
    ]
    for page in pages {
      let reader = try PageReader(page.html())
      #expect(reader.elements.count { $0 == "main" } == 1)
      #expect(reader.elements.count { $0 == "h1" } == 1)
      // The table has a row for its heading.
      let rowCount = page.plan.decisions.isEmpty ? 0 : page.plan.decisions.count + 1
      #expect(reader.elements.count { $0 == "tr" } == rowCount)
      #expect(!reader.elements.contains("script") && !reader.attributes.contains("style"))
    }
  }

  @Test("The content policy allows only the page's own style sheet, by its digest")
  func policy() throws {
    let page = try PlanPage.make(allOutcomes).html()
    let sheet = try #require(try PageReader(page).texts(of: "style").first)
    let digest = Base64Digits.text(of: try Digest.sha256(Array(sheet.utf8)))
    #expect(page.contains("content=\"default-src &#39;none&#39;; style-src &#39;sha256-\(digest)&#39;; base-uri"))
    #expect(!page.contains("://") && !page.contains("@import"))
  }

  @Test("Equal plans result in equal pages")
  func repeatable() throws {
    #expect(try PlanPage.make(allOutcomes).html() == PlanPage.make(allOutcomes).html())
  }

  @Test("The apps to sign in to are listed by their number of lost items, with their names if known")
  func signIn() throws {
    let decisions = [
      decision(0, .staysBehind(.deviceBound), group: "ABCDE12345.com.example.bank"),
      decision(1, .staysBehind(.deviceBound)), decision(2, .unreadable(.tagMismatch)),
      decision(3, .migrates(.new), group: "ABCDE12345.com.example.mail"),
      decision(4, .staysBehind(.systemBound), group: "com.apple.security.sos"),
      encryptedDecision(5, .staysBehind(.deviceBound)),
    ]
    let apps = AppDirectory(installed: ["com.example.bank": "Example Bank"])
    let visibleText = try visibleText(of: .make(decisions, apps: apps))
    let section = try #require(
      visibleText.split(separator: "Sign in again on ").last?.split(separator: "All 6 items").first)
    #expect(section.contains("org.example.chat (team ABCDE12345)  2 items"))
    #expect(section.contains("Example Bank  1 item"))
    #expect(section.firstRange(of: "chat")!.lowerBound < section.firstRange(of: "Bank")!.lowerBound)
    #expect(section.contains("1 other lost item is encrypted, and so is the name of its app."))
    #expect(!section.contains("not name an app"))
    #expect(!section.contains("mail") && !section.contains("sos"))
  }

  /// Creates a decision about a decrypted item that does not name an app.
  private func decisionWithoutApp(_ index: Int) -> Decision {
    Decision(
      index: index, identity: ItemDescriptor(KeychainItem(kind: .genericPassword, attributes: [:])),
      protection: .whenUnlocked, outcome: .unreadable(.unsupportedVersion), detail: nil)
  }

  @Test("The table flags only decrypted items without an app, and none if the page is redacted")
  func unnamed() throws {
    let decisions = [
      decisionWithoutApp(0), encryptedDecision(1, .staysBehind(.deviceBound)), decision(2, .staysBehind(.deviceBound)),
    ]
    let pageText = try visibleText(of: .make(decisions))
    #expect(pageText.ranges(of: "(names no app)").count == 1)
    #expect(try !visibleText(of: .make(decisions, isRedacted: true)).contains("(names no app)"))
  }

  @Test("Page and text count the encrypted lost items separately from the decrypted items without an app")
  func otherLostItems() throws {
    func encrypted(_ index: Int) -> Decision { encryptedDecision(index, .staysBehind(.deviceBound)) }
    let withApp = decision(0, .staysBehind(.deviceBound))
    let style = TextStyle(width: 120, usesColor: false, isUnicode: true)
    let cases: [(decisions: [Decision], clauses: [String])] = [
      (
        [encrypted(1), decisionWithoutApp(2)],
        ["1 other lost item is encrypted, and so is the name of its app", "1 other lost item does not name an app"]
      ),
      (
        [encrypted(1), encrypted(2), decisionWithoutApp(3), decisionWithoutApp(4), decisionWithoutApp(5)],
        [
          "2 other lost items are encrypted, and so are the names of their apps",
          "3 other lost items do not name an app",
        ]
      ),
      ([], []),
    ]
    for (decisions, clauses) in cases {
      let page = PlanPage.make([withApp] + decisions)
      let pageText = try visibleText(of: page)
      let text = SignInText(summaries: page.plan.byApp(page.apps), targetName: "new-phone", showsAll: false)
      let textLines = text.lines(style: style).filter { $0.contains("other lost") }
      #expect(textLines == clauses.map { "  \($0)" })
      #expect(clauses.allSatisfy { pageText.contains("\($0).") } && pageText.contains("other lost") != clauses.isEmpty)
    }
  }

  @Test("Encrypted items are counted, and their indexes are not listed")
  func encryptedItems() throws {
    let decisions = [3, 1204].map { encryptedDecision($0, .staysBehind(.deviceBound)) }
    let visibleText = try visibleText(of: .make(decisions))
    #expect(
      visibleText.contains("The names of 2 items are encrypted too, so Keyhaul cannot say which apps they belong to."))
    #expect(!visibleText.contains("items 3 and 1,204"))
  }

  @Test("The commands are quoted for a shell")
  func commands() throws {
    let page = PlanPage.make([decision(0, .migrates(.new))], policy: .merge, from: "my backup", to: "it's")
    let commands = try visibleText(of: page)
    #expect(
      commands.contains(#"keyhaul   plan   'my   backup'   --to   'it'\''s'   --existing   merge   -o   move.plan"#))
  }

  @Test("Commands contain the typed argument of the target, and no command backs up a real device")
  func devicesInCommands() throws {
    let pageForPath = PlanPage.make([decision(0, .migrates(.new))], targetArgument: "./phones/new-phone")
    #expect(try visibleText(of: pageForPath).contains("--to   ./phones/new-phone"))
    for name in ["--help", "my phone", String(repeating: "x", count: 200)] {
      let page = PlanPage.make([decision(0, .staysBehind(.backupNotEncrypted))], device: name, isEncrypted: false)
      let visibleText = try visibleText(of: page)
      #expect(!visibleText.contains("keyhaul   backup") && visibleText.contains("Encrypt local backup"), "\(name)")
    }
  }

  @Test("The page suggests a password, another copy, and a merge")
  func advice() throws {
    let decisions = [decision(0, .staysBehind(.backupNotEncrypted)), decision(1, .unreadable(.malformed))]
    let visibleText = try visibleText(of: .make(decisions, removed: [identity("x")], isEncrypted: false))
    for text in [
      "The item that is held back only by the missing password can then move.", "Look for another copy",
      "plan a restore that merges",
    ] {
      #expect(visibleText.contains(text), "\(text)")
    }
  }

  @Test("A page of 10,000 items has fewer than 5,000,000 bytes")
  func size() throws {
    let decisions = (0..<10_000).map { index in
      decision(
        index, index.isMultiple(of: 3) ? .staysBehind(.deviceBound) : .migrates(.new),
        service: "service-\(index).example.com", account: "somebody.with.a.long.name-\(index)@mail.example.org",
        group: "ABCDE12345.com.example.application-\(index % 500)")
    }
    #expect(try PlanPage.make(decisions).html().utf8.count < 5_000_000)
  }
}
