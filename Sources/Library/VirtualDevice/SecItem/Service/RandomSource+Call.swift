import KeychainCrypto
import KeychainRules
import Keychains

extension RandomSource {
  /// Bytes that a call needs; where there are none, that is how it ends.
  func bytesForCall(count: Int) throws(SecItemError) -> [UInt8] {
    do throws(KeychainRuleError) {
      return try NewItem.randomBytes(self, count: count)
    } catch {
      throw SecItemError(KeychainStoreError(error))
    }
  }
}
