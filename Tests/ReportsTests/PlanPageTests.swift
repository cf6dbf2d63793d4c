import Backups
import KeychainCrypto
import KeychainFormats
import KeychainRules
import KeyhaulKit
import Testing

@testable import Reports

@Suite("The page of a plan")
struct PlanPageTests {
  @Test("says the verdict first, in one sentence")
  func verdicts() {
    let move = decision(0, .migrates(.new))
    let stay = decision(1, .staysBehind(.deviceBound))
    let lost = decision(2, .unreadable(.tagMismatch))
    let closed = decision(3, .staysBehind(.backupNotEncrypted))
    let there = [identity("a"), identity("b")]
    let verdicts: [(PlanPage, String)] = [
      (.of([]), "There is nothing to move to new-phone."),
      (.of([move]), "The only item in the backup moves to new-phone."),
      (.of([move, move]), "All 2 items in the backup move to new-phone."),
      (.of([move, move], isSameDevice: true), "All 2 items in the backup are restored to new-phone."),
      (.of([move, stay]), "1 of 2 items moves to new-phone; 1 stays behind."),
      (.of([move, move, stay, stay, lost]), "2 of 5 items move to new-phone; 2 stay behind, 1 cannot be read."),
      (.of([stay]), "The only item cannot move to new-phone."),
      (.of([stay, lost]), "None of the 2 items can move to new-phone."),
      (.of([closed, stay]), "Nothing can move to new-phone, because the backup has no password."),
      (
        .of([move], removed: there),
        "The only item in the backup moves to new-phone; 2 items on the target are removed."
      ),
      (
        .of([move, stay], removed: [there[0]]),
        "1 of 2 items moves to new-phone; 1 stays behind, 1 item on the target is removed."
      ),
      (
        .of([stay], removed: there),
        "The only item cannot move to new-phone; a restore would only remove 2 items from it."
      ),
    ]
    for (page, verdict) in verdicts { #expect(page.verdict == verdict) }
  }

  @Test("explains every reason that occurs, in full, and none that does not", arguments: Reason.allCases)
  func reasons(_ reason: Reason) throws {
    let outcome: MigrationPlan.Outcome = reason.isDamage ? .unreadable(reason) : .staysBehind(reason)
    let words = try PageReader(PlanPage.of([decision(0, outcome)]).html()).words
    let explanation = reason.explanation
    for text in [
      explanation.headline.dropFirst(), explanation.rule[...], explanation.effect[...], explanation.action[...],
    ] {
      #expect(words.contains(text), "\(text)")
    }
    for other in Reason.allCases where other != reason { #expect(!words.contains(other.explanation.rule)) }
  }

  @Test("is well-formed, whatever it holds")
  func structure() throws {
    let pages: [PlanPage] = [
      .of([]), .of(everything), .of(everything, removed: (0..<30).map { identity("there \($0)") }),
      .of([], removed: [identity("x")]),
      .of(everything, policy: .merge, kind: .device),
      .of((0..<120).map { decision($0, .migrates(.new)) }, isSameDevice: nil),
    ]
    for page in pages {
      let read = try PageReader(page.html())
      #expect(read.elements.count { $0 == "main" } == 1)
      #expect(read.elements.count { $0 == "h1" } == 1)
      #expect(read.elements.count { $0 == "tr" } == (page.plan.decisions.isEmpty ? 0 : page.plan.decisions.count + 1))
      #expect(!read.elements.contains("script") && !read.attributes.contains("style"))
    }
  }

  @Test("admits its own style sheet by its digest, and nothing else")
  func policy() throws {
    let page = try PlanPage.of(everything).html()
    let sheet = try #require(try PageReader(page).texts(of: "style").first)
    let digest = Base64Digits.text(of: try Digest.sha256(Array(sheet.utf8)))
    #expect(page.contains("content=\"default-src &#39;none&#39;; style-src &#39;sha256-\(digest)&#39;; base-uri"))
    #expect(!page.contains("://") && !page.contains("@import"))
  }

  @Test("is the same page for the same plan")
  func repeatable() throws {
    #expect(try PlanPage.of(everything).html() == PlanPage.of(everything).html())
  }

  @Test("lists the apps to sign in to by what they lose, with names where the backup knows them")
  func signIn() throws {
    let decisions = [
      decision(0, .staysBehind(.deviceBound), group: "ABCDE12345.com.example.bank"),
      decision(1, .staysBehind(.deviceBound)), decision(2, .unreadable(.tagMismatch)),
      decision(3, .migrates(.new), group: "ABCDE12345.com.example.mail"),
      decision(4, .staysBehind(.systemBound), group: "com.apple.security.sos"), sealed(5, .staysBehind(.deviceBound)),
    ]
    let words = try PageReader(
      PlanPage.of(decisions, apps: AppDirectory(installed: ["com.example.bank": "Example Bank"])).html()
    ).words
    let section = try #require(words.split(separator: "Sign in again on ").last?.split(separator: "All 6 items").first)
    #expect(section.contains("org.example.chat (team ABCDE12345)  2 items"))
    #expect(section.contains("Example Bank  1 item"))
    #expect(section.firstRange(of: "chat")!.lowerBound < section.firstRange(of: "Bank")!.lowerBound)
    #expect(section.contains("1 more lost item does not name an app."))
    #expect(!section.contains("mail") && !section.contains("sos"))
  }

  @Test("says of an item that opens and names no app that it names none, which is not said of a sealed one")
  func unnamed() throws {
    let secretAlone = Decision(
      index: 0, identity: ItemDescriptor(KeychainItem(kind: .genericPassword, attributes: [:])),
      protection: .whenUnlocked, outcome: .unreadable(.unsupportedVersion), detail: nil)
    let decisions = [secretAlone, sealed(1, .staysBehind(.deviceBound)), decision(2, .staysBehind(.deviceBound))]
    let words = try PageReader(PlanPage.of(decisions).html()).words
    #expect(words.ranges(of: "(names no app)").count == 1)
    #expect(words.contains("2 more lost items do not name an app."))
    #expect(try !PageReader(PlanPage.of(decisions, isRedacted: true).html()).words.contains("(names no app)"))
  }

  @Test("Encrypted items are counted, because they name no app and their numbers help no one")
  func sealedItems() throws {
    let words = try PageReader(
      PlanPage.of([sealed(3, .staysBehind(.deviceBound)), sealed(1204, .staysBehind(.deviceBound))]).html()
    ).words
    #expect(words.contains("The names of 2 items are encrypted too, so Keyhaul cannot say which apps they belong to."))
    #expect(!words.contains("items 3 and 1,204"))
  }

  @Test("ends with commands that a shell takes as they are")
  func commands() throws {
    let page = PlanPage.of([decision(0, .migrates(.new))], policy: .merge, from: "my backup", to: "it's")
    let commands = try PageReader(page.html()).words
    #expect(
      commands.contains(#"keyhaul   plan   'my   backup'   --to   'it'\''s'   --existing   merge   -o   move.plan"#))
  }

  @Test("calls the target in commands what was typed for it, and names no command that backs up a real device")
  func devicesInCommands() throws {
    let path = PlanPage.of([decision(0, .migrates(.new))], targetArgument: "./phones/new-phone")
    #expect(try PageReader(path.html()).words.contains("--to   ./phones/new-phone"))
    for name in ["--help", "my phone", String(repeating: "x", count: 200)] {
      let page = PlanPage.of([decision(0, .staysBehind(.backupNotEncrypted))], device: name, encrypted: false)
      let words = try PageReader(page.html()).words
      #expect(!words.contains("keyhaul   backup") && words.contains("Encrypt local backup"), "\(name)")
    }
  }

  @Test("tells what brings more: a password, another copy, merging")
  func advice() throws {
    let words = try PageReader(
      PlanPage.of(
        [decision(0, .staysBehind(.backupNotEncrypted)), decision(1, .unreadable(.malformed))],
        removed: [identity("x")], encrypted: false
      ).html()
    ).words
    for text in [
      "The item that is held back only by the missing password can then move.", "Look for another copy",
      "plan a restore that merges",
    ] {
      #expect(words.contains(text), "\(text)")
    }
  }

  @Test("ten thousand items fit in five million bytes")
  func size() throws {
    let decisions = (0..<10_000).map { index in
      decision(
        index, index.isMultiple(of: 3) ? .staysBehind(.deviceBound) : .migrates(.new),
        service: "service-\(index).example.com", account: "somebody.with.a.long.name-\(index)@mail.example.org",
        group: "ABCDE12345.com.example.application-\(index % 500)")
    }
    #expect(try PlanPage.of(decisions).html().utf8.count < 5_000_000)
  }
}
