/// The flags that change the format of an error. They are found without the parser, because the parser may have thrown
/// the error.
enum EarlyFlags {
  static func wantsJSON(_ arguments: ArraySlice<String>) -> Bool {
    arguments.contains { $0 == "--json" || $0 == "--fields" || $0.hasPrefix("--json=") || $0.hasPrefix("--fields=") }
      || arguments.contains("--format=json") || value(of: "--format", in: arguments) == "json"
  }

  static func color(_ arguments: ArraySlice<String>) -> ColorChoice {
    let joinedValue = arguments.last { $0.hasPrefix("--color=") }.map { String($0.dropFirst("--color=".count)) }
    return (joinedValue ?? value(of: "--color", in: arguments)).flatMap { ColorChoice(rawValue: $0) } ?? .auto
  }

  /// Returns the argument after the last occurrence of a flag; `nil` if there is none.
  private static func value(of flag: String, in arguments: ArraySlice<String>) -> String? {
    guard let index = arguments.lastIndex(of: flag), index + 1 < arguments.endIndex else { return nil }
    return arguments[index + 1]
  }
}
