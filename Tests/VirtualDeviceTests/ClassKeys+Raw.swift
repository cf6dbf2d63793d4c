import Basics
import KeychainFormats

@testable import KeychainCrypto

extension ClassKeys {
  /// Returns the 32 bytes of a class key, which the library itself never reveals.
  borrowing func rawKey(_ keyClass: KeyClass) -> [UInt8]? {
    entries[keyClass]?.key?.secret.withBytes { Array($0) }
  }
}
