import CArchive

/// How libarchive is made to hand names on as they are.
///
/// It converts a name that a container marks as UTF-8 to the character set of the locale, and composes accents on the
/// way. Where that set has no such character the name is lost, or it is `NULL` and libarchive itself reads from there. A
/// locale of the calling thread decides instead of whatever the process has set.
///
/// Source: libarchive 3.6, `archive_string.c`.
enum NameEncoding {
  /// ASCII: what cannot be converted is handed on byte for byte.
  case bytes
  /// UTF-8: what is marked as such is, too. As `bytes` where the system has no such locale.
  case utf8

  private struct Locale: @unchecked Sendable {
    /// Made once, and never changed or freed.
    let handle: UnsafeMutableRawPointer?

    init(_ names: String...) { handle = names.lazy.compactMap { keyhaul_names_locale($0) }.first }
  }

  private static let ascii = Locale("C")
  /// As it is called on Linux, and on macOS.
  private static let unicode = Locale("C.UTF-8", "C.utf8", "UTF-8", "en_US.UTF-8")

  private var locale: Locale {
    switch self {
    case .bytes: Self.ascii
    case .utf8: Self.unicode.handle == nil ? Self.ascii : Self.unicode
    }
  }

  /// Runs calls of libarchive that read or write names. No other code may run in the closure.
  func run<Value>(_ body: () -> Value) -> Value {
    guard let locale = locale.handle else { return body() }
    let former = keyhaul_use_locale(locale)
    defer { _ = keyhaul_use_locale(former) }
    return body()
  }
}
