import KeyhaulKit

/// An account of an authenticator app, as an item stores it: an `otpauth` address with its secret.
///
/// There are three formats:
///
/// - Many apps store the complete address in the item's secret.
/// - Authenticator and the published version of Google Authenticator keep the secret separate. The item's generic attribute
///   contains the address without the secret. The item's secret contains the bytes of the secret.
/// - Tofu stores the parts of the address in a keyed archive.
///
/// Sources: Google Authenticator, "Key Uri Format"
/// (https://github.com/google/google-authenticator/wiki/Key-Uri-Format); mattrubin/OneTimePassword, `Keychain.swift`;
/// Tofu, `Keychain.swift` and `Account.swift`.
struct OneTimePassword: Sendable {
  /// The address, with its secret in plain Base32. If the secret is not Base32, this is the stored address.
  let address: SensitiveBytes
  /// The parts of the address, or the reason why an authenticator could not use it.
  let parameters: Result<Parameters, Problem>

  /// The parts of an address.
  struct Parameters: Sendable {
    /// The secret as uppercase Base32 digits, without padding.
    var secret = SensitiveBytes(copying: [])
    /// The service that the account belongs to; empty if the address does not name one.
    var issuer = ""
    /// The name of the account; empty if the address does not name one.
    var account = ""
    /// The hash algorithm.
    var algorithm = Algorithm.sha1
    /// The number of digits of a code: 1 to 10.
    var digitCount: UInt8 = 6
    /// The time or the counter that a code is computed from.
    var factor = Factor.time(period: 30)
  }

  /// The hash algorithms that addresses name.
  enum Algorithm: String, Sendable {
    case sha1 = "SHA1"
    case sha256 = "SHA256"
    case sha512 = "SHA512"
    case md5 = "MD5"
  }

  /// The value that changes from one code to the next.
  enum Factor: Sendable, Equatable {
    /// The time; a code is valid for `period` seconds.
    case time(period: UInt32)
    /// The number of codes used before.
    case counter(UInt64)
  }

  /// A reason why an address cannot be used, as the end of a sentence.
  enum Problem: String, Error {
    case noSecret = "its address contains no secret"
    case notBase32 = "its secret is not Base32"
    case unknownType = "its codes are based neither on the time nor on a counter"
    case unknownAlgorithm = "its hash algorithm is unknown"
    case digitCount = "its number of digits is not between 1 and 10"
    case period = "its period is not a number of seconds"
    case counter = "its counter is not a number"
    case repeatedParameter = "its address contains a parameter twice"
  }

  /// Reads the one-time password of an item.
  ///
  /// - Returns: `nil` if the item is not from an authenticator app.
  init?(_ item: KeychainItem) {
    guard let secret = item.secret, !secret.isEmpty else { return nil }
    if secret.withBytes({ OTPAuthURIReader.isAddress($0) }) {
      self = secret.withBytes { Self($0, rawSecret: nil) }
      return
    }
    if let archived = secret.withBytes({ Self(archived: $0) }) {
      self = archived
      return
    }
    let password: OneTimePassword? = Array(item.text(of: .generic).utf8).withUnsafeBytes { bytes in
      guard OTPAuthURIReader.isAddress(bytes), !OTPAuthURIReader.containsSecret(bytes) else { return nil }
      return Self(bytes, rawSecret: secret)
    }
    guard let password else { return nil }
    self = password
  }

  /// Reads Tofu's format: a byte for the version (1 or 2), and a keyed archive.
  ///
  /// - Returns: `nil` if the bytes do not have this format.
  private init?(archived bytes: UnsafeRawBufferPointer) {
    guard let version = bytes.first, version == 1 || version == 2,
      let archive = try? KeyedArchive(UnsafeRawBufferPointer(rebasing: bytes.dropFirst())),
      let secret = try? archive.data("secret"), !secret.isEmpty, let isTimed = try? archive.boolean("timeBased"),
      let algorithmNumber = try? archive.integer("algorithm"),
      let algorithm = [0: "SHA1", 1: "SHA256", 2: "SHA512"][algorithmNumber]
    else { return nil }
    let issuer = (try? archive.string("issuer")) ?? ""
    let account = (try? archive.string("name")) ?? ""
    let label = [issuer, account].filter { !$0.isEmpty }.map(Percent.encoded).joined(separator: ":")
    var query = ["algorithm=\(algorithm)", "digits=\((try? archive.integer("digits")) ?? 6)"]
    if isTimed {
      query.append("period=\((try? archive.integer("period")) ?? 30)")
    } else {
      query.append("counter=\((try? archive.integer("counter")) ?? 0)")
    }
    if !issuer.isEmpty { query.append("issuer=\(Percent.encoded(issuer))") }
    let address = "otpauth://\(isTimed ? "totp" : "hotp")/\(label)?\(query.joined(separator: "&"))"
    self = Array(address.utf8).withUnsafeBytes { Self($0, rawSecret: secret) }
  }

  /// Reads an address.
  ///
  /// - Parameters:
  ///   - bytes: The address.
  ///   - rawSecret: The secret, if the address does not contain one.
  init(_ bytes: UnsafeRawBufferPointer, rawSecret: SensitiveBytes?) {
    var reader = OTPAuthURIReader()
    if let rawSecret { reader.add(rawSecret: rawSecret) }
    let problem = reader.read(bytes)
    address = reader.address()
    parameters = problem.map { .failure($0) } ?? .success(reader.parameters)
  }
}

extension OneTimePassword {
  /// The SHA-256 digest of the secret, the names and the parameters, or of the address if an authenticator could not use
  /// it; `nil` if the digest cannot be computed.
  var digest: [UInt8]? {
    var text = SensitiveBuffer()
    switch parameters {
    case .failure: address.withBytes { text.append($0) }
    case .success(let parameters):
      parameters.secret.withBytes { text.append($0) }
      let otherParts = [
        parameters.issuer, parameters.account, parameters.algorithm.rawValue, "\(parameters.digitCount)",
        "\(parameters.factor)",
      ]
      for part in otherParts { text.append("\0" + part) }
    }
    return text.withBytes { bytes in try? Digest.sha256(bytes) }
  }
}
