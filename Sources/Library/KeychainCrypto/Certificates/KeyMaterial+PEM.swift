public import Basics
internal import COpenSSL
import KeychainFormats

extension KeyMaterial {
  /// The key as other programs read it: a private one as PKCS#8 (RFC 5958), a public one as SubjectPublicKeyInfo
  /// (RFC 5280, 4.1.2.7), in PEM.
  ///
  /// - Throws: `.failed` where OpenSSL refuses the key.
  public var pem: SensitiveBytes {
    get throws(MaterialError) {
      switch half {
      case .publicKey: return publicKeyInfo.withRawBytes { PEM.encode("PUBLIC KEY", $0) }
      case .privateKey:
        return try withPrivateKeyInfo { (bytes) in PEM.encode("PRIVATE KEY", bytes) }
      }
    }
  }

  /// The DER of the SubjectPublicKeyInfo.
  var publicKeyInfo: [UInt8] {
    let parameters =
      switch algorithm {
      case .rsa: ASN1Encoding.element(.null, [])
      case .ellipticCurve(let curve): ASN1Encoding.element(.objectIdentifier, curve.identifier)
      }
    let identifier =
      switch algorithm {
      case .rsa: AlgorithmIdentifier.rsaEncryption
      case .ellipticCurve: AlgorithmIdentifier.ecPublicKey
      }
    let algorithmIdentifier = ASN1Encoding.element(
      .sequence, ASN1Encoding.element(.objectIdentifier, identifier) + parameters)
    return ASN1Encoding.element(.sequence, algorithmIdentifier + ASN1Encoding.element(.bitString, [0] + publicKey))
  }

  /// Lends the DER of the PKCS#8 structure, which is overwritten afterwards.
  private func withPrivateKeyInfo<Result>(
    _ body: (UnsafeRawBufferPointer) -> Result
  ) throws(MaterialError) -> Result {
    let key = try KeyHandle(self)
    guard let info = EVP_PKEY2PKCS8(key.handle) else { throw .openSSL("EVP_PKEY2PKCS8") }
    defer { PKCS8_PRIV_KEY_INFO_free(info) }
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = Int(i2d_PKCS8_PRIV_KEY_INFO(info, &bytes))
    guard count > 0, let bytes else { throw .openSSL("i2d_PKCS8_PRIV_KEY_INFO") }
    defer { CRYPTO_clear_free(bytes, count, #file, #line) }
    return body(UnsafeRawBufferPointer(start: bytes, count: count))
  }

  /// The DER of the algorithm's own structure: RSAPrivateKey as it is stored (RFC 8017, A.1.2), or ECPrivateKey
  /// (RFC 5915) made of 04‖X‖Y‖K.
  var privateKeyStructure: SensitiveBytes {
    guard case .ellipticCurve(let curve) = algorithm else { return externalRepresentation }
    let before = ASN1Encoding.element(.integer, [1])
    let after =
      ASN1Encoding.element(.explicit(0), ASN1Encoding.element(.objectIdentifier, curve.identifier))
      + ASN1Encoding.element(.explicit(1), ASN1Encoding.element(.bitString, [0] + publicKey))
    let size = curve.coordinateSize
    // A coordinate has at most 66 bytes, so that its length is one byte.
    let number = ASN1Encoding.header(.octetString, size)
    let header = ASN1Encoding.header(.sequence, before.count + number.count + size + after.count)
    var buffer = SensitiveBuffer()
    for part in [header, before, number] { part.withRawBytes { buffer.append($0) } }
    externalRepresentation.withBytes { buffer.append(UnsafeRawBufferPointer(rebasing: $0.suffix(size))) }
    after.withRawBytes { buffer.append($0) }
    return buffer.bytes()
  }
}

extension CertificateFacts {
  /// The certificate as other programs read it.
  public var pem: SensitiveBytes { der.withRawBytes { PEM.encode("CERTIFICATE", $0) } }
}

/// A key of OpenSSL, wiped at its end.
struct KeyHandle: ~Copyable {
  let handle: OpaquePointer

  /// - Throws: `.failed` where OpenSSL does not take the key.
  init(_ key: KeyMaterial) throws(MaterialError) {
    switch key.half {
    case .publicKey:
      handle = try key.publicKeyInfo.withRawBytes { (bytes) throws(MaterialError) in
        var position = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        return try Self.checked(d2i_PUBKEY(nil, &position, bytes.count), "d2i_PUBKEY")
      }
    case .privateKey:
      handle = try key.privateKeyStructure.withBytes { (bytes) throws(MaterialError) in
        var position = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        return try Self.checked(d2i_AutoPrivateKey(nil, &position, bytes.count), "d2i_AutoPrivateKey")
      }
    }
  }

  private static func checked(_ handle: OpaquePointer?, _ call: String) throws(MaterialError) -> OpaquePointer {
    guard let handle else {
      ERR_clear_error()
      throw .openSSL(call)
    }
    return handle
  }

  deinit { EVP_PKEY_free(handle) }
}

extension PEM {
  /// Digits on a line (RFC 7468, section 2).
  private static let lineLength = 64

  static func encode(_ label: String, _ contents: UnsafeRawBufferPointer) -> SensitiveBytes {
    var buffer = SensitiveBuffer()
    buffer.append("-----BEGIN \(label)-----\n")
    var column = 0
    Base64Digits.forEach(of: contents) { digit in
      if column == lineLength {
        buffer.append(UInt8(ascii: "\n"))
        column = 0
      }
      buffer.append(digit)
      column += 1
    }
    buffer.append("\n-----END \(label)-----\n")
    return buffer.bytes()
  }
}
