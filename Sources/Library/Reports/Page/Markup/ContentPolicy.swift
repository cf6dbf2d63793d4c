package import KeyhaulKit

/// What a browser may do for a page: use its one style sheet, and nothing else. No script runs, nothing is fetched, no
/// form is sent, whatever slipped into the page.
///
/// Source: W3C, Content Security Policy Level 3.
package enum ContentPolicy {
  /// The policy that admits this style sheet by its digest, and no other style.
  package static func admitting(style sheet: String) throws(DataProtectionError) -> String {
    let digest = Base64Digits.text(of: try Digest.sha256(Array(sheet.utf8)))
    return "default-src 'none'; style-src 'sha256-\(digest)'; base-uri 'none'; form-action 'none'"
  }
}
