import Basics
internal import COpenSSL
internal import KeychainFormats

/// The NIST curves of keys that a keychain stores (SEC 2; FIPS 186-4, D.1.2).
package enum EllipticCurve: Int, Sendable, CaseIterable, Hashable {
  /// NIST P-256 (secp256r1), with coordinates of 32 bytes.
  case p256 = 256
  /// NIST P-384 (secp384r1), with coordinates of 48 bytes.
  case p384 = 384
  /// NIST P-521 (secp521r1), with coordinates of 66 bytes.
  case p521 = 521

  /// The size in bits, as in `kSecAttrKeySizeInBits`.
  package var sizeInBits: Int { rawValue }

  /// The size of a coordinate or a private scalar, in bytes.
  var coordinateSize: Int { (rawValue + 7) / 8 }

  /// The size of 04‖X‖Y, in bytes.
  var pointSize: Int { 1 + 2 * coordinateSize }

  /// The contents of the curve's object identifier (RFC 5480, 2.1.1.1).
  var identifier: [UInt8] {
    switch self {
    case .p256: [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
    case .p384: [0x2B, 0x81, 0x04, 0x00, 0x22]
    case .p521: [0x2B, 0x81, 0x04, 0x00, 0x23]
    }
  }

  /// OpenSSL's identifier of the curve.
  private var nid: Int32 {
    switch self {
    case .p256: NID_X9_62_prime256v1
    case .p384: NID_secp384r1
    case .p521: NID_secp521r1
    }
  }

  /// Creates a curve from the parameters of an EC key.
  ///
  /// - Parameter element: The parameters. Only the name of a curve is supported, not explicit parameters.
  init(_ element: ASN1Cursor.Element) throws(CertificateError) {
    guard element.tag == .objectIdentifier else {
      throw CertificateError(.unsupported, "the key spells out its curve instead of naming it")
    }
    guard let curve = Self.allCases.first(where: { element.contents.elementsEqual($0.identifier) }) else {
      throw CertificateError(.unsupported, "the key is not on P-256, P-384 or P-521")
    }
    self = curve
  }

  /// Decodes a point and returns it as 04‖X‖Y.
  ///
  /// - Parameter encoded: The point as 04‖X‖Y, or as 02 or 03 and X (SEC 1, 2.3.3).
  /// - Throws: `.malformed` if the bytes are not a point on the curve.
  func point(_ encoded: UnsafeRawBufferPointer) throws(CertificateError) -> [UInt8] {
    let group = try Group(self)
    let point = try Point(group)
    let bytes = encoded.baseAddress?.assumingMemoryBound(to: UInt8.self)
    guard let form = encoded.first, [0x02, 0x03, 0x04].contains(form),
      EC_POINT_oct2point(group.handle, point.handle, bytes, encoded.count, nil) == 1,
      EC_POINT_is_at_infinity(group.handle, point.handle) == 0
    else { throw CertificateError(.malformed, "its public key is not a point on P-\(rawValue)") }
    return try point.uncompressed(self, group)
  }

  /// Returns the public key of a private scalar.
  ///
  /// - Throws: `.malformed` if the scalar is 0 or not less than the curve's order.
  func publicKey(of scalar: UnsafeRawBufferPointer) throws(CertificateError) -> [UInt8] {
    let group = try Group(self)
    let point = try Point(group)
    let factor = try BigNumber(scalar)
    let isInRange = factor.withHandle { BN_cmp($0, EC_GROUP_get0_order(group.handle)) < 0 }
    guard isInRange, !factor.isZero else {
      throw CertificateError(.malformed, "its private number is not below the order of P-\(rawValue)")
    }
    let status = factor.withHandle { EC_POINT_mul(group.handle, point.handle, $0, nil, nil, nil) }
    guard status == 1 else { throw .openSSL("EC_POINT_mul") }
    return try point.uncompressed(self, group)
  }

  private struct Group: ~Copyable {
    let handle: OpaquePointer

    init(_ curve: EllipticCurve) throws(CertificateError) {
      guard let handle = EC_GROUP_new_by_curve_name(curve.nid) else { throw .openSSL("EC_GROUP_new_by_curve_name") }
      self.handle = handle
    }

    deinit { EC_GROUP_free(handle) }
  }

  private struct Point: ~Copyable {
    let handle: OpaquePointer

    init(_ group: borrowing Group) throws(CertificateError) {
      guard let handle = EC_POINT_new(group.handle) else { throw .openSSL("EC_POINT_new") }
      self.handle = handle
    }

    deinit { EC_POINT_clear_free(handle) }

    borrowing func uncompressed(
      _ curve: EllipticCurve, _ group: borrowing Group
    ) throws(CertificateError) -> [UInt8] {
      var bytes = [UInt8](repeating: 0, count: curve.pointSize)
      let count = EC_POINT_point2oct(
        group.handle, handle, POINT_CONVERSION_UNCOMPRESSED, &bytes, bytes.count, nil)
      guard count == bytes.count else { throw .openSSL("EC_POINT_point2oct") }
      return bytes
    }
  }
}
