import CArchive

/// The encoding in which libarchive reads and writes names. It is chosen so that libarchive does not change them.
///
/// libarchive converts names that a container marks as UTF-8 to the locale's character set, and composes accents. If
/// the set does not contain a character, the name is lost, or libarchive reads from `NULL`. A locale of the calling
/// thread prevents this, independent of the process's locale.
///
/// Source: libarchive 3.6, `archive_string.c`.
enum NameEncoding {
  /// ASCII. Names that cannot be converted are passed unchanged.
  case bytes
  /// UTF-8. Names that are marked as UTF-8 are also passed unchanged. Equals `bytes` if the system has no UTF-8 locale.
  case utf8

  private struct Locale: @unchecked Sendable {
    /// The locale, which is created once and never changed or freed.
    let handle: UnsafeMutableRawPointer?

    init(_ names: String...) { handle = names.lazy.compactMap { keyhaul_names_locale($0) }.first }
  }

  private static let ascii = Locale("C")
  /// The names of the locale on Linux and macOS.
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
    let previousLocale = keyhaul_use_locale(locale)
    defer { _ = keyhaul_use_locale(previousLocale) }
    return body()
  }
}
