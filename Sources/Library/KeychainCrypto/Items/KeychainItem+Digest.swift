import Basics
package import KeychainFormats

extension KeychainItem {
  /// Returns the SHA-1 of the item's primary key, 20 bytes. It is compared, but never stored.
  ///
  /// Source: Apple `SecDbItem.c` (`SecDbItemGetPrimaryKey`).
  package func primaryKeyDigest() throws(ItemCryptoError) -> [UInt8] {
    let encoding = try encoded { () throws(FormatError) in try primaryKeyEncoding() }
    return try hashed { () throws(DataProtectionError) in try Digest.sha1(encoding) }
  }

  /// Returns the SHA-1 of the item's content, including its secret, 20 bytes: the value of the attribute `sha1`.
  ///
  /// Source: Apple `SecDbItem.c` (`SecDbItemGetSHA1`).
  package func digest() throws(ItemCryptoError) -> [UInt8] {
    let encoding = try encoded { () throws(FormatError) in try digestEncoding() }
    return try hashed { () throws(DataProtectionError) in
      try encoding.withBytes { (bytes) throws(DataProtectionError) in try Digest.sha1(bytes) }
    }
  }

  /// Returns a UUID derived from the primary key: the first 16 bytes of the SHA-256 of its encoding, as upper-case
  /// text.
  ///
  /// Source: Apple `SecDbItem.c`; the tests of Apple's CKKS contain four such UUIDs.
  package func derivedUUIDText() throws(ItemCryptoError) -> String {
    let encoding = try encoded { () throws(FormatError) in try primaryKeyEncoding() }
    let hash = try hashed { () throws(DataProtectionError) in try Digest.sha256(encoding) }
    return UUIDText.uppercase(Array(hash.prefix(16))) ?? ""
  }

  private func encoded<Result>(_ body: () throws(FormatError) -> Result) throws(ItemCryptoError) -> Result {
    do throws(FormatError) { return try body() } catch { throw ItemCryptoError(.malformed(error)) }
  }

  private func hashed(_ body: () throws(DataProtectionError) -> [UInt8]) throws(ItemCryptoError) -> [UInt8] {
    do throws(DataProtectionError) { return try body() } catch { throw ItemCryptoError(.failed(error)) }
  }
}
