import Basics
public import KeychainFormats

extension KeychainItem {
  /// SHA-1 of the attributes that make the item the one it is; 20 bytes. Never stored, compared.
  ///
  /// Source: Apple `SecDbItem.c` (`SecDbItemGetPrimaryKey`).
  public func primaryKeyDigest() throws(ItemSealError) -> [UInt8] {
    let encoding = try encoded { () throws(FormatError) in try primaryKeyEncoding() }
    return try hashed { () throws(DataProtectionError) in try Digest.sha1(encoding) }
  }

  /// SHA-1 of all that counts as the item's content, its secret included: the value of its `sha1` attribute; 20 bytes.
  ///
  /// Source: Apple `SecDbItem.c` (`SecDbItemGetSHA1`).
  public func digest() throws(ItemSealError) -> [UInt8] {
    let encoding = try encoded { () throws(FormatError) in try digestEncoding() }
    return try hashed { () throws(DataProtectionError) in
      try encoding.withBytes { (bytes) throws(DataProtectionError) in try Digest.sha1(bytes) }
    }
  }

  /// A UUID that follows from the item's primary key: the first 16 bytes of SHA-256 of its encoding, as upper-case text.
  ///
  /// Source: Apple `SecDbItem.c`; four of them stand in the tests of Apple's CKKS.
  public func derivedUUIDText() throws(ItemSealError) -> String {
    let encoding = try encoded { () throws(FormatError) in try primaryKeyEncoding() }
    let hash = try hashed { () throws(DataProtectionError) in try Digest.sha256(encoding) }
    return UUIDText.uppercase(Array(hash.prefix(16))) ?? ""
  }

  private func encoded<Result>(_ body: () throws(FormatError) -> Result) throws(ItemSealError) -> Result {
    do throws(FormatError) { return try body() } catch { throw ItemSealError(.malformed(error)) }
  }

  private func hashed(_ body: () throws(DataProtectionError) -> [UInt8]) throws(ItemSealError) -> [UInt8] {
    do throws(DataProtectionError) { return try body() } catch { throw ItemSealError(.failed(error)) }
  }
}
