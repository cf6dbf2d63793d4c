package import Basics
import COpenSSL

extension KeyMaterial {
  /// The key in PEM for other programs: a private key as PKCS#8 (RFC 5958), a public key as SubjectPublicKeyInfo (RFC
  /// 5280, 4.1.2.7).
  ///
  /// - Throws: `.failed` if OpenSSL rejects the key.
  package var pem: SensitiveBytes {
    get throws(CertificateError) {
      switch role {
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

  /// Calls a closure with the DER of the PKCS#8 structure, which is then overwritten.
  private func withPrivateKeyInfo<Result>(
    _ body: (UnsafeRawBufferPointer) -> Result
  ) throws(CertificateError) -> Result {
    let key = try KeyHandle(self)
    guard let info = EVP_PKEY2PKCS8(key.handle) else { throw .openSSL("EVP_PKEY2PKCS8") }
    defer { PKCS8_PRIV_KEY_INFO_free(info) }
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = Int(i2d_PKCS8_PRIV_KEY_INFO(info, &bytes))
    guard count > 0, let bytes else { throw .openSSL("i2d_PKCS8_PRIV_KEY_INFO") }
    defer { CRYPTO_clear_free(bytes, count, #file, #line) }
    return body(UnsafeRawBufferPointer(start: bytes, count: count))
  }

  /// The DER of the algorithm's own structure: the stored RSAPrivateKey (RFC 8017, A.1.2), or an ECPrivateKey (RFC
  /// 5915) that is built from 04‖X‖Y‖K.
  var privateKeyStructure: SensitiveBytes {
    guard case .ellipticCurve(let curve) = algorithm else { return externalRepresentation }
    let version = ASN1Encoding.element(.integer, [1])
    let curveAndPublicKey =
      ASN1Encoding.element(.explicit(0), ASN1Encoding.element(.objectIdentifier, curve.identifier))
      + ASN1Encoding.element(.explicit(1), ASN1Encoding.element(.bitString, [0] + publicKey))
    let size = curve.coordinateSize
    // A coordinate has at most 66 bytes, so its length takes one byte.
    let scalarHeader = ASN1Encoding.header(.octetString, size)
    let header = ASN1Encoding.header(
      .sequence, version.count + scalarHeader.count + size + curveAndPublicKey.count)
    var buffer = SensitiveBuffer()
    for part in [header, version, scalarHeader] { part.withRawBytes { buffer.append($0) } }
    externalRepresentation.withBytes { buffer.append(UnsafeRawBufferPointer(rebasing: $0.suffix(size))) }
    curveAndPublicKey.withRawBytes { buffer.append($0) }
    return buffer.bytes()
  }
}

extension CertificateAttributes {
  /// The certificate in PEM for other programs.
  package var pem: SensitiveBytes { der.withRawBytes { PEM.encode("CERTIFICATE", $0) } }
}
