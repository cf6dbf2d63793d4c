import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul explain`: explains a term in a report, a protection class, an exit code or one of Apple's errors.
struct Explain: NumericArgumentCommand {
  static let helpScreen = HelpScreen(
    sentence: "Explain a term in a report, an exit code, or an error of Apple's",
    usage: "keyhaul explain [REASON|CLASS|FINDING|CODE|ERROR]",
    examples: ["keyhaul explain device-bound", "keyhaul explain 15", "keyhaul explain -25300"],
    flags: ["--json"])
  static let configuration = makeConfiguration(named: "explain")

  @Argument(
    help: ArgumentHelp(
      "A term such as keybag, a reason such as device-bound, a class such as cku, a finding such as digest-mismatch, an exit code, "
        + "a keychain status such as -25300 or errSecItemNotFound, or an error of a device's backup service such as MBErrorDomain/205. "
        + "Without one, explain lists all topics.",
      valueName: "topic"),
    completion: .list(Explanation.all.map(\.id)))
  var topic: String?
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    guard let topic else {
      try list(in: session)
      return .ok
    }
    let explanation = try Self.explanation(of: topic)
    if session.isJSON {
      try session.writeDocument(.object([("format", "explanation/1")] + explanation.fields))
    } else {
      for line in explanation.lines(style: session.resultStyle) { try session.print(line) }
    }
    return .ok
  }

  /// Finds a topic by its id, its exit code, or the name or number of one of Apple's errors.
  static func explanation(of topic: String) throws(CommandError) -> Explanation {
    let id = topic.lowercased().replacing(" ", with: "-")
    if let page = Explanation.all.first(where: { $0.id.lowercased() == id || $0.code.map(String.init) == id }) {
      return page
    }
    if let protection = ProtectionClass.allCases.first(where: { $0.word == id || $0.constant.lowercased() == id }) {
      return protection.explanation
    }
    // The exit code after a signal is 128 plus the signal's number, which is at most 64.
    if let code = Int(id), (129...192).contains(code), let signal = Explanation.exitCodes.last { return signal }
    if let name = AppleErrorName(parsing: topic) {
      if let page = name.page { return page }
      throw unexplained(name)
    }
    let similarID = EditDistance.nearest(to: id, among: Explanation.all.map(\.id))
    let similarPage = Explanation.all.first { $0.id == similarID }
    throw .usage(
      "there is no explanation of \"\(UntrustedText.shortened(topic, columns: 40))\"",
      why: similarPage.map { "\"\($0.id)\" is similar" },
      try: similarPage.map { "keyhaul explain \($0.id)" } ?? "keyhaul explain")
  }

  /// Returns the usage error for an error number of Apple's that has no page. It names the nearest number with a page.
  private static func unexplained(_ name: AppleErrorName) -> CommandError {
    let nearestPage = name.nearest
    switch name.domain {
    case .keychain:
      return .usage(
        "there is no explanation of the keychain status \(name.number)",
        why: nearestPage.flatMap { page in page.number.map { "the nearest number with one is \($0), \(page.id)" } },
        try: "security error \(name.number) on a Mac, which prints Apple's message")
    case .backup:
      return .usage(
        "there is no explanation of \(Explanation.backupErrorName(name.number))",
        why: "the numbers with one are \(HumanReadable.list(name.domain.pages.compactMap(\.number).map(String.init)))",
        try: nearestPage.map { "keyhaul explain \($0.id)" } ?? "keyhaul explain")
    }
  }

  /// Lists all topics.
  private func list(in session: Session) throws(CommandError) {
    if session.isJSON {
      try session.writeDocument([
        "format": "explanations/1", "topics": .array(Explanation.all.map { .object($0.fields) }),
      ])
      return
    }
    for (index, section) in Explanation.sections.enumerated() {
      if index > 0 { try session.print() }
      try session.print(section.title, .bold)
      let idColumns = section.numbers == .appleError ? Self.appleErrorIDColumns : Self.otherIDColumns
      for page in section.pages {
        let label = Self.numberCell(of: page, in: section) + DisplayWidth.padded(page.id, columns: idColumns) + "  "
        for line in WordWrap.labeled(label, page.headline, columns: session.resultStyle.width) {
          try session.print(line)
        }
      }
    }
  }

  /// The width of the column of numbers.
  private static let numberColumns = 7
  /// The width of the ids of Apple's errors, which are longer than other ids.
  private static let appleErrorIDColumns = Explanation.keychainStatuses.map(\.id.count).max() ?? 0
  /// The width of the ids of other topics.
  private static let otherIDColumns =
    Explanation.sections.filter { $0.numbers != .appleError }.flatMap(\.pages).map(\.id.count).max() ?? 0

  /// Returns the start of a topic's line: its number, if its section has numbers.
  private static func numberCell(of page: Explanation, in section: Explanation.Section) -> String {
    let number: String? =
      switch section.numbers {
      case .none: nil
      case .exitCode: page.code.map(String.init) ?? "128+n"
      case .appleError: page.number.map(String.init)
      }
    return (number.map { DisplayWidth.padded($0, columns: Self.numberColumns, rightAligned: true) } ?? "") + "  "
  }
}
