import KeyhaulKit

/// A value of `--color`.
enum ColorChoice: String, CaseIterable, Sendable {
  case auto
  case always
  case never
}

/// The settings for the style of output: environment variables and `--color`. Does no I/O, so that every combination
/// can be tested.
struct TerminalSettings: Sendable {
  static let defaultWidth = 80

  let environment: [String: String]
  let color: ColorChoice

  /// Returns the style for a stream.
  ///
  /// - Parameters:
  ///   - isTerminal: Whether this stream is a terminal.
  ///   - terminalWidth: The width that the terminal reports; `nil` if it reports none.
  func style(isTerminal: Bool, terminalWidth: Int?) -> TextStyle {
    TextStyle(
      width: width(terminalWidth: terminalWidth), usesColor: usesColor(isTerminal: isTerminal),
      isUnicode: isUnicode, cutsText: isTerminal || columns != nil)
  }

  /// The width that the user requested; `nil` if `COLUMNS` does not state one.
  private var columns: Int? {
    environment["COLUMNS"].flatMap { Int($0) }.flatMap { (20...10_000).contains($0) ? $0 : nil }
  }

  /// Returns whether to use color. `NO_COLOR` counts if it is not empty (no-color.org), but `--color always` overrides
  /// it.
  func usesColor(isTerminal: Bool) -> Bool {
    switch color {
    case .always: true
    case .never: false
    case .auto: isTerminal && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
    }
  }

  /// Returns the width: `COLUMNS`, or the width that the terminal reports, or 80.
  func width(terminalWidth: Int?) -> Int {
    if let columns { return columns }
    if let terminalWidth, terminalWidth >= 20 { return terminalWidth }
    return Self.defaultWidth
  }

  /// Whether the locale uses UTF-8. The first of `LC_ALL`, `LC_CTYPE` and `LANG` that is set decides, as POSIX
  /// requires. If none is set, macOS uses UTF-8.
  var isUnicode: Bool {
    for variable in ["LC_ALL", "LC_CTYPE", "LANG"] {
      guard let value = environment[variable], !value.isEmpty else { continue }
      let name = value.lowercased()
      return name.contains("utf-8") || name.contains("utf8")
    }
    #if canImport(Darwin)
      return true
    #else
      return false
    #endif
  }
}
