import Backups
import KeychainFormats
import KeychainRules
import KeyhaulKit
import Testing

@testable import Reports

@Suite("Malicious names on pages")
struct MaliciousNameTests {
  static let names = [
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "</title><title>other", "</style><style>*{}",
    "gpj.\u{202E}exe", "\u{2066}x\u{2069}", "nul\u{0}\u{1B}[2J", "<!--", "]]>", "&lt;&#x3c;", "' onload='x", "\u{FFFE}",
    String(repeating: "long ", count: 1_000), "a\u{2028}b",
  ]

  /// Returns a page with the same name for all items, apps and devices.
  ///
  /// - Parameter argument: The argument of the backup and the target in commands; `nil` to use the name.
  private func page(_ name: String, argument: String? = nil) -> PlanPage {
    var identity = ItemDescriptor(undecryptable: .certificate, accessGroup: name)
    identity.label = name
    let decisions = [
      decision(0, .migrates(.new), service: name, account: name, group: name, detail: name),
      decision(1, .staysBehind(.deviceBound), service: name, account: name, group: name),
      decision(2, .unreadable(.tagMismatch), service: name, account: name, group: name, detail: name),
      Decision(index: 3, identity: identity, protection: nil, outcome: .migrates(.replaces), detail: name),
    ]
    return .make(
      decisions, removed: [identity], from: argument ?? name, device: name, to: argument ?? name,
      apps: AppDirectory(installed: ["org.example.chat": name]))
  }

  @Test("A malicious name adds no element, no attribute and no title", arguments: names)
  func structure(name: String) throws {
    let reader = try PageReader(page(name).html())
    #expect(try reader.structure == PageReader(page("name").html()).structure)
    #expect(reader.texts(of: "title").first?.hasPrefix("Moving ") == true)
  }

  @Test("A malicious name hides no text and does not change its direction", arguments: names)
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

  @Test("A very long name is shortened")
  func length() throws {
    let name = String(repeating: "x", count: 1_000_000)
    #expect(try page(name, argument: "name").html().utf8.count < 60_000)
  }

  @Test("The page of a redacted plan contains no names of items, apps or devices")
  func redacted() throws {
    let decisions = [
      decision(0, .migrates(.new)), decision(7, .staysBehind(.deviceBound)),
      decision(8, .unreadable(.tagMismatch)), decision(9, .staysBehind(.backupNotEncrypted)),
    ]
    for kind in [PlanDocument.Source.Kind.archive, .device] {
      let page = PlanPage.make(
        decisions, removed: [identity("wallet.example")], kind: kind,
        apps: AppDirectory(installed: ["org.example.chat": "Chatter"]), isRedacted: true)
      let visibleText = try PageReader(page.html()).visibleText
      for name in ["item-0000", "item-0007", "item-0008", "target-0001", "Names are left out."] {
        #expect(visibleText.contains(name), "\(name)")
      }
      for name in ["chat", "Chatter", "anna", "wallet", "family", "old-phone", "new-phone"] {
        #expect(!visibleText.contains(name), "\(name) is on the page of a plan of \(kind)")
      }
      // Commands have placeholders instead of removed names.
      #expect(visibleText.contains("--to   TARGET"))
    }
  }
}
