package import Basics
import COpenSSL
import KeychainFormats

extension KeyMaterial {
  /// Reads a key in PEM or DER of PKCS#1, SEC 1, PKCS#8 or SubjectPublicKeyInfo, or as 04‖X‖Y(‖K).
  ///
  /// A PEM file may also contain certificates and curve parameters, but only one key.
  ///
  /// 97 bytes that start with 04 can be a public key of P-384 or a private key of P-256. They are read as the key whose
  /// point is on its curve.
  ///
  /// - Throws: `.encrypted` for an encrypted key; `.unexpectedKind` if the file does not contain exactly one key;
  ///   `.unsupported`, `.mismatch`, `.malformed` or `.overLimit` for a bad key.
  package init(parsing bytes: UnsafeRawBufferPointer) throws(CertificateError) {
    guard bytes.count <= Self.maximumByteCount else {
      throw CertificateError(.overLimit, "it has \(bytes.count) bytes; the limit is \(Self.maximumByteCount)")
    }
    if bytes.first == 0x04, let key = try Self.curveKey(bytes) {
      self = key
    } else if bytes.first == ASN1Cursor.Tag.sequence.rawValue {
      self = try Self.derKey(bytes)
    } else if let text = try PEM(bytes) {
      self = try Self.onlyKey(in: text)
    } else {
      throw CertificateError(.malformed, "it is not PEM, DER or a curve point")
    }
  }

  /// Reads a key in PEM, in DER or as a keychain stores it, from bytes that are wiped by their last owner.
  ///
  /// - Throws: `.malformed`, `.encrypted`, `.unexpectedKind`, `.unsupported`, `.overLimit` or `.mismatch`.
  package init(parsing bytes: SensitiveBytes) throws(CertificateError) {
    self = try bytes.withBytes { (buffer) throws(CertificateError) in try KeyMaterial(parsing: buffer) }
  }

  /// Reads a key of a known type as a keychain stores it.
  ///
  /// - Throws: `.malformed` if the bytes are not such a key; `.unsupported`, `.mismatch` or `.overLimit`.
  package init(
    externalRepresentation bytes: UnsafeRawBufferPointer, keyType: KeyType, role: Role
  ) throws(CertificateError) {
    guard bytes.count <= Self.maximumByteCount else {
      throw CertificateError(.overLimit, "it has \(bytes.count) bytes; the limit is \(Self.maximumByteCount)")
    }
    switch (keyType, role) {
    case (.rsa, .publicKey): try self.init(RSAKey(publicKey: bytes))
    case (.rsa, .privateKey): try self.init(RSAKey(privateKey: bytes))
    case (.ellipticCurve, .publicKey):
      guard let curve = EllipticCurve.allCases.first(where: { $0.pointSize == bytes.count }) else {
        throw Self.unknownSize(bytes.count)
      }
      try self.init(curve, point: bytes)
    case (.ellipticCurve, .privateKey):
      guard let curve = EllipticCurve.allCases.first(where: { $0.pointSize + $0.coordinateSize == bytes.count }) else {
        throw Self.unknownSize(bytes.count)
      }
      self = try Self.privateKey(on: curve, bytes)
    }
  }

  private static func unknownSize(_ count: Int) -> CertificateError {
    CertificateError(.malformed, "\(count) bytes is not the size of a P-256, P-384 or P-521 key")
  }

  // MARK: 04‖X‖Y(‖K)

  /// Reads a key on the curve that matches its size and its point. Returns `nil` if no curve has keys of this size.
  private static func curveKey(_ bytes: UnsafeRawBufferPointer) throws(CertificateError) -> KeyMaterial? {
    var curveError: CertificateError?
    for curve in EllipticCurve.allCases {
      do throws(CertificateError) {
        if bytes.count == curve.pointSize { return try KeyMaterial(curve, point: bytes) }
        if bytes.count == curve.pointSize + curve.coordinateSize { return try privateKey(on: curve, bytes) }
      } catch {
        // A mismatch is more specific than the error that the bytes are not a point on another curve.
        if curveError?.code != .mismatch { curveError = error }
      }
    }
    if let curveError { throw curveError }
    return nil
  }

  /// Creates a private key.
  ///
  /// - Parameter bytes: 04‖X‖Y‖K, with the sizes of the curve.
  private static func privateKey(
    on curve: EllipticCurve, _ bytes: UnsafeRawBufferPointer
  ) throws(CertificateError) -> KeyMaterial {
    let point = UnsafeRawBufferPointer(rebasing: bytes[..<curve.pointSize])
    let scalar = UnsafeRawBufferPointer(rebasing: bytes[curve.pointSize...])
    return try KeyMaterial(curve, scalar: scalar, points: [point])
  }

