import Basics
internal import COpenSSL

/// A nonnegative OpenSSL integer. It may be part of a private key, so it is overwritten when it is destroyed.
struct BigNumber: ~Copyable {
  fileprivate let handle: OpaquePointer

  /// Creates a number from the result of an OpenSSL function, whose name is for the error.
  private init(adopting handle: OpaquePointer?, from function: String) throws(CertificateError) {
    guard let handle else { throw .openSSL(function) }
    self.handle = handle
  }

  /// Creates a number from bytes, the most significant first. The caller limits the number of bytes.
  init(_ bytes: UnsafeRawBufferPointer) throws(CertificateError) {
    guard let count = Int32(exactly: bytes.count) else { throw .openSSL("a number of \(bytes.count) bytes") }
    try self.init(
      adopting: BN_bin2bn(bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), count, nil), from: "BN_bin2bn")
  }

  deinit { BN_clear_free(handle) }

  var isOne: Bool { BN_is_one(handle) == 1 }
  var isZero: Bool { BN_is_zero(handle) == 1 }
  var isOdd: Bool { BN_is_odd(handle) == 1 }

  /// Calls a closure with OpenSSL's number, which must not escape it.
  borrowing func withHandle<Result>(_ body: (OpaquePointer) -> Result) -> Result { body(handle) }

  borrowing func equals(_ other: borrowing BigNumber) -> Bool { BN_cmp(handle, other.handle) == 0 }
  borrowing func isLess(than other: borrowing BigNumber) -> Bool { BN_cmp(handle, other.handle) < 0 }

  /// Returns the number minus one. The number must not be zero.
  borrowing func minusOne() throws(CertificateError) -> BigNumber {
    let result = try BigNumber(adopting: BN_dup(handle), from: "BN_dup")
    guard BN_sub_word(result.handle, 1) == 1 else { throw .openSSL("BN_sub_word") }
    return result
  }

  borrowing func times(_ other: borrowing BigNumber) throws(CertificateError) -> BigNumber {
    let scratch = try Scratch()
    let result = try BigNumber(adopting: BN_new(), from: "BN_new")
    guard BN_mul(result.handle, handle, other.handle, scratch.handle) == 1 else { throw .openSSL("BN_mul") }
    return result
  }

  /// Returns the remainder of a division by `modulus`, which must not be zero.
  borrowing func modulo(_ modulus: borrowing BigNumber) throws(CertificateError) -> BigNumber {
    let scratch = try Scratch()
    let result = try BigNumber(adopting: BN_new(), from: "BN_new")
    guard BN_nnmod(result.handle, handle, modulus.handle, scratch.handle) == 1 else { throw .openSSL("BN_nnmod") }
    return result
  }

  /// Memory for intermediate results. OpenSSL overwrites it when it is freed.
  private struct Scratch: ~Copyable {
    let handle: OpaquePointer

    init() throws(CertificateError) {
      guard let handle = BN_CTX_secure_new() else { throw .openSSL("BN_CTX_secure_new") }
      self.handle = handle
    }

    deinit { BN_CTX_free(handle) }
  }
}
