public import KeyhaulKit

/// A report as one self-contained HTML file.
///
/// A page depends only on its values, not on a clock, a locale or a file. Equal values give equal pages.
public protocol HTMLPage: Sendable {
  /// Returns the page as one document. Files contain it in UTF-8.
  ///
  /// - Throws: `.cryptoFailed` if the style sheet's digest cannot be computed.
  func html() throws(DataProtectionError) -> String
}
