import Basics
internal import COpenSSL
internal import KeychainFormats

/// The contents of a PKCS#12 file's bags.
struct PKCS12Bags {
  let password: PKCS12Password
  private(set) var keys: [PKCS12File.Key] = []
  private(set) var certificates: [CertificateAttributes] = []

  init(password: PKCS12Password) { self.password = password }

  /// Adds the contents of bags.
  ///
  /// - Parameters:
  ///   - bags: A stack of `PKCS12_SAFEBAG`, which the caller still owns.
  ///   - budget: The number of iterations that the file may still require.
  ///   - depth: The number of bags that contain these bags.
  mutating func add(_ bags: OpaquePointer, _ budget: inout IterationBudget, depth: Int) throws(CertificateError) {
    guard depth < PKCS12File.maximumDepth else {
      throw CertificateError(.overLimit, "its bags are nested too deeply")
    }
    for index in 0..<OPENSSL_sk_num(bags) {
      guard let value = OPENSSL_sk_value(bags, index) else { continue }
      let bag = OpaquePointer(value)
      switch PKCS12_SAFEBAG_get_nid(bag) {
      case NID_keyBag:
        guard let key = PKCS12_SAFEBAG_get0_p8inf(bag) else { throw Self.unreadable }
        try add(key: key, of: bag)
      case NID_pkcs8ShroudedKeyBag: try add(shrouded: bag, &budget)
      case NID_certBag: try add(certificate: bag)
      case NID_safeContentsBag:
        guard let innerBags = PKCS12_SAFEBAG_get0_safes(bag) else { throw Self.unreadable }
        try add(innerBags, &budget, depth: depth + 1)
      // Keychains do not store revocation lists and other programs' secrets.
      default: continue
      }
    }
  }

  private mutating func add(shrouded bag: OpaquePointer, _ budget: inout IterationBudget) throws(CertificateError) {
    var algorithm: UnsafePointer<X509_ALGOR>?
    guard let encryptedKey = PKCS12_SAFEBAG_get0_pkcs8(bag) else { throw Self.unreadable }
    X509_SIG_get0(encryptedKey, &algorithm, nil)
    guard let algorithm else { throw Self.unreadable }
    try budget.deduct(algorithm)
    let keyInfo = PKCS12_decrypt_skey_ex(bag, password.text, password.count, OpenSSLContext.context, nil)
    guard let keyInfo else { throw password.failure }
    defer { PKCS8_PRIV_KEY_INFO_free(keyInfo) }
    try add(key: keyInfo, of: bag)
  }

  private mutating func add(key: OpaquePointer, of bag: OpaquePointer) throws(CertificateError) {
    let count = Int(i2d_PKCS8_PRIV_KEY_INFO(key, nil))
    guard count > 0, count <= KeyMaterial.maximumByteCount else { throw Self.unreadable }
    let der = SensitiveBytes(count: count) { (buffer: UnsafeMutableRawBufferPointer) in
      var position = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
      _ = i2d_PKCS8_PRIV_KEY_INFO(key, &position)
    }
    keys.append(
      PKCS12File.Key(
        material: try KeyMaterial(parsing: der), label: Self.label(of: bag), localKeyID: Self.localKeyID(of: bag)))
  }

  private mutating func add(certificate bag: OpaquePointer) throws(CertificateError) {
    guard PKCS12_SAFEBAG_get_bag_nid(bag) == NID_x509Certificate else { return }
    guard let certificate = PKCS12_SAFEBAG_get1_cert(bag) else { throw Self.unreadable }
    certificates.append(try CertificateAttributes(der: try X509Certificate(adopting: certificate).der()))
  }

  private static func label(of bag: OpaquePointer) -> String? {
    guard let text = PKCS12_get_friendlyname(bag) else { return nil }
    defer { CRYPTO_free(text, nil, 0) }
    return String(validatingCString: text)
  }

  private static func localKeyID(of bag: OpaquePointer) -> [UInt8]? {
    guard let value = PKCS12_SAFEBAG_get0_attr(bag, NID_localKeyID), value.pointee.type == V_ASN1_OCTET_STRING,
      let text = value.pointee.value.octet_string
    else { return nil }
    return Array(UnsafeBufferPointer(start: ASN1_STRING_get0_data(text), count: Int(ASN1_STRING_length(text))))
  }

  private static let unreadable = CertificateError(.malformed, "a bag of the file cannot be read")
}
