import Basics
import KeychainCrypto
import KeychainFormats
import VirtualDevice

extension SecKey {
  /// Returns the key for an operation. The device unwraps a key in the Secure Enclave, which may require
  /// authentication.
  func material(for operation: SecKeyOperationType) throws(SecItemError) -> KeyMaterial {
    guard let publicKey = tokenValue?.value else { return try material() }
    guard let client = try? DefaultKeychain.client() else {
      throw SecItemError(.notAvailable, "there is no device with this key in its chip")
    }
    let item = item
    let privateNumber = try client.call { (session) throws(SecItemError) in
      try session.enclavePrivateKey(of: item, for: operation == .sign ? .sign : .computeKey)
    }
    let pair = SensitiveBytes(count: publicKey.count + privateNumber.count) { (target: UnsafeMutableRawBufferPointer) in
      target.copyBytes(from: publicKey)
      privateNumber.withBytes {
        UnsafeMutableRawBufferPointer(rebasing: target[publicKey.count...]).copyMemory(from: $0)
      }
    }
    return try pair.withBytes { (bytes) throws(SecItemError) in try KeyMaterial(bytes, .ellipticCurve, .privateKey) }
  }
}
