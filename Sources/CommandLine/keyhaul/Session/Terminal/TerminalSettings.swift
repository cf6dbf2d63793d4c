#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// When text is colored.
enum ColorChoice: String, CaseIterable, Sendable {
  case auto
  case always
  case never
}

/// What the environment says about the place that text goes to. Pure, so that every combination has a test.
struct TerminalSettings: Sendable {
  static let defaultWidth = 80

  let environment: [String: String]
  let color: ColorChoice

  /// The style of a stream.
  ///
  /// - Parameters:
  ///   - isTerminal: Whether this stream, not another, is a terminal.
  ///   - terminalWidth: What the terminal itself says, if it does.
  func style(isTerminal: Bool, terminalWidth: Int?) -> TextStyle {
    TextStyle(
      width: width(terminalWidth: terminalWidth), usesColor: usesColor(isTerminal: isTerminal),
      isUnicode: isUnicode, cutsText: isTerminal || columns != nil)
  }

  /// The width that the user asks for; `nil` if the environment names none.
  private var columns: Int? {
    environment["COLUMNS"].flatMap { Int($0) }.flatMap { (20...10_000).contains($0) ? $0 : nil }
  }

  /// `NO_COLOR` counts where it is not empty (no-color.org); `--color always` overrides all.
  func usesColor(isTerminal: Bool) -> Bool {
    switch color {
    case .always: true
    case .never: false
    case .auto: isTerminal && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
    }
  }

  /// `COLUMNS`, else the terminal's own word, else 80.
  func width(terminalWidth: Int?) -> Int {
    if let columns { return columns }
    if let terminalWidth, terminalWidth >= 20 { return terminalWidth }
    return Self.defaultWidth
  }

  /// The first of `LC_ALL`, `LC_CTYPE` and `LANG` that is set decides, as POSIX has it. macOS is UTF-8 where none is.
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

  /// The width that the terminal behind a descriptor reports.
  static func reportedWidth(of descriptor: Int32) -> Int? {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }
}
