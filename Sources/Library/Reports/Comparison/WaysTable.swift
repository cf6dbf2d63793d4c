import KeyhaulKit

/// How many items come to another device on which way.
struct WaysTable {
  private let comparison: MigrationComparison

  init(_ comparison: MigrationComparison) { self.comparison = comparison }

  func write(to markup: inout Markup) {
    let verdicts = TransferAnswer.Verdict.allCases
    markup.newLine()
    markup.element("section") { markup in
      markup.element("h2", "Ways to transfer items to another device")
      markup.element("table", ["class": "plain"]) { markup in
        markup.element("thead") { markup in
          markup.element("tr") { markup in
            markup.element("th", ["scope": "col"], "Way")
            for verdict in verdicts { markup.element("th", ["scope": "col"], Self.title(verdict)) }
          }
        }
        markup.element("tbody") { markup in
          for way in TransferWay.allCases {
            markup.element("tr") { markup in
              markup.element("th", ["scope": "row"], way.words.prefix(1).uppercased() + way.words.dropFirst())
              for verdict in verdicts {
                markup.element("td", Amounts.grouped(comparison[way][verdict, default: 0]))
              }
            }
          }
        }
      }
      markup.element("p", ["class": "muted"], TransferWay.explanation.rule + " " + TransferWay.explanation.effect)
    }
  }

  private static func title(_ verdict: TransferAnswer.Verdict) -> String {
    switch verdict {
    case .yes: "Arrive"
    case .no: "Do not arrive"
    case .notKnown: "Not known"
    }
  }
}
