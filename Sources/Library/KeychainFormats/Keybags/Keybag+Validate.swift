import Basics

extension Keybag {
  /// Checks that every field that opening the bag needs is there once, with its length.
  ///
  /// Unknown records, class numbers and bag types are no fault, nor is any version.
  /// - Throws: `.malformed` that names the field, with the offset of the record at fault, or for an absent field the
  ///   offset where the header or the group ends.
  public func validate() throws(FormatError) {
    var offset = 0
    try Self.check(
      header, of: "the header", from: offset, required: Self.headerLengths, optional: Self.secondRoundLengths)
    offset += header.reduce(0) { $0 + $1.byteCount }
    if (dpic == nil) != (dpsl == nil) {
      throw FormatError(.keybag, .malformed, "the header has one of DPIC and DPSL without the other", offset: offset)
    }
    var seen: Set<KeyClass> = []
    for classKey in classKeys {
      try Self.check(
        classKey.records, of: "a class key", from: offset, required: Self.groupLengths, optional: Self.groupExtraLengths
      )
      try Self.checkKey(of: classKey, from: offset)
      if let keyClass = classKey.keyClass, !seen.insert(keyClass).inserted {
        throw FormatError(.keybag, .malformed, "class \(keyClass.rawValue) occurs twice", offset: offset)
      }
      offset += classKey.records.reduce(0) { $0 + $1.byteCount }
    }
  }

  private typealias Lengths = [(tag: Tag, count: Int)]

  private static let headerLengths: Lengths = [
    (.version, 4), (.type, 4), (.uuid, 16), (.hmacKey, 40), (.wrap, 4), (.salt, 20), (.iterations, 4),
  ]
  private static let secondRoundLengths: Lengths = [(.dpwt, 4), (.dpic, 4), (.dpsl, 20)]
  private static let groupLengths: Lengths = [(.uuid, 16), (.keyClass, 4), (.wrap, 4)]
  private static let groupExtraLengths: Lengths = [(.keyType, 4), (.publicKey, 32)]

  private static func check(
    _ records: [Record], of place: String, from start: Int, required: Lengths, optional: Lengths
  ) throws(FormatError) {
    var seen: Set<Tag> = []
    var offset = start
    for record in records {
      let known = (required + optional).first { $0.tag == record.tag }
      if let known {
        guard record.value.count == known.count else {
          throw FormatError(
            .keybag, .malformed, "\(record) in \(place); it has \(known.count)", offset: offset)
        }
        guard seen.insert(record.tag).inserted else {
          throw FormatError(.keybag, .malformed, "\(record.tag) occurs twice in \(place)", offset: offset)
        }
      }
      offset += record.byteCount
    }
    for (tag, _) in required where !seen.contains(tag) {
      throw FormatError(.keybag, .malformed, "\(place) has no \(tag)", offset: offset)
    }
  }

  private static func checkKey(of classKey: ClassKey, from start: Int) throws(FormatError) {
    var offset = start
    var keyCount = 0
    for record in classKey.records {
      if record.tag == .wrappedKey {
        keyCount += 1
        guard keyCount == 1 else {
          throw FormatError(.keybag, .malformed, "WPKY occurs twice in a class key", offset: offset)
        }
        let expected = classKey.wrap?.contains(.password) == true ? 40 : 32
        guard record.value.count == expected else {
          throw FormatError(
            .keybag, .malformed, "\(record) in a class key; its WRAP asks for \(expected)", offset: offset)
        }
      }
      offset += record.byteCount
    }
    guard keyCount == 1 else { throw FormatError(.keybag, .malformed, "a class key has no WPKY", offset: offset) }
    if classKey.keyType == .curve25519, classKey.publicKey == nil {
      throw FormatError(.keybag, .malformed, "a Curve25519 class key has no PBKY", offset: offset)
    }
  }
}

extension Keybag {
  /// Why the header does not say one thing about the derivation: a field that stands twice with two values, or a count of
  /// rounds that is none. A reader that took one of two values would derive another key than the next reader.
  public var derivationFault: String? {
    for tag in [Tag.salt, .iterations, .dpic, .dpsl] where Set(header.filter { $0.tag == tag }.map(\.value)).count > 1 {
      return "its \(tag) occurs twice with different values"
    }
    guard dpic == nil, let value = header.value(of: .dpic) else { return nil }
    return "its \(Tag.dpic) has \(value.count) bytes where 4 are expected"
  }
}

extension Keybag.ClassKey {
  /// Whether its wrapped key stands twice with two values.
  public var isAmbiguous: Bool { Set(records.filter { $0.tag == .wrappedKey }.map(\.value)).count > 1 }
}
