import KeyhaulKit

/// The Content Security Policy of a page. It allows one style sheet, and nothing else: no scripts, no requests, and no
/// forms.
///
/// Source: W3C, Content Security Policy Level 3.
enum ContentPolicy {
  /// Returns the policy that allows only this style sheet, by its digest.
  ///
  /// - Throws: `.cryptoFailed` if the digest cannot be computed.
  static func allowing(style sheet: String) throws(DataProtectionError) -> String {
    let digest = Base64Digits.text(of: try Digest.sha256(Array(sheet.utf8)))
    return "default-src 'none'; style-src 'sha256-\(digest)'; base-uri 'none'; form-action 'none'"
  }
}
