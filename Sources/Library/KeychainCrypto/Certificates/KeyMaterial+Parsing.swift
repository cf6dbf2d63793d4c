public import Basics
import KeychainFormats

extension KeyMaterial {
  /// Reads a key from whatever a person has: PEM or DER of PKCS#1, SEC 1, PKCS#8 or SubjectPublicKeyInfo, or 04‖X‖Y(‖K).
  ///
  /// A PEM file may hold certificates and curve parameters beside its one key. 97 bytes that begin with 04 are a public
  /// key of P-384 or a private one of P-256; the point decides.
  /// - Throws: `.encrypted` for a key behind a password; `.unexpectedKind` for something else than one key;
  ///   `.unsupported`, `.mismatch`, `.malformed`, `.overLimit`.
  public init(parsing bytes: UnsafeRawBufferPointer) throws(MaterialError) {
    guard bytes.count <= Self.maximumByteCount else {
      throw MaterialError(.overLimit, "\(bytes.count) bytes; the limit is \(Self.maximumByteCount)")
    }
    if bytes.first == 0x04, let raw = try Self.point(bytes) {
      self = raw
    } else if bytes.first == ASN1Cursor.Tag.sequence.rawValue {
      self = try Self.structure(bytes)
    } else if let text = try PEM(bytes) {
      self = try Self.onlyKey(of: text)
    } else {
      throw MaterialError(.malformed, "it is not PEM, DER or a curve point")
    }
  }

  /// Reads a key from bytes that are wiped by their last holder: PEM, DER, or the form in which a keychain stores it.
  ///
  /// - Throws: `.malformed`, `.encrypted`, `.unexpectedKind`, `.unsupported`, `.overLimit` or `.mismatch`.
  public init(parsing bytes: SensitiveBytes) throws(MaterialError) {
    self = try bytes.withBytes { (buffer) throws(MaterialError) in try KeyMaterial(parsing: buffer) }
  }

  /// Reads a key in the form in which a keychain stores it, knowing what it is.
  ///
  /// - Throws: `.malformed` for bytes that are no such key; `.unsupported`, `.mismatch`, `.overLimit`.
  public init(
    externalRepresentation bytes: UnsafeRawBufferPointer, keyType: KeyType, half: Half
  ) throws(MaterialError) {
    guard bytes.count <= Self.maximumByteCount else {
      throw MaterialError(.overLimit, "\(bytes.count) bytes; the limit is \(Self.maximumByteCount)")
    }
    switch (keyType, half) {
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
      self = try Self.pair(curve, bytes)
    }
  }

  private static func unknownSize(_ count: Int) -> MaterialError {
    MaterialError(.malformed, "\(count) bytes are not a key of P-256, P-384 or P-521")
  }

  // MARK: 04‖X‖Y(‖K)

  private static func point(_ bytes: UnsafeRawBufferPointer) throws(MaterialError) -> KeyMaterial? {
    var fault: MaterialError?
    for curve in EllipticCurve.allCases {
      do throws(MaterialError) {
        if bytes.count == curve.pointSize { return try KeyMaterial(curve, point: bytes) }
        if bytes.count == curve.pointSize + curve.coordinateSize { return try pair(curve, bytes) }
      } catch {
        // That the halves differ says more than that the bytes are no point of another curve.
        if fault?.code != .mismatch { fault = error }
      }
    }
    if let fault { throw fault }
    return nil
  }

  /// - Parameter bytes: As long as the curve's point and private number.
  private static func pair(
    _ curve: EllipticCurve, _ bytes: UnsafeRawBufferPointer
  ) throws(MaterialError) -> KeyMaterial {
    let point = UnsafeRawBufferPointer(rebasing: bytes[..<curve.pointSize])
    let number = UnsafeRawBufferPointer(rebasing: bytes[curve.pointSize...])
    return try KeyMaterial(curve, number: number, points: [point])
  }

  // MARK: PEM

  private static func onlyKey(of text: PEM) throws(MaterialError) -> KeyMaterial {
    let others: Set = ["EC PARAMETERS", "CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"]
    let blocks = text.blocks.filter { !others.contains($0.label) }
    guard let block = blocks.first else {
      throw MaterialError(.unexpectedKind, "it contains a \(text.blocks[0].label.lowercased()), not a key")
    }
    guard blocks.count == 1 else { throw MaterialError(.unexpectedKind, "it contains \(blocks.count) keys, not one") }
    guard !block.isEncrypted, block.label != "ENCRYPTED PRIVATE KEY" else {
      throw MaterialError(.encrypted, "its PEM block says so")
    }
    return try block.contents.withBytes { (bytes) throws(MaterialError) in
      switch block.label {
      case "RSA PRIVATE KEY": try KeyMaterial(RSAKey(privateKey: bytes))
      case "RSA PUBLIC KEY": try KeyMaterial(RSAKey(publicKey: bytes))
      case "EC PRIVATE KEY": try namedCurveKey(bytes)
      case "PRIVATE KEY": try privateKeyInfo(bytes)
      case "PUBLIC KEY": try publicKeyInfo(bytes)
      default: throw MaterialError(.unsupported, "it is a PEM block \"\(block.label)\"")
      }
    }
  }

  // MARK: DER

