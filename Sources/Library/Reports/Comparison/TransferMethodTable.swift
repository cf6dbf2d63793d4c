import KeyhaulKit

/// A table of the number of items that each transfer method moves to another device.
struct TransferMethodTable {
  private let comparison: MigrationComparison

  init(_ comparison: MigrationComparison) { self.comparison = comparison }

  func write(to markup: inout HTMLWriter) {
    let verdicts = TransferAssessment.Verdict.allCases
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
          for method in TransferMethod.allCases {
            markup.element("tr") { markup in
              markup.element(
                "th", ["scope": "row"], method.displayName.prefix(1).uppercased() + method.displayName.dropFirst())
              for verdict in verdicts {
                markup.element("td", HumanReadable.grouped(comparison[method][verdict, default: 0]))
              }
            }
          }
        }
      }
      markup.element("p", ["class": "muted"], TransferMethod.explanation.rule + " " + TransferMethod.explanation.effect)
    }
  }

  private static func title(_ verdict: TransferAssessment.Verdict) -> String {
    switch verdict {
    case .yes: "Arrive"
    case .no: "Stay behind"
    case .notKnown: "Not known"
    }
  }
}
