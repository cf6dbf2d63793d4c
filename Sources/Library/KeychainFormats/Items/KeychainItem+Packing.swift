import Basics

extension KeychainItem {
  /// Reads an item directly into its packed form, or returns `nil` if only `init(derDictionary:)` can read it or report
  /// its error.
  package init?(packing bytes: UnsafeRawBufferPointer, kind: ItemKind) {
    var reader = CanonicalDERReader(bytes)
    guard let dictionary = reader.next(), dictionary.tag == DERPropertyList.Tag.dictionary,
      reader.remainingBytes.isEmpty
    else { return nil }
    // Keys have the most attributes, 37 in the fixtures. With a larger capacity, the elements would not be on the stack.
    let maximumCount = 42
    var secrets: AttributeMap<SensitiveBytes> = [:]
    let attributes = withUnsafeTemporaryAllocation(of: CanonicalDERReader.Element.self, capacity: maximumCount) {
      elements -> AttributeMap<PropertyValue>? in
      var codes: [AttributeCode] = []
      codes.reserveCapacity(maximumCount / 2)
      var pairs = CanonicalDERReader(dictionary.contents)
      while !pairs.remainingBytes.isEmpty {
        guard let (key, value) = pairs.nextPair(), let code = AttributeCode(utf8: key) else { return nil }
        if code.isSecret(in: kind) {
          guard value.tag == DERPropertyList.Tag.data, secrets[code] == nil else { return nil }
          secrets[code] = SensitiveBytes(copying: value.contents)
        } else {
          guard codes.count < maximumCount, AttributeCode.index(of: code, in: codes) == nil else { return nil }
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
    self.attributes.internCodes(for: kind)
    self.secrets.internCodes(Self.usualSecretCodes)
  }
}
