import Basics
internal import COpenSSL
internal import KeychainFormats

/// An OpenSSL operation with a key.
struct KeyOperation: ~Copyable {
  private let key: KeyHandle
  let context: OpaquePointer

  init(_ key: KeyMaterial) throws(CertificateError) {
    let key = try KeyHandle(key)
    guard let context = EVP_PKEY_CTX_new_from_pkey(nil, key.handle, nil) else {
      throw .openSSL("EVP_PKEY_CTX_new_from_pkey")
    }
    self.key = key
    self.context = context
  }

  deinit {
    EVP_PKEY_CTX_free(context)
    ERR_clear_error()
  }

  /// Starts the operation.
  ///
  /// - Parameters:
  ///   - initialize: The OpenSSL function that starts this kind of operation.
  ///   - padding: The padding for RSA, or `nil` if the key is on a curve.
  borrowing func begin(
    _ initialize: (OpaquePointer?) -> Int32, padding: Int32?
  ) throws(CertificateError) {
    guard initialize(context) == 1 else { throw .openSSL("to begin an operation") }
    guard let padding else { return }
    guard EVP_PKEY_CTX_set_rsa_padding(context, padding) == 1 else { throw .openSSL("EVP_PKEY_CTX_set_rsa_padding") }
  }

  typealias Call = (
    OpaquePointer?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<Int>?, UnsafePointer<UInt8>?, Int
  ) -> Int32

  /// Calls an OpenSSL function, first for the size of its output and then for the output itself. Returns `nil` if
  /// OpenSSL rejects the input.
  borrowing func result(of call: Call, _ input: UnsafeRawBufferPointer) throws(CertificateError) -> SensitiveBytes? {
    let bytes = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
    var count = 0
    guard call(context, nil, &count, bytes, input.count) == 1, count >= 0 else { return nil }
    var status: Int32 = 0
    let output = SensitiveBytes(count: count) { (buffer: UnsafeMutableRawBufferPointer) in
      let target = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
      status = call(context, target, &count, bytes, input.count)
    }
    guard status == 1, count <= output.count else { return nil }
    return output.withBytes { SensitiveBytes(copying: UnsafeRawBufferPointer(rebasing: $0.prefix(count))) }
  }
}

extension KeyMaterial {
  /// The size in bytes of an RSA key's signatures and ciphertexts, or of a curve's coordinates.
  package var blockSize: Int { (sizeInBits + 7) / 8 }

  func check(_ role: Role, _ algorithm: KeyType) throws(CertificateError) {
    guard self.role == role, self.algorithm.keyType == algorithm else {
      throw CertificateError(
        .unexpectedKind, "the algorithm needs the other half of a key pair, or another type of key")
    }
  }

  /// Returns the bytes preceded by zeros, as long as the key's block.
  func zeroPadded(_ bytes: [UInt8]) throws(CertificateError) -> [UInt8] {
    guard bytes.count <= blockSize else {
      throw CertificateError(.overLimit, "\(bytes.count) bytes are too many for a \(blockSize)-byte key")
    }
    return [UInt8](repeating: 0, count: blockSize - bytes.count) + bytes
  }
}
