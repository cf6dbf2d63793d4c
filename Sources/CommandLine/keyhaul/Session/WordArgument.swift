import ArgumentParser

/// An argument that is one of a few words.
///
/// The parser would find out about the words with key paths, which a short command notices at its start.
protocol WordArgument: ExpressibleByArgument, CaseIterable, RawRepresentable<String> {}

extension WordArgument {
  static var allValueStrings: [String] { allCases.map { $0.rawValue } }
  /// None: the words say it.
  static var allValueDescriptions: [String: String] { [:] }
}
