import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul explain [REASON|CLASS|FINDING|CODE]`: what a word of a report, a protection class or an exit code means.
struct Explain: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Explain a term in a report, a protection class, or an exit code",
    usage: "keyhaul explain [REASON|CLASS|FINDING|CODE]",
    examples: ["keyhaul explain device-bound", "keyhaul explain 15"],
    flags: ["--json"])
  static let configuration = described(as: "explain")

  @Argument(
    help: ArgumentHelp(
      "A term such as keybag, a reason such as device-bound, a class such as cku, a finding such as digest-mismatch, or an exit code. Without "
        + "one, explain lists all topics.",
      valueName: "topic"),
    completion: .list(Explanation.all.map(\.id)))
  var topic: String?
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    guard let topic else {
      try list(in: session)
      return .ok
    }
    let explanation = try Self.explanation(of: topic)
    if session.isJSON {
      try session.answer(.object([("format", "explanation/1")] + explanation.fields))
    } else {
      for line in explanation.lines(style: session.resultStyle) { try session.say(line) }
    }
    return .ok
  }

  /// Finds a topic by its id or its exit code.
  static func explanation(of topic: String) throws(CommandFailure) -> Explanation {
    let word = topic.lowercased().replacing(" ", with: "-")
    if let found = Explanation.all.first(where: { $0.id == word || $0.code.map(String.init) == word }) { return found }
    if let named = ProtectionClass.allCases.first(where: { $0.word == word || $0.constant.lowercased() == word }) {
      return named.explanation
    }
    if let code = Int(word), (129...192).contains(code), let signal = Explanation.exitCodes.last { return signal }
    let near = EditDistance.nearest(to: word, among: Explanation.all.map(\.id))
    throw .usage(
      "there is no explanation of \"\(UntrustedText.shortened(topic, columns: 40))\"",
      why: near.map { "\"\($0)\" is similar" },
      try: near.map { "keyhaul explain \($0)" } ?? "keyhaul explain")
  }

  private func list(in session: Session) throws(CommandFailure) {
    if session.isJSON {
      try session.answer(["format": "explanations/1", "topics": .array(Explanation.all.map { .object($0.fields) })])
      return
    }
    let widest = Explanation.all.map(\.id.count).max() ?? 0
    func entry(_ explanation: Explanation, isCode: Bool) throws(CommandFailure) {
      let number = explanation.code.map(String.init) ?? (isCode ? "128+n" : "")
      let label =
        (isCode ? DisplayWidth.padded(number, columns: 7, rightAligned: true) + "  " : "  ")
        + DisplayWidth.padded(explanation.id, columns: widest) + "  "
      let lines = WordWrap.labeled(label, explanation.headline, columns: session.resultStyle.width)
      for line in lines { try session.say(line) }
    }
    try session.say("Possible results for an item", .bold)
    for explanation in Explanation.fates { try entry(explanation, isCode: false) }
    try session.say()
    try session.say("Reasons in a report", .bold)
    for explanation in Explanation.terms { try entry(explanation, isCode: false) }
    try session.say()
    try session.say("Ways to transfer items to another device", .bold)
    for explanation in Explanation.ways { try entry(explanation, isCode: false) }
    try session.say()
    try session.say("Terms", .bold)
    for explanation in Explanation.vocabulary { try entry(explanation, isCode: false) }
    try session.say()
    try session.say("Results for a backup", .bold)
    for explanation in Explanation.results { try entry(explanation, isCode: false) }
    try session.say()
    try session.say("Protection classes", .bold)
    for explanation in Explanation.classes { try entry(explanation, isCode: false) }
    try session.say()
    try session.say("Findings in a backup", .bold)
    for explanation in Explanation.findings + Explanation.faults { try entry(explanation, isCode: false) }
    try session.say()
    try session.say("Exit codes", .bold)
    for explanation in Explanation.exitCodes { try entry(explanation, isCode: true) }
  }
}
