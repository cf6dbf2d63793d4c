import Foundation
import KeychainRules
import KeyhaulKit
import Reports
import TestSupport
import Testing

/// Returns the lines of docs/Rules.md.
func linesOfRulesPage() throws -> [Substring] {
  try String(contentsOf: Repository.root.appending(path: "docs/Rules.md"), encoding: .utf8).split(separator: "\n")
}

@Suite("Explanations of terms")
struct GlossaryTermTests {
  @Test("Each term is explained completely, and no two terms have the same headline")
  func completeness() {
    for term in GlossaryTerm.allCases {
      let explanation = term.explanation
      // The shortest complete text is "Nothing.", with eight characters.
      for text in [explanation.rule, explanation.effect, explanation.action] {
        #expect(text.hasSuffix(".") && text.count > 7, "\(term)")
      }
      #expect(explanation.headline.count > 10 && !explanation.headline.hasSuffix("."), "\(term)")
      #expect(explanation.source?.contains(/Apple|NIST|SecItemDb|SecDb|Keyhaul/) == true, "\(term)")
    }
    #expect(Set(GlossaryTerm.allCases.map(\.id)).count == GlossaryTerm.allCases.count)
    #expect(Set(GlossaryTerm.allCases.map(\.explanation.headline)).count == GlossaryTerm.allCases.count)
  }

  @Test("There is a term for each reason, change and warning, and five more terms")
  func allTerms() {
    let otherTerms: [GlossaryTerm] = [.inferredSynchronizable, .removed, .preserved, .keybagMismatch, .sealBroken]
    let reasons = Reason.allCases.map(GlossaryTerm.reason)
    let changes = MigrationPlan.Change.allCases.map(GlossaryTerm.change)
    let warnings = ArrivalWarning.allCases.map(GlossaryTerm.warning)
    #expect(Set(GlossaryTerm.allCases) == Set(reasons + changes + warnings + otherTerms))
  }

  @Test("Each term has its row in docs/Rules.md", arguments: GlossaryTerm.allCases)
  func documented(_ term: GlossaryTerm) throws {
    let explanation = term.explanation
    let row =
      "| `\(term.id)` | \(explanation.headline) | \(explanation.rule) | \(explanation.effect) | "
      + "\(explanation.action) | \(explanation.source ?? "") |"
    #expect(try linesOfRulesPage().contains(Substring(row)), "docs/Rules.md lacks:\n\(row)")
  }

  @Test("The other methods for each reason have their row in docs/Rules.md", arguments: Reason.allCases)
  func documentedTransferMethods(_ reason: Reason) throws {
    let row = "| `\(reason.rawValue)` | \(reason.explanation.otherWays ?? "") |"
    #expect(try linesOfRulesPage().contains(Substring(row)), "docs/Rules.md lacks:\n\(row)")
  }

  @Test("Every reason has a complete explanation", arguments: Reason.allCases)
  func explanations(_ reason: Reason) {
    let explanation = reason.explanation
    let texts = [
      explanation.headline, explanation.rule, explanation.effect, explanation.action, explanation.source ?? "",
    ]
    for text in texts { #expect(text.count > 7, "\(reason)") }
    #expect(explanation.rule.hasSuffix(".") && explanation.effect.hasSuffix(".") && explanation.action.hasSuffix("."))
  }

  @Test("No two reasons have the same headline")
  func headlines() {
    #expect(Set(Reason.allCases.map(\.explanation.headline)).count == Reason.allCases.count)
  }

  @Test("The blind spots of a backup are all items that the rules exclude, except tombstones")
  func blindSpots() {
    #expect(Set(ExportExclusions.all.map(\.reason)).subtracting([.deleted]) == Set(BackupBlindSpots.reasons))
    #expect(BackupBlindSpots.reasons.count == 6)
    #expect(
      BackupBlindSpots.sentence
        == "A backup cannot show items that never entered it, and no report on a backup counts them: passcode-only items, "
        + "keys of a token, the system's own items, items that require authentication, copies of shared groups and "
        + "items of App Clips.")
  }
}
