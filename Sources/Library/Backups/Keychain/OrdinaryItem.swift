import KeychainCrypto
import KeychainFormats
package import KeychainRules

/// What a restore has to know of an item that no rule leaves out and that is stored as it is, as long as nothing with its
/// primary key is in the way: so that it is not opened for a plan. There is one for every item.
package struct OrdinaryItem: Sendable {
  /// Half of its primary key's fingerprint.
  package let key: KeyHalf
  /// Whether it is marked to synchronize.
  package let isSynchronizable: Bool
  /// Whether its value has the form of a key of the Secure Enclave.
  package let holdsEnclaveKey: Bool

  /// A primary key in sixteen bytes of SHA-256: some 2^64 attempts find two alike. A plan that takes one for the other does not
  /// come true, so that the restore changes nothing.
  package struct KeyHalf: Sendable, Hashable {
    // Words of four bytes, so that an item's two marks take no more than four beside it.
    private let first, second, third, fourth: UInt32

    /// - Throws: `.notAvailable` where OpenSSL has no SHA-256.
    package init(_ key: PrimaryKey) throws(KeychainRuleError) {
      do throws(DataProtectionError) {
        (first, second, third, fourth) = try ItemFingerprint(of: key).half
      } catch {
        throw KeychainRuleError(.notAvailable, error.reason)
      }
    }
  }

  /// - Returns: `nil` for an item of which a plan has more to say, or may have.
  init?(_ archived: ArchivedItem) {
    guard let item = archived.item, !archived.isSecretOnly, !item.isTombstone,
      RestoreRules.reasonToLeaveOut(item, .strictest) == nil,
      let keyed = try? IncomingItem.Keyed(item, persistentReference: archived.persistentReference),
      keyed.incoming.item.isSynchronizable == item.isSynchronizable, let key = try? KeyHalf(keyed.primaryKey)
    else { return nil }
    self.key = key
    isSynchronizable = item.isSynchronizable
    holdsEnclaveKey = item.holdsEnclaveKey
  }
}
