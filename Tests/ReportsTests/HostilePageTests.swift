import Backups
import KeychainFormats
import KeychainRules
import KeyhaulKit
import Testing

@testable import Reports

@Suite("Names that want to be more than names")
struct HostilePageTests {
  static let names = [
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "</title><title>other", "</style><style>*{}",
    "gpj.\u{202E}exe", "\u{2066}x\u{2069}", "nul\u{0}\u{1B}[2J", "<!--", "]]>", "&lt;&#x3c;", "' onload='x", "\u{FFFE}",
    String(repeating: "long ", count: 1_000), "a\u{2028}b",
  ]

  /// - Parameter typed: What the person typed for the archive and the target, as commands repeat it.
  private func page(_ name: String, typed: String? = nil) -> PlanPage {
    var identity = ItemDescriptor(undecryptable: .certificate, accessGroup: name)
    identity.label = name
    let decisions = [
      decision(0, .migrates(.new), service: name, account: name, group: name, detail: name),
      decision(1, .staysBehind(.deviceBound), service: name, account: name, group: name),
      decision(2, .unreadable(.tagMismatch), service: name, account: name, group: name, detail: name),
      Decision(index: 3, identity: identity, protection: nil, outcome: .migrates(.replaces), detail: name),
    ]
    return .of(
      decisions, removed: [identity], from: typed ?? name, device: name, to: typed ?? name,
      apps: AppDirectory(installed: ["org.example.chat": name]))
  }

  @Test("make no element, no attribute and no other title", arguments: names)
  func structure(name: String) throws {
    let hostile = try PageReader(page(name).html())
    let harmless = try PageReader(page("name").html())
    // A command has an element for each of its words.
    #expect(hostile.elements.filter { $0 != "span" } == harmless.elements.filter { $0 != "span" })
    #expect(hostile.attributes == harmless.attributes)
    #expect(hostile.texts(of: "title").first?.hasPrefix("Moving ") == true)
  }

  @Test("hide nothing and turn nothing around", arguments: names)
  func visible(name: String) throws {
    let scalars = try page(name).html().unicodeScalars
    let hidden = scalars.filter { scalar in
      switch scalar.properties.generalCategory {
      case .control: scalar != "\n"
      case .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned: true
      default: false
      }
    }
    #expect(Array(hidden) == [])
  }

  @Test("are cut where they are longer than anyone reads")
  func length() throws {
    let name = String(repeating: "x", count: 1_000_000)
    #expect(try page(name, typed: "name").html().utf8.count < 60_000)
  }

  @Test("leave no trace of a plan that is redacted: not of what moves, stays or is removed, nor of apps and devices")
  func redacted() throws {
    let decisions = [
      decision(0, .migrates(.new)), decision(7, .staysBehind(.deviceBound)),
      decision(8, .unreadable(.tagMismatch)), decision(9, .staysBehind(.backupNotEncrypted)),
    ]
    for kind in [PlanDocument.Source.Kind.archive, .device] {
      let words = try PageReader(
        PlanPage.of(
          decisions, removed: [identity("wallet.example")], kind: kind,
          apps: AppDirectory(installed: ["org.example.chat": "Chatter"]), isRedacted: true
        ).html()
      ).words
      for name in ["item-0000", "item-0007", "item-0008", "target-0001", "Names are left out."] {
        #expect(words.contains(name), "\(name)")
      }
      for name in ["chat", "Chatter", "anna", "wallet", "family", "old-phone", "new-phone"] {
        #expect(!words.contains(name), "\(name) is on the page of a plan of \(kind)")
      }
      // Nobody can type a command with a name that is not there.
      #expect(words.contains("--to   TARGET"))
    }
  }
}
