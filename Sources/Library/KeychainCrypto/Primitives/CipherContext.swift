import Basics
import COpenSSL
import KeychainFormats

/// An OpenSSL cipher in one direction, which is reused with a new key each time.
///
/// Reuse matters: looking up a cipher costs more than encrypting a small item. Padding is off; ECB and CBC require
/// complete blocks. OpenSSL overwrites the key schedule when the context is freed.
package struct CipherContext: ~Copyable {
  package enum Direction: Int32 {
    case decrypt = 0
    case encrypt = 1
  }

  package enum Algorithm {
    case aes128ECB
    case aes192ECB
    case aes256ECB
    case aes128CBC
    case aes256CBC
    case aes128GCM
    case aes256GCM

    fileprivate var handle: OpaquePointer? {
      switch self {
      case .aes128ECB: EVP_aes_128_ecb()
      case .aes192ECB: EVP_aes_192_ecb()
      case .aes256ECB: EVP_aes_256_ecb()
      case .aes128CBC: EVP_aes_128_cbc()
      case .aes256CBC: EVP_aes_256_cbc()
      case .aes128GCM: EVP_aes_128_gcm()
      case .aes256GCM: EVP_aes_256_gcm()
      }
    }

    var keySize: Int {
      switch self {
      case .aes128ECB, .aes128CBC, .aes128GCM: 16
      case .aes192ECB: 24
      case .aes256ECB, .aes256CBC, .aes256GCM: 32
      }
    }

    /// Whether OpenSSL would pad the message to complete blocks. For other ciphers, setting the padding would
    /// cost a lookup in each `begin`.
    fileprivate var padsBlocks: Bool {
      switch self {
      case .aes128ECB, .aes192ECB, .aes256ECB, .aes128CBC, .aes256CBC: true
      case .aes128GCM, .aes256GCM: false
      }
    }

    /// The size of the initialization vector for `EVP_CipherInit_ex2`, in bytes. GCM's is its default of 96 bits.
    var initializationVectorSize: Int {
      switch self {
      case .aes128ECB, .aes192ECB, .aes256ECB: 0
      case .aes128CBC, .aes256CBC: 16
      case .aes128GCM, .aes256GCM: 12
      }
    }
  }

  /// The size of a GCM tag, in bytes.
  package static let tagSize = 16

  private let algorithm: Algorithm
  private let handle: OpaquePointer

  package init(_ algorithm: Algorithm, _ direction: Direction) throws(DataProtectionError) {
    guard let handle = EVP_CIPHER_CTX_new() else { throw .crypto("EVP_CIPHER_CTX_new") }
    guard EVP_CipherInit_ex2(handle, algorithm.handle, nil, nil, direction.rawValue, nil) == 1,
      !algorithm.padsBlocks || EVP_CIPHER_CTX_set_padding(handle, 0) == 1
    else {
      EVP_CIPHER_CTX_free(handle)
      throw .crypto("EVP_CipherInit_ex2")
    }
    self.algorithm = algorithm
    self.handle = handle
  }

  deinit { EVP_CIPHER_CTX_free(handle) }

  /// Starts a new message with `key`. `iv` must have the algorithm's size, and be empty for ECB.
  borrowing func begin(key: UnsafeRawBufferPointer, iv: [UInt8] = []) throws(DataProtectionError) {
    guard key.count == algorithm.keySize, iv.count == algorithm.initializationVectorSize else {
      throw .crypto("a key of \(key.count) bytes with an IV of \(iv.count)")
    }
    let vector: [UInt8]? = iv.isEmpty ? nil : iv
    let status = EVP_CipherInit_ex2(handle, nil, key.bytes, vector, -1, nil)
    guard status == 1 else { throw .crypto("EVP_CipherInit_ex2") }
  }

  /// Starts a new GCM message with a nonce of up to 128 bytes, instead of the usual 12.
  ///
  /// A context keeps the length of the nonce, so this method must start all its messages.
  package borrowing func begin(key: UnsafeRawBufferPointer, longNonce nonce: [UInt8]) throws(DataProtectionError) {
    guard key.count == algorithm.keySize, algorithm == .aes128GCM || algorithm == .aes256GCM,
      let count = Int32(exactly: nonce.count), count > 0
    else { throw .crypto("a key of \(key.count) bytes with a nonce of \(nonce.count)") }
    guard EVP_CIPHER_CTX_ctrl(handle, EVP_CTRL_AEAD_SET_IVLEN, count, nil) == 1 else {
      throw .crypto("EVP_CTRL_AEAD_SET_IVLEN")
    }
    guard EVP_CipherInit_ex2(handle, nil, key.bytes, nonce, -1, nil) == 1 else { throw .crypto("EVP_CipherInit_ex2") }
  }

  /// Transforms `input` into `output`, which must have the same size and may be the same memory.
  package borrowing func update(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(DataProtectionError) {
    guard !input.isEmpty else { return }
    guard input.count == output.count, let count = Int32(exactly: input.count) else {
      throw .crypto("a message of \(input.count) bytes")
    }
    var written: Int32 = 0
    guard EVP_CipherUpdate(handle, output.bytes, &written, input.bytes, count) == 1, written == count else {
      throw .crypto("EVP_CipherUpdate")
    }
  }

  /// Adds additional data to a GCM message, before the first `update`.
  package borrowing func authenticate(_ data: UnsafeRawBufferPointer) throws(DataProtectionError) {
    guard !data.isEmpty else { return }
    guard let count = Int32(exactly: data.count) else { throw .crypto("\(data.count) authenticated bytes") }
    var written: Int32 = 0
    guard EVP_CipherUpdate(handle, nil, &written, data.bytes, count) == 1 else { throw .crypto("EVP_CipherUpdate") }
  }

  /// Ends a GCM encryption and returns its tag.
  package borrowing func finishWithTag() throws(DataProtectionError) -> [UInt8] {
    guard finishesSuccessfully() else { throw .crypto("EVP_CipherFinal_ex") }
    return try [UInt8](count: Self.tagSize) { (buffer) throws(DataProtectionError) in
      guard EVP_CIPHER_CTX_ctrl(handle, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagSize), buffer.baseAddress) == 1 else {
        throw .crypto("EVP_CTRL_AEAD_GET_TAG")
      }
    }
  }

  /// Ends a GCM decryption and returns whether the tag matches.
  package borrowing func finish(verifying tag: [UInt8]) throws(DataProtectionError) -> Bool {
    let isSet = tag.withRawBytes { bytes in
      // OpenSSL only reads the tag, although the parameter's type is mutable.
      let tag = UnsafeMutableRawPointer(mutating: bytes.baseAddress)
      return bytes.count == Self.tagSize
        && EVP_CIPHER_CTX_ctrl(handle, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagSize), tag) == 1
    }
    guard isSet else { throw .crypto("EVP_CTRL_AEAD_SET_TAG") }
    return finishesSuccessfully()
  }
}

extension CipherContext {
  /// Ends a GCM message, which has no further output.
  private borrowing func finishesSuccessfully() -> Bool {
    var (ignored, written) = (UInt8(0), Int32(0))
    return EVP_CipherFinal_ex(handle, &ignored, &written) == 1
  }
}

extension UnsafeRawBufferPointer {
  fileprivate var bytes: UnsafePointer<UInt8>? { baseAddress?.assumingMemoryBound(to: UInt8.self) }
}

extension UnsafeMutableRawBufferPointer {
  fileprivate var bytes: UnsafeMutablePointer<UInt8>? { baseAddress?.assumingMemoryBound(to: UInt8.self) }
}

/// Process-wide settings of OpenSSL.
package enum OpenSSL {
  /// Prevents OpenSSL's cleanup at exit, for a program that may exit while threads are running. Call it before any
  /// other use of OpenSSL.
  ///
  /// The cleanup runs in `exit`. A thread that ends after the cleanup would free OpenSSL data that no longer exists. The
  /// process's memory is freed anyway, and secrets are wiped by `SecretArena.wipeAll`.
  /// Source: OPENSSL_init_crypto(3), `OPENSSL_INIT_NO_ATEXIT`.
  package static func disableExitCleanup() { _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) }
}
