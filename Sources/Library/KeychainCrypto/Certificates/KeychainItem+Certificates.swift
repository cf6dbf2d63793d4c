import Basics
package import KeychainFormats

extension KeychainItem {
  /// Creates the item that results from adding a `SecCertificate`: the certificate's attributes, its bytes as the
  /// secret, and the subject's summary as the label. The caller sets the access group, protection and dates.
  ///
  /// Source: Apple `SecCertificate.c` (`SecCertificateCopyAttributeDictionary`), `SecItem.m` (the label).
  package init(_ certificate: CertificateAttributes) {
    self.init(kind: .certificate)
    self[.certificateType] = .integer(Int64(certificate.version))
    self[.certificateEncoding] = .integer(CertificateAttributes.encodingDER)
    self[.subject] = .data(certificate.subject)
    self[.issuer] = .data(certificate.issuer)
    self[.serialNumber] = .data(certificate.serialNumber)
    self[.subjectKeyID] = certificate.subjectKeyID.map { .data($0) }
    self[.publicKeyHash] = .data(certificate.publicKeyHash)
    self[.label] = certificate.subjectSummary.map { .string($0) }
    secret = SensitiveBytes(copying: certificate.der)
  }

  /// Creates the item that results from adding a `SecKey`: the attributes and uses of the key, and its bytes as the
  /// secret. The caller sets the label, application tag, access group, protection and dates.
  ///
  /// Unlike Apple's items, public keys are not marked as private, because the join for identities would match them.
  /// Source: Apple `SecKey.m` (`SecKeyCopyAttributeDictionaryWithLocalKey`).
  package init(_ key: KeyMaterial) {
    self.init(kind: .key)
    let isPrivate = key.role == .privateKey
    let oneIfPrivate: PropertyValue = .integer(isPrivate ? 1 : 0)
    let oneIfPublic: PropertyValue = .integer(isPrivate ? 0 : 1)
    attributes = [
      .keyClass: .integer(key.role.rawValue), .applicationLabel: .data(key.applicationLabel),
      .type: .integer(key.algorithm.keyType.rawValue), .keySizeInBits: .integer(Int64(key.sizeInBits)),
      .effectiveKeySize: .integer(Int64(key.sizeInBits)), .isPermanent: .integer(1), .isPrivate: oneIfPrivate,
      .isModifiable: .integer(1), .isSensitive: .integer(0), .wasAlwaysSensitive: .integer(0),
      .isExtractable: .integer(1), .wasNeverExtractable: .integer(0), .canEncrypt: oneIfPublic,
      .canDecrypt: oneIfPrivate, .canDerive: .integer(1), .canSign: oneIfPrivate, .canVerify: oneIfPublic,
      .canSignRecover: .integer(0), .canVerifyRecover: .integer(0), .canWrap: oneIfPublic, .canUnwrap: oneIfPrivate,
    ]
    secret = key.externalRepresentation
  }

  /// Returns whether a certificate and a private key form an identity: the hash of the certificate's public key equals
  /// the key's label. Source: Apple `SecItemServer.c` (the join of `keys` and `cert`).
  package func isIdentity(with key: KeychainItem) -> Bool {
    guard kind == .certificate, key.kind == .key, key[.isPrivate]?.integerValue == 1,
      let hash = self[.publicKeyHash]?.dataValue, !hash.isEmpty
    else { return false }
    return hash == key[.applicationLabel]?.dataValue
  }
}

extension CertificateAttributes {
  /// `CSSM_CERT_ENCODING_DER`, the value of `kSecAttrCertificateEncoding`.
  static let encodingDER: Int64 = 3
}
