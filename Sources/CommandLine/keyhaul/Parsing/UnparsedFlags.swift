/// The flags that decide about the form of an error, found without the parser: it may be the parser's error.
enum UnparsedFlags {
  static func wantsJSON(_ arguments: ArraySlice<String>) -> Bool {
    arguments.contains { $0 == "--json" || $0 == "--fields" || $0.hasPrefix("--json=") || $0.hasPrefix("--fields=") }
      || arguments.contains("--format=json") || value(of: "--format", in: arguments) == "json"
  }

  static func color(_ arguments: ArraySlice<String>) -> ColorChoice {
    let joined = arguments.last { $0.hasPrefix("--color=") }.map { String($0.dropFirst("--color=".count)) }
    return (joined ?? value(of: "--color", in: arguments)).flatMap { ColorChoice(rawValue: $0) } ?? .auto
  }

  private static func value(of flag: String, in arguments: ArraySlice<String>) -> String? {
    guard let index = arguments.lastIndex(of: flag), index + 1 < arguments.endIndex else { return nil }
    return arguments[index + 1]
  }
}
