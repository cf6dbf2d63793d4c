package import Basics

/// Encodes the dictionary of an item into memory that is wiped, without other copies of its secrets.
struct ItemEncoder {
  /// Whether a decoded date keeps its text; if not, the text is computed from the seconds.
  let keepsDateText: Bool

  /// The maximum number of bytes of a pair in addition to its code and its contents: three tags and three lengths of up
  /// to five bytes.
  static let maximumOverhead = 18

  /// Encodes a dictionary of attributes and secrets.
  ///
  /// - Parameter attributes: The attributes, with distinct codes.
  func encode(
    attributes: some Sequence<(key: AttributeCode, value: PropertyValue)>, secrets: AttributeMap<SensitiveBytes>
  ) throws(FormatError) -> SensitiveBytes {
    let encoder = DEREncoder(keepsDateText: keepsDateText)
    var pairs = EncodedPairs(capacity: attributes.underestimatedCount + secrets.count)
    var pair: [UInt8] = []
    for (code, value) in attributes where value != .null {
      pair.removeAll(keepingCapacity: true)
      DEREncoder.appendElement(DERPropertyList.Tag.string, code.rawValue.utf8, to: &pair)
      try encoder.append(value, depth: 2, to: &pair)
      pairs.append(pair)
    }
    for (code, secret) in secrets {
      pair.removeAll(keepingCapacity: true)
      DEREncoder.appendElement(DERPropertyList.Tag.string, code.rawValue.utf8, to: &pair)
      DEREncoder.appendHeader(DERPropertyList.Tag.data, count: secret.count, to: &pair)
      pairs.append(pair, secret: secret)
    }
    return pairs.dictionary()
  }
}

/// The encoded pairs of a dictionary, whose secrets are not copied until the dictionary is complete.
private struct EncodedPairs {
  /// A SEQUENCE of a key and a value.
  private struct Pair {
    /// The range of the pair's bytes in `bytes`, without the secret.
    let range: Range<Int>
    /// The secret at the end of the pair, if there is one.
    let secret: SensitiveBytes?

    var byteCount: Int { range.count + (secret?.count ?? 0) }
  }

  private var pairs: [Pair] = []
  /// The bytes of all pairs without the secrets. An array for each pair would take more memory than its contents.
  private var bytes: [UInt8] = []

  init(capacity: Int) { pairs.reserveCapacity(capacity) }

  /// Adds a pair.
  ///
  /// - Parameters:
  ///   - contents: The key and the value, or only the value's header if the value is a secret.
  ///   - secret: The secret, or `nil` if the value is not a secret.
  mutating func append(_ contents: [UInt8], secret: SensitiveBytes? = nil) {
    let start = bytes.count
    DEREncoder.appendHeader(DERPropertyList.Tag.sequence, count: contents.count + (secret?.count ?? 0), to: &bytes)
    bytes.append(contentsOf: contents)
    pairs.append(Pair(range: start..<bytes.count, secret: secret))
  }

  /// Returns the dictionary: its header and the sorted pairs.
  func dictionary() -> SensitiveBytes {
    // The keys are distinct, and each starts with its length, so none is a prefix of another. A comparison therefore
    // never reaches a value.
    let sortedPairs = pairs.sorted { bytes[$0.range].lexicographicallyPrecedes(bytes[$1.range]) }
    let contentCount = pairs.reduce(0) { $0 + $1.byteCount }
    var header: [UInt8] = []
    DEREncoder.appendHeader(DERPropertyList.Tag.dictionary, count: contentCount, to: &header)
    return SensitiveBytes(count: header.count + contentCount) { target in
      var offset = 0
      func append(_ part: UnsafeRawBufferPointer) {
        UnsafeMutableRawBufferPointer(rebasing: target[offset..<(offset + part.count)]).copyMemory(from: part)
        offset += part.count
      }
      header.withUnsafeBytes { append($0) }
      bytes.withUnsafeBytes { bytes in
        for pair in sortedPairs {
          append(UnsafeRawBufferPointer(rebasing: bytes[pair.range]))
          pair.secret?.withBytes { append($0) }
        }
      }
    }
  }
}

