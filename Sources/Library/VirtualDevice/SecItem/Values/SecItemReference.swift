import Basics
package import KeychainFormats

/// The value of `v_Ref` and `r_Ref`: a certificate, a key, or both parts of an identity, with attributes and bytes
/// (`v_Data`). Passwords have no references.
///
/// Source: Apple `SecItem.m` (`SecItemCopyAttributeDictionary`, `SecItemCreateFromAttributeDictionary`).
package enum SecItemReference: Sendable, Equatable, CustomStringConvertible {
  /// A certificate, with its DER encoding in `v_Data`.
  case certificate(KeychainItem)
  /// A key, with its own encoding in `v_Data`.
  case key(KeychainItem)
  /// A certificate and the private key with the same public key (`pkhh` equals `klbl`).
  case identity(certificate: KeychainItem, key: KeychainItem)

  /// The certificate, also of an identity; `nil` if it is a key.
  package var certificate: KeychainItem? {
    switch self {
    case .certificate(let item), .identity(let item, _): item
    case .key: nil
    }
  }

  /// The key, also of an identity; `nil` if it is a certificate.
  package var key: KeychainItem? {
    switch self {
    case .key(let item), .identity(_, let item): item
    case .certificate: nil
    }
  }

  package static func == (left: SecItemReference, right: SecItemReference) -> Bool {
    func isSame(_ left: KeychainItem, _ right: KeychainItem) -> Bool {
      guard left.kind == right.kind, left.attributes == right.attributes else { return false }
      guard left.secrets.count == right.secrets.count else { return false }
      return left.secrets.allSatisfy { code, bytes in right.secrets[code]?.constantTimeEquals(bytes) ?? false }
    }
    switch (left, right) {
    case (.certificate(let left), .certificate(let right)), (.key(let left), .key(let right)):
      return isSame(left, right)
    case (.identity(let leftCertificate, let leftKey), .identity(let rightCertificate, let rightKey)):
      return isSame(leftCertificate, rightCertificate) && isSame(leftKey, rightKey)
    default: return false
    }
  }

  package var description: String {
    switch self {
    case .certificate: "<certificate>"
    case .key: "<key>"
    case .identity: "<identity>"
    }
  }
}
