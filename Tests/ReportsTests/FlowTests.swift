import ArchivedKeychain
import KeychainFormats
import KeychainRules
import Migration
import TestSupport
import Testing

@testable import Reports

@Suite("The picture of a move")
struct FlowTests {
  private func flow(seed: UInt64) -> Flow {
    var random = SeededRandom(seed: seed)
    let classes: [ProtectionClass?] = ProtectionClass.allCases + [nil]
    let outcomes: [MigrationPlan.Outcome] = [.migrates(.new), .staysBehind(.deviceBound), .unreadable(.malformed)]
    let count = Int.random(in: 1...2_000, using: &random)
    let decisions = (0..<count).map { index in
      decision(
        index, outcomes.randomElement(using: &random) ?? outcomes[0],
        protection: classes.randomElement(using: &random) ?? nil)
    }
    let removed = (0..<Int.random(in: 0...40, using: &random)).map { identity("\($0)") }
    return Flow(.of(decisions, removed: removed))
  }

  @Test("has a stream for each class and end that occur, and every item is in one")
  func streams() {
    let flow = Flow(
      .of(
        [
          decision(0, .migrates(.new)), decision(1, .migrates(.identical)),
          decision(2, .staysBehind(.deviceBound), protection: .alwaysThisDeviceOnly),
          decision(3, .unreadable(.noClassKey)), decision(4, .unreadable(.malformed), protection: nil),
        ], removed: [identity("x")]))
    #expect(
      flow.streams == [
        .init(origin: .archived(.whenUnlocked), end: .moves, count: 2),
        .init(origin: .archived(.whenUnlocked), end: .lost, count: 1),
        .init(origin: .archived(.alwaysThisDeviceOnly), end: .stays, count: 1),
        .init(origin: .archived(nil), end: .lost, count: 1), .init(origin: .onTarget, end: .gone, count: 1),
      ])
  }

  @Test("has no two bars or labels over each other and none outside", arguments: 0..<40)
  func layout(seed: Int) {
    let flow = flow(seed: UInt64(seed))
    for form in [FlowLayout.Form.wide, .narrow] {
      let layout = FlowLayout(flow, form)
      for bars in [layout.origins.map(\.bar), layout.ends.map(\.bar)] {
        for bar in bars {
          #expect(bar.middle - max(bar.height, form.labelHeight) / 2 >= -0.01)
          #expect(bar.middle + max(bar.height, form.labelHeight) / 2 <= layout.height + 0.01)
        }
        for (upper, lower) in zip(bars, bars.dropFirst()) {
          let room = (max(upper.height, form.labelHeight) + max(lower.height, form.labelHeight)) / 2
          #expect(lower.middle - upper.middle >= room + form.gap - 0.01)
        }
      }
    }
  }

  @Test("has bands that fill their bars from end to end", arguments: 0..<40)
  func bands(seed: Int) throws {
    let layout = FlowLayout(flow(seed: UInt64(seed)), .wide)
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
    #expect(layout.bands.allSatisfy { $0.thickness >= FlowLayout.Form.wide.thinnest })
  }

  @Test("is told in words too")
  func description() throws {
    let page = try PlanPage.of([
      decision(0, .migrates(.new)), decision(1, .staysBehind(.deviceBound), protection: .whenUnlockedThisDeviceOnly),
    ]).html()
    let description = try #require(try PageReader(page).texts(of: "desc").first)
    #expect(
      description == "1 item when unlocked: move to new-phone; 1 item when unlocked, this device: stay with old-phone.")
  }
}