extension KeychainItem {
  /// Returns the dictionary whose SHA-1 is the item's primary-key digest and whose SHA-256 gives its derived UUID.
  ///
  /// It contains all attributes flagged P. Absent required attributes have their defaults; an absent `vwht`, `tkid` or
  /// `ggrp` is omitted. The texts of dates are computed from their seconds. Source: Apple `SecDbItem.c` (`SecDbItemCopyPrimaryKey`).
  /// - Throws: `.unencodable` for a value that DER cannot represent.
  package func primaryKeyEncoding() throws(FormatError) -> [UInt8] {
    let encoded = try ItemEncoder(keepsDateText: false).encode(
      attributes: attributesWithDefaults(flagged: .primaryKey), secrets: [:])
    return encoded.withBytes { Array($0) }
  }

  /// Returns the dictionary whose SHA-1 is the item's stored digest (`sha1`): all attributes flagged H, including the
  /// secret.
  ///
  /// Source: Apple `SecDbItem.c` (`SecDbItemGetSHA1`).
  /// - Throws: `.unencodable` for a value that DER cannot represent.
  package func digestEncoding() throws(FormatError) -> SensitiveBytes {
    let secrets = self.secrets.filter { code, _ in
      AttributeTable.definition(of: code, in: kind)?.flags.contains(.inDigest) ?? false
    }
    return try ItemEncoder(keepsDateText: false).encode(
      attributes: attributesWithDefaults(flagged: .inDigest), secrets: secrets)
  }

  private func attributesWithDefaults(flagged flag: AttributeFlags) -> [(key: AttributeCode, value: PropertyValue)] {
    AttributeTable.definitions(of: kind).compactMap { definition in
      guard definition.flags.contains(flag), !definition.flags.contains(.returnedAsData) else { return nil }
      return (attributes[definition.code] ?? definition.defaultValue).map { (definition.code, $0) }
    }
  }
}

extension AttributeDefinition {
  /// The value to assume if a required attribute is absent, or `nil` if the attribute is optional.
  ///
  /// Source: Apple `SecDbItem.c` (`SecDbAttrCopyDefaultValue`).
  package var defaultValue: PropertyValue? {
    guard flags.contains(.notNull) else { return nil }
    return switch kind {
    case .number, .sync, .tomb, .useTombstone, .rowID: .integer(0)
    case .creationDate, .modificationDate, .date: .date(.reference)
    case .blob, .data, .encryptedData, .sha1, .primaryKey, .uuid, .accessControl: .data([])
    case .string, .access: .string("")
    }
  }
}

extension KeychainItem {
  /// Returns whether it is certain that the item's DER dictionary and its digest can be encoded, and that the dictionary
  /// has at most `maximumByteCount` bytes.
  ///
  /// Looks only at the sizes of values, which is much faster than encoding. `false` means that the result is unknown.
  package func certainlyEncodes(within maximumByteCount: Int) -> Bool {
    var count = ItemEncoder.maximumOverhead
    let packed = attributes.packed
    for (index, code) in attributes.keys.enumerated() {
      let contentCount =
        packed.map { $0.maximumDERByteCount(at: index) } ?? attributes[index].value.maximumEncodedByteCount
      guard !code.isSecret(in: kind), let contentCount else { return false }
      count += ItemEncoder.maximumOverhead + code.rawValue.utf8.count + contentCount
    }
    for (code, secret) in secrets { count += ItemEncoder.maximumOverhead + code.rawValue.utf8.count + secret.count }
    return count <= maximumByteCount
  }

  /// Whether encoding and decoding the item certainly gives the same item, except for the order of its attributes.
  /// `false` means that the result is unknown.
  package var roundTripsExactly: Bool {
    // An encoding of this size cannot contain more values than the decoder accepts.
    isPacked && secrets.keys.allSatisfy { $0.isSecret(in: kind) }
      && certainlyEncodes(within: DERPropertyList.maximumValueCount)
  }
}

extension PropertyValue {
  /// An upper bound for the encoded contents in bytes, or `nil` if only encoding shows whether the value can be encoded.
  fileprivate var maximumEncodedByteCount: Int? {
    switch self {
    case .null, .boolean, .integer: 8
    case .data(let bytes): bytes.count
    case .string(let text): text.utf8.count
    case .date(let date): DERDate.maximumByteCount(of: date)
    case .unsignedInteger, .real, .uid, .array, .dictionary, .set: nil
    }
  }
}
