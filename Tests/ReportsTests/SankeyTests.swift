import Backups
import KeychainFormats
import KeychainRules
import KeyhaulKit
import TestSupport
import Testing

@testable import Reports

@Suite("The picture of a move")
struct SankeyTests {
  private func flow(seed: UInt64, by axis: SankeyDiagram.Axis = .protection) -> SankeyDiagram {
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
    let removed = Int.random(in: 0...40, using: &random)
    return SankeyDiagram(decisions, by: axis, apps: AppDirectory([]), removedCount: removed)
  }

  @Test("has a stream for each class and end that occur, and every item is in one")
  func streams() {
    let decisions = [
      decision(0, .migrates(.new)), decision(1, .migrates(.identical)),
      decision(2, .staysBehind(.deviceBound), protection: .alwaysThisDeviceOnly),
      decision(3, .unreadable(.noClassKey)), decision(4, .unreadable(.malformed), protection: nil),
    ]
    #expect(
      SankeyDiagram(decisions, by: .protection, apps: AppDirectory([]), removedCount: 1).streams == [
        .init(origin: .protection(.whenUnlocked), end: .moves, count: 2),
        .init(origin: .protection(.whenUnlocked), end: .lost, count: 1),
        .init(origin: .protection(.alwaysThisDeviceOnly), end: .stays, count: 1),
        .init(origin: .protection(nil), end: .lost, count: 1), .init(origin: .onTarget, end: .gone, count: 1),
      ])
  }

  @Test("names the apps with the most items, puts the others together, and tells Apple's from nobody's")
  func apps() {
    var decisions: [Decision] = []
    for app in 0..<10 {
      for _ in 0...app {
        decisions.append(decision(decisions.count, .migrates(.new), group: "ABCDE12345.org.example.app\(app)"))
      }
    }
    decisions.append(decision(55, .migrates(.new), group: "apple"))
    decisions.append(decision(56, .staysBehind(.systemBound), group: "com.apple.security.sos"))
    decisions.append(decision(57, .migrates(.new), group: "group.com.example.shared"))
    decisions.append(sealed(58, .staysBehind(.deviceBound)))
    let unnamed = ItemDescriptor(KeychainItem(kind: .genericPassword, attributes: [:]))
    decisions.append(
      Decision(index: 59, identity: unnamed, protection: nil, outcome: .unreadable(.unsupportedVersion), detail: nil))
    let directory = AppDirectory(installed: ["org.example.app9": "Chatter"])
    let flow = SankeyDiagram(decisions, by: .app, apps: directory, removedCount: 0)
    #expect(
      flow.origins.map(\.lines) == [
        ["Chatter"], ["org.example.app8", "team ABCDE12345"], ["org.example.app7", "team ABCDE12345"],
        ["org.example.app6", "team ABCDE12345"], ["org.example.app5", "team ABCDE12345"],
        ["org.example.app4", "team ABCDE12345"], ["org.example.app3", "team ABCDE12345"], ["4 other apps"],
        ["iOS, Apple’s apps"], ["of no named app"], ["app unknown", "(encrypted)"],
      ])
    // Apps 0, 1 and 2 have one, two and three items; the shared group has one.
    #expect(flow.origins.map { flow.count(of: $0) } == [10, 9, 8, 7, 6, 5, 4, 7, 2, 1, 1])
    #expect(flow.streams.reduce(0) { $0 + $1.count } == 60)
  }

  @Test("gives the last app the bar that it would be summed up in")
  func lastApp() {
    let decisions = (0..<8).map { decision($0, .migrates(.new), group: "ABCDE12345.org.example.app\($0)") }
    let flow = SankeyDiagram(decisions, by: .app, apps: AppDirectory([]), removedCount: 0)
    #expect(flow.origins.map(\.lines) == (0..<8).map { ["org.example.app\($0)", "team ABCDE12345"] })
  }

  @Test("is by app where any item says its app, and else by kind; the classes are its second view")
  func views() throws {
    func captions(_ page: PlanPage) throws -> [String] { try PageReader(page.html()).texts(of: "figcaption") }
    let classes = "Where the item goes, by protection"
    #expect(try captions(.of([decision(0, .migrates(.new))])) == ["Where the item goes, by app", classes])
    #expect(try captions(.of([sealed(0, .staysBehind(.deviceBound))])) == ["Where the item goes, by kind", classes])
    let redacted = PlanPage.of([decision(0, .migrates(.new))], isRedacted: true)
    #expect(try captions(redacted) == ["Where the item goes, by kind", classes])
  }

  @Test("has no two bars or labels over each other and none outside", arguments: 0..<40)
  func layout(seed: Int) {
    for axis in [SankeyDiagram.Axis.app, .kind, .protection] {
      let layout = SankeyLayout(flow(seed: UInt64(seed), by: axis))
      for bars in [layout.origins.map(\.bar), layout.ends.map(\.bar)] {
        for bar in bars {
          #expect(bar.room >= bar.height && bar.room >= 2 * SankeyLayout.lineHeight)
          #expect(bar.middle - bar.room / 2 >= -0.01 && bar.middle + bar.room / 2 <= layout.height + 0.01)
        }
        for (upper, lower) in zip(bars, bars.dropFirst()) {
          #expect(lower.middle - upper.middle >= (upper.room + lower.room) / 2 + SankeyLayout.gap - 0.01)
        }
      }
    }
  }

  @Test("has bands that fill their bars from end to end", arguments: 0..<40)
  func bands(seed: Int) throws {
    let layout = SankeyLayout(flow(seed: UInt64(seed)))
    for (origin, bar) in layout.origins {
      let bands = layout.bands.filter { $0.stream.origin == origin }
      #expect(abs(bands.reduce(0) { $0 + $1.thickness } - bar.height) < 0.01)
      #expect(try #require(bands.first).start == bar.top)
    }
    for (end, bar) in layout.ends {
      let bands = layout.bands.filter { $0.stream.end == end }
      #expect(abs(bands.reduce(0) { $0 + $1.thickness } - bar.height) < 0.01)
      #expect(try #require(bands.first).end == bar.top)
    }
    #expect(layout.bands.allSatisfy { $0.thickness >= SankeyLayout.minimumThickness })
  }

  @Test("writes no letter into the drawing, so that none can leave it: labels are text of the page")
  func labels() throws {
    let page = try PlanPage.of(everything, removed: [identity("x")]).html()
    #expect(!page.contains("<text") && page.contains("<b>"))
    let read = try PageReader(page)
    #expect(read.elements.count { $0 == "figure" } == 2)
    #expect(!read.attributes.contains("style"))
  }

  @Test("is told in words too")
  func description() throws {
    let page = try PlanPage.of([
      decision(0, .migrates(.new)), decision(1, .staysBehind(.deviceBound), protection: .whenUnlockedThisDeviceOnly),
    ]).html()
    #expect(
      try PageReader(page).texts(of: "desc") == [
        "org.example.chat, team ABCDE12345: 1 item moves to new-phone; org.example.chat, team ABCDE12345: 1 item stays "
          + "on old-phone.",
        "when unlocked: 1 item moves to new-phone; when unlocked, this device: 1 item stays on old-phone.",
      ])
  }
}