  // MARK: PEM

  private static func onlyKey(in text: PEM) throws(CertificateError) -> KeyMaterial {
    let otherLabels: Set = ["EC PARAMETERS", "CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"]
    let blocks = text.blocks.filter { !otherLabels.contains($0.label) }
    guard let block = blocks.first else {
      throw CertificateError(.unexpectedKind, "it contains \"\(text.blocks[0].label)\" in PEM, not a key")
    }
    guard blocks.count == 1 else {
      throw CertificateError(.unexpectedKind, "it contains \(blocks.count) keys, not one")
    }
    guard !block.isEncrypted, block.label != "ENCRYPTED PRIVATE KEY" else {
      throw CertificateError(.encrypted, "its PEM block says so")
    }
    return try block.contents.withBytes { (bytes) throws(CertificateError) in
      switch block.label {
      case "RSA PRIVATE KEY": try KeyMaterial(RSAKey(privateKey: bytes))
      case "RSA PUBLIC KEY": try KeyMaterial(RSAKey(publicKey: bytes))
      case "EC PRIVATE KEY": try namedCurveKey(bytes)
      case "PRIVATE KEY": try privateKeyInfo(bytes)
      case "PUBLIC KEY": try publicKeyInfo(bytes)
      default: throw CertificateError(.unsupported, "its PEM block is labeled \"\(block.label)\"")
      }
    }
  }

  // MARK: DER

  /// Reads a DER key. The types of its first two members identify its structure.
  private static func derKey(_ bytes: UnsafeRawBufferPointer) throws(CertificateError) -> KeyMaterial {
    var members = try ASN1Cursor(membersOfOnlySequence: bytes, "the key")
    let first = try members.next("the first part")
    let second = try members.next("the second part").tag
    switch (first.tag, second) {
    case (.integer, .integer):
      return try KeyMaterial(members.isAtEnd ? RSAKey(publicKey: bytes) : RSAKey(privateKey: bytes))
    case (.integer, .octetString): return try namedCurveKey(bytes)
    case (.integer, .sequence):
      guard first.contents.elementsEqual([3]) else { return try privateKeyInfo(bytes) }
      throw CertificateError(.unsupported, "it is a PKCS#12 bundle")
    case (.sequence, .bitString): return try publicKeyInfo(bytes)
    case (.sequence, .octetString): throw CertificateError(.encrypted, "it is an EncryptedPrivateKeyInfo of PKCS#8")
    case (.sequence, .sequence): throw CertificateError(.unexpectedKind, "it is a certificate or a request for one")
    default: throw CertificateError(.malformed, "it is not PKCS#1, SEC 1, PKCS#8 or SubjectPublicKeyInfo")
    }
  }

  /// Reads a SubjectPublicKeyInfo (RFC 5280, 4.1.2.7).
  static func publicKeyInfo(_ bytes: UnsafeRawBufferPointer) throws(CertificateError) -> KeyMaterial {
    var members = try ASN1Cursor(membersOfOnlySequence: bytes, "the public key")
    let algorithm = try AlgorithmIdentifier(&members)
    let key = try members.nextBitString("the public key")
    try members.checkEnd("the public key")
    switch algorithm {
    case .rsa: return try KeyMaterial(RSAKey(publicKey: key))
    case .ellipticCurve(let curve): return try KeyMaterial(curve, point: key)
    }
  }

  /// Reads PKCS#8, with or without a public key (RFC 5958).
  private static func privateKeyInfo(_ bytes: UnsafeRawBufferPointer) throws(CertificateError) -> KeyMaterial {
    var members = try ASN1Cursor(membersOfOnlySequence: bytes, "the private key")
    guard try members.nextUnsigned("the version").allSatisfy({ $0 <= 1 }) else {
      throw CertificateError(.unsupported, "its PKCS#8 version is not known")
    }
    let algorithm = try AlgorithmIdentifier(&members)
    let keyStructure = try members.next(.octetString, "the private key").contents
    _ = try members.nextIfPresent(.explicit(0), "the attributes")
    let publicKeyElement = try members.nextIfPresent(.implicit(1), "the public key")
    try members.checkEnd("the private key")
    let publicKey = try publicKeyElement.map { (element) throws(CertificateError) in
      try ASN1Cursor.wholeBytes(of: element, "the public key")
    }
    switch algorithm {
    case .rsa:
      let key = try KeyMaterial(RSAKey(privateKey: keyStructure))
      if let publicKey, !publicKey.elementsEqual(key.publicKey) {
        throw CertificateError(.mismatch, "the public key does not match the private key")
      }
      return key
    case .ellipticCurve(let curve):
      return try namedCurveKey(keyStructure, on: curve, points: publicKey.map { [$0] } ?? [])
    }
  }

