public import KeyhaulKit

/// A report as one self-contained HTML file.
///
/// A pure function of what it was made of: no clock, no locale, no file; equal values are equal pages.
public protocol HTMLPage: Sendable {
  /// The page, in UTF-8 where it is written to a file.
  ///
  /// - Throws: Where the digest of its style sheet, which its content policy names, cannot be computed.
  func html() throws(DataProtectionError) -> String
}
