import Basics
import KeychainCrypto

/// The parsed name of an algorithm.
///
/// ```
/// algid:sign:RSA:raw                                algid:encrypt:RSA:raw, algid:encrypt:RSA:PKCS1
/// algid:sign:RSA:digest-PKCS1v15[:SHA256]           algid:encrypt:RSA:OAEP:SHA256[:AESGCM]
/// algid:sign:RSA:message-PSS:SHA256:SHA256:32       algid:encrypt:ECIES:ECDH:KDFX963:SHA256:AESGCM
/// algid:sign:ECDSA:message-X962:SHA256              algid:keyexchange:ECDH[:KDFX963:SHA256]
/// ```
enum ResolvedKeyAlgorithm: Hashable {
  /// The input of a signature: a message, which is hashed first, or a digest.
  enum Input: Hashable {
    case message(KeyDigest)
    /// A digest. If its algorithm is given, the digest must have the length of that algorithm.
    case digest(KeyDigest?)
  }

  case signature(SignatureScheme, Input)
  case encryption(KeyEncryption)
  /// A key exchange. Without a digest, the result is the shared secret itself.
  case exchange(KeyDigest?)

  /// Parses the name of an algorithm; `nil` if it is not an algorithm for keychain keys.
  init?(_ algorithm: SecKeyAlgorithm) {
    let parts = algorithm.name.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard parts.count >= 3, parts[0] == "algid" else { return nil }
    let scheme = Array(parts.dropFirst(2))
    let resolved: Self? =
      switch parts[1] {
      case "sign": Self.signature(scheme)
      case "encrypt": Self.encryption(scheme)
      case "keyexchange": Self.exchange(scheme)
      default: nil
      }
    guard let resolved else { return nil }
    self = resolved
  }

  private static func signature(_ parts: [String]) -> Self? {
    let parameters = Array(parts.dropFirst(2))
    let digest = parameters.first.flatMap(KeyDigest.init(rawValue:))
    guard parameters.isEmpty || digest != nil else { return nil }
    switch (parts.first, parts.dropFirst().first, parameters.count) {
    case ("RSA", "raw", 0): return .signature(.rsaRaw, .digest(nil))
    case ("RSA", "digest-PKCS1v15", 0...1): return .signature(.rsaPKCS1v15(digest), .digest(digest))
    case ("RSA", "message-PKCS1v15", 1): return digest.map { .signature(.rsaPKCS1v15($0), .message($0)) }
    case ("RSA", let padding, 3):
      // The parameters are the digest, the digest of the mask, and the length of the salt.
      guard let digest, parameters == [digest.rawValue, digest.rawValue, "\(digest.size)"] else { return nil }
      if padding == "digest-PSS" { return .signature(.rsaPSS(digest), .digest(digest)) }
      return padding == "message-PSS" ? .signature(.rsaPSS(digest), .message(digest)) : nil
    case ("ECDSA", "RFC4754", 0): return .signature(.ecdsaRFC4754, .digest(nil))
    case ("ECDSA", "digest-X962", 0...1): return .signature(.ecdsaX962, .digest(digest))
    case ("ECDSA", "digest-RFC4754", 0...1): return .signature(.ecdsaRFC4754, .digest(digest))
    case ("ECDSA", "message-X962", 1): return digest.map { .signature(.ecdsaX962, .message($0)) }
    case ("ECDSA", "message-RFC4754", 1): return digest.map { .signature(.ecdsaRFC4754, .message($0)) }
    default: return nil
    }
  }

  private static func encryption(_ parts: [String]) -> Self? {
    switch (parts.first, parts.dropFirst().first, parts.count) {
    case ("RSA", "raw", 2): return .encryption(.rsaRaw)
    case ("RSA", "PKCS1", 2): return .encryption(.rsaPKCS1)
    case ("RSA", "OAEP", 3): return KeyDigest(rawValue: parts[2]).map { .encryption(.rsaOAEP($0)) }
    case ("RSA", "OAEP", 4) where parts[3] == "AESGCM":
      return KeyDigest(rawValue: parts[2]).map { .encryption(.rsaOAEPWithSessionKey($0)) }
    case ("ECIES", "ECDH"?, 5), ("ECIES", "ECDHC"?, 5):
      guard parts[2] == "KDFX963", let digest = KeyDigest(rawValue: parts[3]) else { return nil }
      if parts[4] == "AESGCM" { return .encryption(.ecies(digest, derivesVector: false)) }
      return parts[4] == "AESGCM-KDFIV" && digest != .sha1 ? .encryption(.ecies(digest, derivesVector: true)) : nil
    default: return nil
    }
  }

  private static func exchange(_ parts: [String]) -> Self? {
    guard ["ECDH", "ECDHC"].contains(parts[0]) else { return nil }
    if parts.count == 1 { return .exchange(nil) }
    guard parts.count == 3, parts[1] == "KDFX963" else { return nil }
    return KeyDigest(rawValue: parts[2]).map { .exchange($0) }
  }

  /// The size of the largest session key in bytes, for AES-256.
  private static let maximumSessionKeyByteCount = 32

  /// Returns whether a key supports the operation. An RSA key must also be large enough for the padding.
  ///
  /// - Parameters:
  ///   - key: The key. For a private key on a token, its public key.
  ///   - role: The role of the key. For a key on a token, `.privateKey`.
  ///   - operation: The operation, which determines the role that the key must have.
  func isSupported(
    by key: KeyMaterial, role: KeyMaterial.Role, for operation: SecKeyOperationType
  ) -> Bool {
    let requiredRole: KeyMaterial.Role =
      switch operation {
      case .sign, .decrypt, .keyExchange: .privateKey
      case .verify, .encrypt: .publicKey
      }
    guard role == requiredRole else { return false }
    switch (self, operation) {
    case (.signature(let scheme, _), .sign), (.signature(let scheme, _), .verify):
      return scheme.keyType == key.algorithm.keyType && key.blockSize >= scheme.minimumBlockSize
    case (.encryption(let scheme), .encrypt), (.encryption(let scheme), .decrypt):
      guard scheme.keyType == key.algorithm.keyType else { return false }
      if case .rsaOAEPWithSessionKey(let digest) = scheme {
        return (key.maximumPlaintextByteCount(.rsaOAEP(digest)) ?? 0) >= Self.maximumSessionKeyByteCount
      }
      // `nil` means that the scheme has no limit.
      return (key.maximumPlaintextByteCount(scheme) ?? 1) > 0
    case (.exchange, .keyExchange): return key.algorithm.keyType == .ellipticCurve
    case (.signature, _), (.encryption, _), (.exchange, _): return false
    }
  }
}

extension SignatureScheme {
  /// The smallest RSA modulus with room for the padding, in bytes; 0 for elliptic curves.
  fileprivate var minimumBlockSize: Int {
    switch self {
    // A digest's identifier has up to 19 bytes (RFC 8017, 9.2), and the padding 11.
    case .rsaPKCS1v15(let digest?): digest.size + 19 + 11
    // The digest, a salt of the same size, and two bytes (RFC 8017, 9.1.1).
    case .rsaPSS(let digest): 2 * digest.size + 2
    case .rsaRaw, .rsaPKCS1v15(nil), .ecdsaX962, .ecdsaRFC4754: 0
    }
  }
}