  /// Reads an ECPrivateKey of SEC 1 (RFC 5915).
  ///
  /// - Parameters:
  ///   - bytes: The DER of the structure.
  ///   - outerCurve: The curve that a surrounding structure names, or `nil` if there is none.
  ///   - points: The public keys in a surrounding structure, which must match the private key.
  private static func namedCurveKey(
    _ bytes: UnsafeRawBufferPointer, on outerCurve: EllipticCurve? = nil, points: [UnsafeRawBufferPointer] = []
  ) throws(CertificateError) -> KeyMaterial {
    var members = try ASN1Cursor(membersOfOnlySequence: bytes, "the private key")
    guard try members.nextUnsigned("the version").elementsEqual([1]) else {
      throw CertificateError(.unsupported, "its SEC 1 version is not known")
    }
    let scalar = try members.next(.octetString, "the private number").contents
    let parameters = try members.nextIfPresent(.explicit(0), "the curve")
    let publicKeyElement = try members.nextIfPresent(.explicit(1), "the public key")
    try members.checkEnd("the private key")
    let namedCurve = try parameters.map(Self.curve(in:))
    guard let curve = outerCurve ?? namedCurve else {
      throw CertificateError(.malformed, "the key does not name its curve")
    }
    guard namedCurve ?? curve == curve else { throw CertificateError(.mismatch, "the key names two curves") }
    let point = try publicKeyElement.map(Self.point(in:))
    return try KeyMaterial(curve, scalar: scalar, points: points + (point.map { [$0] } ?? []))
  }

  /// Reads the curve from the parameters of an ECPrivateKey.
  private static func curve(in parameters: ASN1Cursor.Element) throws(CertificateError) -> EllipticCurve {
    var cursor = parameters.cursor
    let curve = try EllipticCurve(cursor.next("the curve"))
    try cursor.checkEnd("the curve")
    return curve
  }

  /// Reads the point from the public key of an ECPrivateKey.
  private static func point(in publicKey: ASN1Cursor.Element) throws(CertificateError) -> UnsafeRawBufferPointer {
    var cursor = publicKey.cursor
    let point = try cursor.nextBitString("the public key")
    try cursor.checkEnd("the public key")
    return point
  }

  /// The two algorithms that keychains support (RFC 3279, 2.3.1; RFC 5480, 2.1.1).
  enum AlgorithmIdentifier {
    case rsa
    case ellipticCurve(EllipticCurve)

    static let rsaEncryption: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]
    static let ecPublicKey: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]

    init(_ members: inout ASN1Cursor) throws(CertificateError) {
      var cursor = try members.next(.sequence, "the algorithm").cursor
      let identifier = try cursor.next(.objectIdentifier, "the algorithm").contents
      if identifier.elementsEqual(Self.rsaEncryption) {
        self = .rsa
        _ = try cursor.nextIfPresent(.null, "the parameters")
      } else if identifier.elementsEqual(Self.ecPublicKey) {
        self = .ellipticCurve(try EllipticCurve(cursor.next("the curve")))
      } else {
        throw CertificateError(.unsupported, "the key's algorithm is not RSA or ECDSA")
      }
      try cursor.checkEnd("the algorithm")
    }
  }
}

/// An OpenSSL key. OpenSSL wipes it when it is freed.
struct KeyHandle: ~Copyable {
  let handle: OpaquePointer

  /// Converts a key for OpenSSL.
  ///
  /// - Throws: `.failed` if OpenSSL rejects the key.
  init(_ key: KeyMaterial) throws(CertificateError) {
    switch key.role {
    case .publicKey:
      handle = try key.publicKeyInfo.withRawBytes { (bytes) throws(CertificateError) in
        var position = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        return try Self.checked(d2i_PUBKEY(nil, &position, bytes.count), "d2i_PUBKEY")
      }
    case .privateKey:
      handle = try key.privateKeyStructure.withBytes { (bytes) throws(CertificateError) in
        var position = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        return try Self.checked(d2i_AutoPrivateKey(nil, &position, bytes.count), "d2i_AutoPrivateKey")
      }
    }
  }

  private static func checked(_ handle: OpaquePointer?, _ call: String) throws(CertificateError) -> OpaquePointer {
    guard let handle else {
      ERR_clear_error()
      throw .openSSL(call)
    }
    return handle
  }

  deinit { EVP_PKEY_free(handle) }
}
