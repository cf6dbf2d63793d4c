import ArgumentParser

/// An argument that is one of a few keywords.
///
/// The parser's default for enumerations uses key paths, which would slow down the start of every command.
protocol KeywordArgument: ExpressibleByArgument, CaseIterable, RawRepresentable<String> {}

extension KeywordArgument {
  static var allValueStrings: [String] { allCases.map { $0.rawValue } }
  /// Empty, because the keywords need no explanation.
  static var allValueDescriptions: [String: String] { [:] }
}
