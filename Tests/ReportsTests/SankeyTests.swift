import Backups
import KeychainFormats
import KeychainRules
import KeyhaulKit
import TestSupport
import Testing

@testable import Reports

@Suite("Sankey diagram")
struct SankeyTests {
  private func diagram(seed: UInt64, by axis: SankeyDiagram.Axis = .protection) -> SankeyDiagram {
    var random = SeededRandom(seed: seed)
    let classes: [ProtectionClass?] = ProtectionClass.allCases + [nil]
    let outcomes: [MigrationPlan.Outcome] = [.migrates(.new), .staysBehind(.deviceBound), .unreadable(.malformed)]
    let count = Int.random(in: 1...2_000, using: &random)
    let decisions = (0..<count).map { index in
      decision(
        index, outcomes.randomElement(using: &random) ?? outcomes[0],
        group: "ABCDE12345.org.example.app\(Int.random(in: 0..<20, using: &random))",
        protection: classes.randomElement(using: &random) ?? nil)
    }
    let removedCount = Int.random(in: 0...40, using: &random)
    return SankeyDiagram(decisions, by: axis, apps: AppDirectory([]), removedCount: removedCount)
  }

  @Test("Each combination of class and outcome has a flow, and each item is in one flow")
  func flows() {
    let decisions = [
      decision(0, .migrates(.new)), decision(1, .migrates(.identical)),
      decision(2, .staysBehind(.deviceBound), protection: .alwaysThisDeviceOnly),
      decision(3, .unreadable(.noClassKey)), decision(4, .unreadable(.malformed), protection: nil),
    ]
    #expect(
      SankeyDiagram(decisions, by: .protection, apps: AppDirectory([]), removedCount: 1).flows == [
        .init(origin: .protection(.whenUnlocked), destination: .moves, count: 2),
        .init(origin: .protection(.whenUnlocked), destination: .lost, count: 1),
        .init(origin: .protection(.alwaysThisDeviceOnly), destination: .stays, count: 1),
        .init(origin: .protection(nil), destination: .lost, count: 1),
        .init(origin: .onTarget, destination: .gone, count: 1),
      ])
  }

  @Test("The apps with the most items have their own bars, and Apple's items are separate from items without an app")
  func apps() {
    var decisions: [Decision] = []
    // App 0 has one item, app 9 has ten.
    for app in 0..<10 {
      for _ in 0...app {
        decisions.append(decision(decisions.count, .migrates(.new), group: "ABCDE12345.org.example.app\(app)"))
      }
    }
    decisions.append(decision(55, .migrates(.new), group: "apple"))
    decisions.append(decision(56, .staysBehind(.systemBound), group: "com.apple.security.sos"))
    decisions.append(decision(57, .migrates(.new), group: "group.com.example.shared"))
    decisions.append(encryptedDecision(58, .staysBehind(.deviceBound)))
    let unnamed = ItemDescriptor(KeychainItem(kind: .genericPassword, attributes: [:]))
    decisions.append(
      Decision(index: 59, identity: unnamed, protection: nil, outcome: .unreadable(.unsupportedVersion), detail: nil))
    let directory = AppDirectory(installed: ["org.example.app9": "Chatter"])
    let diagram = SankeyDiagram(decisions, by: .app, apps: directory, removedCount: 0)
    #expect(
      diagram.origins.map(\.lines) == [
        ["Chatter"], ["org.example.app8", "team ABCDE12345"], ["org.example.app7", "team ABCDE12345"],
        ["org.example.app6", "team ABCDE12345"], ["org.example.app5", "team ABCDE12345"],
        ["org.example.app4", "team ABCDE12345"], ["org.example.app3", "team ABCDE12345"], ["4 other apps"],
        ["iOS, Apple’s apps"], ["of no named app"], ["app unknown", "(encrypted)"],
      ])
    // Apps 0, 1 and 2 have one, two and three items; the shared group has one.
    #expect(diagram.origins.map { diagram.count(of: $0) } == [10, 9, 8, 7, 6, 5, 4, 7, 2, 1, 1])
    #expect(diagram.flows.reduce(0) { $0 + $1.count } == 60)
  }

  @Test("A single remaining app has its own bar")
  func lastApp() {
    let decisions = (0..<8).map { decision($0, .migrates(.new), group: "ABCDE12345.org.example.app\($0)") }
    let diagram = SankeyDiagram(decisions, by: .app, apps: AppDirectory([]), removedCount: 0)
    #expect(diagram.origins.map(\.lines) == (0..<8).map { ["org.example.app\($0)", "team ABCDE12345"] })
  }

  @Test("The first view is by app, or by kind if no item names its app; the second view is by class")
  func views() throws {
    func captions(_ page: PlanPage) throws -> [String] { try PageReader(page.html()).texts(of: "figcaption") }
    let classes = "Where the item goes, by protection"
    #expect(try captions(.make([decision(0, .migrates(.new))])) == ["Where the item goes, by app", classes])
    #expect(
      try captions(.make([encryptedDecision(0, .staysBehind(.deviceBound))]))
        == ["Where the item goes, by kind", classes])
    let redacted = PlanPage.make([decision(0, .migrates(.new))], isRedacted: true)
    #expect(try captions(redacted) == ["Where the item goes, by kind", classes])
  }

  @Test("Bars and labels do not overlap and are inside the drawing", arguments: 0..<40)
  func layout(seed: Int) {
    // The limits allow for rounding by a hundredth of a pixel.
    for axis in [SankeyDiagram.Axis.app, .kind, .protection] {
      let layout = SankeyLayout(diagram(seed: UInt64(seed), by: axis))
      for bars in [layout.origins.map(\.bar), layout.destinations.map(\.bar)] {
        for bar in bars {
          #expect(bar.slotHeight >= bar.height && bar.slotHeight >= 2 * SankeyLayout.lineHeight)
          #expect(bar.middle - bar.slotHeight / 2 >= -0.01 && bar.middle + bar.slotHeight / 2 <= layout.height + 0.01)
        }
        for (upper, lower) in zip(bars, bars.dropFirst()) {
          #expect(lower.middle - upper.middle >= (upper.slotHeight + lower.slotHeight) / 2 + SankeyLayout.gap - 0.01)
        }
      }
    }
  }

  @Test("The bands fill their bars completely", arguments: 0..<40)
  func bands(seed: Int) throws {
    let layout = SankeyLayout(diagram(seed: UInt64(seed)))
    for (origin, bar) in layout.origins {
      let bands = layout.bands.filter { $0.flow.origin == origin }
      #expect(abs(bands.reduce(0) { $0 + $1.thickness } - bar.height) < 0.01)
      #expect(try #require(bands.first).start == bar.top)
    }
    for (destination, bar) in layout.destinations {
      let bands = layout.bands.filter { $0.flow.destination == destination }
      #expect(abs(bands.reduce(0) { $0 + $1.thickness } - bar.height) < 0.01)
      #expect(try #require(bands.first).end == bar.top)
    }
    #expect(layout.bands.allSatisfy { $0.thickness >= SankeyLayout.minimumThickness })
  }

  @Test("The drawing contains no text, because the labels are text of the page")
  func labels() throws {
    let page = try PlanPage.make(allOutcomes, removed: [identity("x")]).html()
    #expect(!page.contains("<text") && page.contains("<b>"))
    let reader = try PageReader(page)
    #expect(reader.elements.count { $0 == "figure" } == 2)
    #expect(!reader.attributes.contains("style"))
  }

  @Test("The diagram has a description as text")
  func description() throws {
    let page = try PlanPage.make([
      decision(0, .migrates(.new)), decision(1, .staysBehind(.deviceBound), protection: .whenUnlockedThisDeviceOnly),
    ]).html()
    #expect(
      try PageReader(page).texts(of: "desc") == [
        "org.example.chat, team ABCDE12345: 1 item moves to new-phone; org.example.chat, team ABCDE12345: 1 item stays "
          + "on old-phone.",
        "when unlocked: 1 item moves to new-phone; when unlocked, this device: 1 item stays on old-phone.",
      ])
  }

  @Test("The substitute for an unknown device name is divided between a label's two lines, but a known name is not")
  func substitute() throws {
    let stay = decision(0, .staysBehind(.deviceBound))
    for page in [PlanPage.make([stay], device: nil), .make([stay], isRedacted: true)] {
      let html = try page.html()
      #expect(html.contains("<span>stays on the</span></p><p><span>source device</span>"))
      let descriptions = try PageReader(html).texts(of: "desc")
      #expect(!descriptions.isEmpty)
      #expect(descriptions.allSatisfy { $0.hasSuffix("1 item stays on the source device.") }, "\(descriptions)")
    }
    let html = try PlanPage.make([stay], device: "the phone").html()
    #expect(html.contains("<span>stays on</span></p><p><span><bdi>the phone</bdi></span>"))
  }
}
