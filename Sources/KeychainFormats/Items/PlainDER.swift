/// Walks through an item's DER that is as devices write it: for what is held as bytes, without making values of it.
///
/// Whatever is not so plain is left to `DERDecoder`, which says what it is.
struct PlainDER {
  /// A tag, and the contents where they lie.
  struct Element {
    let tag: UInt8
    let contents: UnsafeRawBufferPointer
  }

  private(set) var rest: UnsafeRawBufferPointer

  init(_ bytes: UnsafeRawBufferPointer) { rest = bytes }

  /// The next element; `nil` where there is none, or one whose length has more than two bytes or is not in its shortest form.
  mutating func next() -> Element? {
    guard rest.count >= 2 else { return nil }
    var (start, count) = (2, Int(rest[1]))
    if count >= 0x80 {
      let digits = count - 0x80
      guard (1...2).contains(digits), rest.count >= 2 + digits else { return nil }
      count = digits == 1 ? Int(rest[2]) : Int(rest[2]) << 8 | Int(rest[3])
      guard count >= (digits == 1 ? 0x80 : 0x100) else { return nil }
      start += digits
    }
    guard count <= rest.count - start else { return nil }
    let element = Element(tag: rest[0], contents: UnsafeRawBufferPointer(rebasing: rest[start..<(start + count)]))
    rest = UnsafeRawBufferPointer(rebasing: rest[(start + count)...])
    return element
  }

  /// Steps over a SEQUENCE of a string and another element.
  mutating func nextPair() -> (key: UnsafeRawBufferPointer, value: Element)? {
    guard let pair = next(), pair.tag == DERPropertyList.Tag.sequence else { return nil }
    var parts = PlainDER(pair.contents)
    guard let key = parts.next(), key.tag == DERPropertyList.Tag.string, let value = parts.next(), parts.rest.isEmpty
    else { return nil }
    return (key.contents, value)
  }
}

extension KeychainItem {
  /// Reads an item into the form in which it is held; `nil` where `init(derDictionary:)` has to be asked.
  package init?(packing bytes: UnsafeRawBufferPointer, kind: ItemKind) {
    var all = PlainDER(bytes)
    guard let dictionary = all.next(), dictionary.tag == DERPropertyList.Tag.dictionary, all.rest.isEmpty else {
      return nil
    }
    // Keys of a backup have the most, 37; with more than these the elements would not lie on the stack.
    let maximumCount = 42
    var secrets: AttributeMap<SensitiveBytes> = [:]
    let attributes = withUnsafeTemporaryAllocation(of: PlainDER.Element.self, capacity: maximumCount) {
      elements -> AttributeMap<PropertyValue>? in
      var codes: [AttributeCode] = []
      codes.reserveCapacity(maximumCount / 2)
      var pairs = PlainDER(dictionary.contents)
      while !pairs.rest.isEmpty {
        guard let (key, value) = pairs.nextPair(), let code = AttributeCode(utf8: key) else { return nil }
        if code.isSecret(in: kind) {
          guard value.tag == DERPropertyList.Tag.data, secrets[code] == nil else { return nil }
          secrets[code] = SensitiveBytes(copying: value.contents)
        } else {
          guard codes.count < maximumCount, AttributeCode.place(of: code, in: codes) == nil else { return nil }
          elements.initializeElement(at: codes.count, to: value)
          codes.append(code)
        }
      }
      let packed = PackedPropertyValues(UnsafeBufferPointer(rebasing: elements[..<codes.count]))
      return packed.map { AttributeMap(codes, packed: $0) }
    }
    guard let attributes else { return nil }
    self.init(kind: kind, attributes: attributes, secrets: secrets)
    self.secrets.pack()
    self.attributes.shareCodes(amongItemsOf: kind)
    self.secrets.shareCodes(Self.usualSecretCodes)
  }
}
