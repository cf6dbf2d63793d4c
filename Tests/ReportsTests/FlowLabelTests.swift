import ArchivedKeychain
import Foundation
import KeychainFormats
import KeychainRules
import Migration
import Testing

@testable import Reports

/// What the picture says stays in the picture, in a font as wide as the widest that systems have.
@Suite("The labels of the picture of a move")
struct FlowLabelTests {
  /// Advance widths of DejaVu Sans, in 2,048ths of an em: of the characters that the labels of these tests have, as
  /// FreeType gives them; read by another program than the table of the library.
  private static let regular: [Character: Double] = [
    " ": 651, "-": 739, "a": 1255, "b": 1300, "c": 1126, "d": 1300, "e": 1260, "f": 721, "h": 1298, "i": 569, "k": 1186,
    "l": 569, "m": 1995, "n": 1298, "o": 1253, "p": 1300, "r": 842, "s": 1067, "t": 803, "u": 1298, "v": 1212,
    "w": 1675, "y": 1212, "W": 2025, "\\": 690, "{": 1303, "}": 1303, "0": 1303, "2": 1303, "E": 1294, "…": 2048,
    "家": 2048,
  ]
  /// And of DejaVu Sans Bold, of numbers.
  private static func bold(_ digit: Character) -> Double { digit == "," ? 778 : 1_425 }

  private struct Label {
    let x: Double
    let isEnd: Bool
    let width: Double
    let text: String
  }

  /// The pictures of a page: how wide each is, and its lines of text.
  private func pictures(_ page: String) throws -> [(width: Double, labels: [Label])] {
    try page.components(separatedBy: "<svg ").dropFirst().map { picture in
      let box = try #require(picture.firstMatch(of: #/viewBox="0 0 ([0-9.]+) /#))
      let labels = try picture.components(separatedBy: "<text ").dropFirst().flatMap { label in
        let isEnd = label.hasPrefix("text-anchor=\"end\"")
        let text = try #require(label.components(separatedBy: "</text>").first)
        let line = #/<tspan x="([0-9.]+)" y="[0-9.]+">(?:<tspan class="count">([0-9,]+)</tspan>)?([^<]*)/#
        return try text.matches(of: line).map { line in
          let count: Double = (line.2 ?? "").reduce(0) { $0 + Self.bold($1) }
          var words = 0.0
          for character in line.3 { words += try #require(Self.regular[character], "\(character)") }
          return Label(
            x: try #require(Double(line.1)), isEnd: isEnd, width: (count + words) / 2_048 * 13,
            text: "\(line.2 ?? "")\(line.3)")
        }
      }
      return (try #require(Double(box.1)), labels)
    }
  }

  /// The pictures alone, without a table of all those items.
  private func page(_ count: Int, target: String = "new-phone") -> String {
    var decisions: [Decision] = []
    for protection in ProtectionClass.allCases + [nil] {
      let outcome: MigrationPlan.Outcome =
        switch protection {
        case .whenUnlocked, .afterFirstUnlock: .migrates(.new)
        case nil: .unreadable(.malformed)
        default: .staysBehind(.deviceBound)
        }
      decisions += (0..<count).map { decision(decisions.count + $0, outcome, protection: protection) }
    }
    let plan = PlanPage.of(decisions, removed: (0..<count).map { identity("\($0)") }, device: target, to: target)
    var page = Markup()
    FlowFigure(plan).write(to: &page)
    return page.text
  }

  @Test("stand inside of it, with counts of one to five digits", arguments: [1, 22, 172, 1_888, 10_000])
  func counts(count: Int) throws {
    let pictures = try pictures(page(count))
    #expect(pictures.count == 2)
    for (width, labels) in pictures {
      // Eight origins with up to two lines and a third for the count, the target's own items, and four ends.
      #expect(labels.count >= 9 + 4)
      #expect(labels.contains { $0.text.hasPrefix(Amounts.grouped(count)) })
      for label in labels {
        let (from, to) = label.isEnd ? (label.x - label.width, label.x) : (label.x, label.x + label.width)
        #expect(from >= 0 && to <= width, "\(label) in \(width)")
      }
    }
  }

  @Test(
    "stand inside of it, whatever the devices are called",
    arguments: [String(repeating: "W", count: 40), String(repeating: "家", count: 40), "a\u{202E}b\u{202E}c\u{202E}d"])
  func names(name: String) throws {
    for (width, labels) in try pictures(page(172, target: name)) {
      #expect(labels.contains { $0.text.hasSuffix("…") })
      // What is spelled out is spelled out once.
      #expect(!labels.contains { $0.text.contains("{5C}") })
      for label in labels where !label.isEnd { #expect(label.x + label.width <= width, "\(label) in \(width)") }
    }
  }

  @Test("leave room for the streams, and a picture with short labels is as wide as ever")
  func streams() {
    let flow = Flow(.of([decision(0, .migrates(.new))]))
    for form in [FlowLayout.Form.wide, .narrow] {
      let plain = FlowLayout(flow, form)
      #expect(plain.width == form.width && plain.left == form.left && plain.right == form.right)
      let wide = FlowLayout(flow, form, room: .init(left: 300, right: 300))
      #expect(wide.left == 312)
      #expect(wide.right - wide.left - form.barWidth >= form.leastStream - 0.01)
      #expect(wide.right + form.barWidth + FlowLayout.labelGap + 300 <= wide.width)
    }
  }

  @Test("cut a name where its room ends and no earlier")
  func cutting() {
    #expect(LabelWidth.fitted("new-phone", to: LabelWidth.of("new-phone")) == "new-phone")
    #expect(LabelWidth.fitted("new-phone", to: LabelWidth.of("new-phone") - 0.01) == "new-ph…")
    #expect(LabelWidth.fitted("new-phone", to: 0) == "…")
    #expect(LabelWidth.of("\u{202E}") == LabelWidth.of("(u{202E}") - LabelWidth.of("(") + LabelWidth.of("/"))
  }
}