  /// Tells the structures apart by the types of their first members.
  private static func structure(_ bytes: UnsafeRawBufferPointer) throws(MaterialError) -> KeyMaterial {
    var outer = ASN1Cursor(bytes)
    var members = try outer.next(.sequence, "the key").cursor
    try outer.checkEnd("the key")
    let first = try members.next("the first part")
    let second = try members.next("the second part").tag
    switch (first.tag, second) {
    case (.integer, .integer):
      return try KeyMaterial(members.isAtEnd ? RSAKey(publicKey: bytes) : RSAKey(privateKey: bytes))
    case (.integer, .octetString): return try namedCurveKey(bytes)
    case (.integer, .sequence):
      guard first.contents.elementsEqual([3]) else { return try privateKeyInfo(bytes) }
      throw MaterialError(.unsupported, "it is a PKCS#12 bundle")
    case (.sequence, .bitString): return try publicKeyInfo(bytes)
    case (.sequence, .octetString): throw MaterialError(.encrypted, "it is an EncryptedPrivateKeyInfo of PKCS#8")
    case (.sequence, .sequence): throw MaterialError(.unexpectedKind, "it is a certificate or a request for one")
    default: throw MaterialError(.malformed, "it is not PKCS#1, SEC 1, PKCS#8 or SubjectPublicKeyInfo")
    }
  }

  /// SubjectPublicKeyInfo (RFC 5280, 4.1.2.7).
  static func publicKeyInfo(_ bytes: UnsafeRawBufferPointer) throws(MaterialError) -> KeyMaterial {
    var outer = ASN1Cursor(bytes)
    var members = try outer.next(.sequence, "the public key").cursor
    try outer.checkEnd("the public key")
    let algorithm = try AlgorithmIdentifier(&members)
    let key = try members.nextBitString("the public key")
    try members.checkEnd("the public key")
    switch algorithm {
    case .rsa: return try KeyMaterial(RSAKey(publicKey: key))
    case .ellipticCurve(let curve): return try KeyMaterial(curve, point: key)
    }
  }

  /// PKCS#8, with or without a public key (RFC 5958).
  private static func privateKeyInfo(_ bytes: UnsafeRawBufferPointer) throws(MaterialError) -> KeyMaterial {
    var outer = ASN1Cursor(bytes)
    var members = try outer.next(.sequence, "the private key").cursor
    try outer.checkEnd("the private key")
    guard try members.nextUnsigned("the version").allSatisfy({ $0 <= 1 }) else {
      throw MaterialError(.unsupported, "its version of PKCS#8 is not known")
    }
    let algorithm = try AlgorithmIdentifier(&members)
    let inner = try members.next(.octetString, "the private key").contents
    _ = try members.nextIfPresent(.explicit(0), "the attributes")
    let publicKey = try members.nextIfPresent(.implicit(1), "the public key")
    try members.checkEnd("the private key")
    let given = try publicKey.map { (element) throws(MaterialError) in
      try ASN1Cursor.wholeBytes(of: element, "the public key")
    }
    switch algorithm {
    case .rsa:
      let key = try KeyMaterial(RSAKey(privateKey: inner))
      if let given, !given.elementsEqual(key.publicKey) {
        throw MaterialError(.mismatch, "the public key is not that of the private one")
      }
      return key
    case .ellipticCurve(let curve): return try namedCurveKey(inner, on: curve, given.map { [$0] } ?? [])
    }
  }

  /// ECPrivateKey of SEC 1 (RFC 5915).
  private static func namedCurveKey(
    _ bytes: UnsafeRawBufferPointer, on outerCurve: EllipticCurve? = nil, _ points: [UnsafeRawBufferPointer] = []
  ) throws(MaterialError) -> KeyMaterial {
    var outer = ASN1Cursor(bytes)
    var members = try outer.next(.sequence, "the private key").cursor
    try outer.checkEnd("the private key")
    guard try members.nextUnsigned("the version").elementsEqual([1]) else {
      throw MaterialError(.unsupported, "its version of SEC 1 is not known")
    }
    let number = try members.next(.octetString, "the private number").contents
    let parameters = try members.nextIfPresent(.explicit(0), "the curve")
    let publicKey = try members.nextIfPresent(.explicit(1), "the public key")
    try members.checkEnd("the private key")
    let namedCurve = try parameters.map { (element) throws(MaterialError) in
      var cursor = element.cursor
      let curve = try EllipticCurve(cursor.next("the curve"))
      try cursor.checkEnd("the curve")
      return curve
    }
    guard let curve = outerCurve ?? namedCurve else {
      throw MaterialError(.malformed, "the key does not say on which curve it is")
    }
    guard namedCurve ?? curve == curve else { throw MaterialError(.mismatch, "the key names two curves") }
    let given = try publicKey.map { (element) throws(MaterialError) in
      var cursor = element.cursor
      let point = try cursor.nextBitString("the public key")
      try cursor.checkEnd("the public key")
      return point
    }
    return try KeyMaterial(curve, number: number, points: points + (given.map { [$0] } ?? []))
  }

  /// The two algorithms that keychains know (RFC 3279, 2.3.1; RFC 5480, 2.1.1).
  enum AlgorithmIdentifier {
    case rsa
    case ellipticCurve(EllipticCurve)

    static let rsaEncryption: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]
    static let ecPublicKey: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]

    init(_ members: inout ASN1Cursor) throws(MaterialError) {
      var cursor = try members.next(.sequence, "the algorithm").cursor
      let identifier = try cursor.next(.objectIdentifier, "the algorithm").contents
      if identifier.elementsEqual(Self.rsaEncryption) {
        self = .rsa
        _ = try cursor.nextIfPresent(.null, "the parameters")
      } else if identifier.elementsEqual(Self.ecPublicKey) {
        self = .ellipticCurve(try EllipticCurve(cursor.next("the curve")))
      } else {
        throw MaterialError(.unsupported, "the key's algorithm is not RSA or ECDSA")
      }
      try cursor.checkEnd("the algorithm")
    }
  }
}
