import ArchivedKeychain
import CommandSession
import Foundation
import KeychainFormats
import KeychainRules
import Migration

/// A file of expectations (format `plan-expectations/1`).
enum ExpectationFile {
  /// More than anyone writes by hand, in bytes.
  static let maximumByteCount = 16 << 20

  static func read(_ path: String, in session: Session) throws(CommandFailure) -> [PlanExpectation] {
    let bytes = try InputFile.read(path, atMost: maximumByteCount, what: "the expectations", in: session)
    do {
      let data = Data(bytes)
      // The decoder tells a mistake in the list from one in the text; this tells what is no JSON at all.
      _ = try JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed)
      return try JSONDecoder().decode(PlanExpectations.self, from: data).expectations
    } catch {
      throw CommandFailure(
        .refused, "\(InputFile.name(path)) is no list of expectations", why: reason(error),
        try: near(error).map { "\"\($0)\" in its place" } ?? example)
    }
  }

  private static let example =
    #"{"format": "\#(PlanExpectations.formatName)", "expectations": [{"service": "…", "expect": "migrates"}]}"#

  private static func unknown(_ error: any Error) -> PlanExpectations.UnknownWord? {
    guard case .dataCorrupted(let context)? = error as? DecodingError else { return nil }
    return context.underlyingError as? PlanExpectations.UnknownWord
  }

  /// The word that a mistyped one was probably meant to be.
  private static func near(_ error: any Error) -> String? {
    unknown(error).flatMap { EditDistance.nearest(to: $0.word, among: $0.known) }
  }

  /// The decoder's finding in a sentence, with its place.
  private static func reason(_ error: any Error) -> String {
    guard let error = error as? DecodingError else { return "it is not JSON" }
    func place(_ path: [any CodingKey]) -> String {
      guard let index = path.compactMap(\.intValue).first else { return "" }
      return "expectation \(index + 1): "
    }
    switch error {
    case .dataCorrupted(let context):
      let finding = unknown(error).flatMap { word in near(error).map { "\(word.finding); \"\($0)\" is near" } }
      return place(context.codingPath) + (finding ?? context.debugDescription)
    case .keyNotFound(let key, let context): return place(context.codingPath) + "it has no \(key.stringValue)"
    case .typeMismatch(_, let context), .valueNotFound(_, let context):
      let name = context.codingPath.last { $0.intValue == nil }?.stringValue ?? "the document"
      return place(context.codingPath) + "\(name) is of another type"
    @unknown default: return "it is not as the format says"
    }
  }
}

/// `plan --expect` (format `plan-expectation-result/1`): one line for each miss, and the count.
struct ExpectationReport: Report {
  let expectations: [PlanExpectation]
  let plan: MigrationPlan
  let document: PlanDocument
  let misses: [PlanExpectation.Miss]
  private let source: MoveSource
  private let missedCount: Int

  init(expectations: [PlanExpectation], _ report: PlanReport) {
    self.expectations = expectations
    plan = report.plan
    document = report.document
    source = report.source
    misses = report.plan.misses(of: expectations)
    missedCount = expectations.count { !$0.misses(in: report.plan).isEmpty }
  }

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    var lines = misses.map { style.adapted(HostileText.shown(line(of: $0))) }
    if showsAll {
      for expectation in expectations where expectation.misses(in: plan).isEmpty {
        let count = plan.decisions(for: expectation.matcher).count
        lines.append(
          style.adapted(
            HostileText.shown(
              "met: \(Self.name(expectation.matcher)): \(expectation.fate.rawValue) (\(Amounts.count(count, "item")))"))
        )
      }
    }
    lines += source.unseenLines(style: style)
    let met = expectations.count - missedCount
    lines.append("\(Amounts.grouped(met)) of \(Amounts.count(expectations.count, "expectation")) met.")
    return lines
  }

  /// "missed: generic "chat.example · push token": expected migrates, but it stays-behind (device-bound)"
  private func line(of miss: PlanExpectation.Miss) -> String {
    let wanted = miss.expectation
    var expected = "expected \(wanted.fate.rawValue)"
    if let reason = wanted.reason { expected += " (\(reason.rawValue))" }
    guard let decision = miss.decision else {
      let sealed = miss.sealedCount
      let sealedWords = "\(Amounts.count(sealed, "sealed item")) in the plan \(sealed == 1 ? "has" : "have") no name"
      if sealed > 0, wanted.fate == .absent || !plan.decisions(for: wanted.matcher).isEmpty {
        return "missed: \(Self.name(wanted.matcher)): \(expected), which cannot be known: \(sealedWords)"
      }
      var hint = ""
      if sealed > 0 {
        hint = " (\(sealedWords))"
      } else if document.source.kind == .archive, wanted.fate == .staysBehind {
        hint = " (what never enters a backup is absent from a plan of one)"
      }
      return "missed: \(Self.name(wanted.matcher)): \(expected), but no item matches\(hint)"
    }
    let name = "\(ItemText.kind(decision.identity.kind)) \"\(ItemText.name(decision.identity))\""
    let why = decision.outcome.reason?.rawValue ?? decision.outcome.change?.rawValue ?? ""
    let detail = decision.detail.map { ": \($0)" } ?? ""
    return "missed: \(name): \(expected), the plan says \(decision.outcome.fate.rawValue) (\(why)\(detail))"
  }

  /// "kind key, label ssh*"
  private static func name(_ matcher: ItemMatcher) -> String {
    fields(matcher).map { "\($0.0) \($0.1)" }.joined(separator: ", ")
  }

  private static func fields(_ matcher: ItemMatcher) -> [(String, String)] {
    let patterns = [
      ("label", matcher.label), ("account", matcher.account), ("service", matcher.service),
      ("server", matcher.server), ("access_group", matcher.accessGroup),
    ]
    return (matcher.kind.map { [("kind", $0.reportName)] } ?? [])
      + patterns.compactMap { name, pattern in pattern.map { (name, $0.source) } }
  }

  var json: JSONValue {
    let answer: JSONValue = [
      "format": "plan-expectation-result/1", "source": document.source.json, "target": document.target.json,
      "expectations": .count(expectations.count), "met": .count(expectations.count - missedCount),
      "misses": .array(
        misses.map { miss in
          var expected = Self.fields(miss.expectation.matcher).map { ($0.0, JSONValue.string($0.1)) }
          expected.append(("expect", .string(miss.expectation.fate.rawValue)))
          if let reason = miss.expectation.reason { expected.append(("reason", .string(reason.rawValue))) }
          return .object(
            [
              ("expected", .object(expected)), ("item", miss.decision.map { PlanDocument.Item($0).json } ?? .null),
            ] + (miss.sealedCount > 0 ? [("sealed", .count(miss.sealedCount))] : []))
        }),
    ]
    return answer.adding(source.unseenFields)
  }
}
