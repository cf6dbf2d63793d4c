import Basics

extension KeychainItem {
  /// Reads an item into the form in which it is held; `nil` where `init(derDictionary:)` has to be asked.
  package init?(packing bytes: UnsafeRawBufferPointer, kind: ItemKind) {
    var all = PlainDER(bytes)
    guard let dictionary = all.next(), dictionary.tag == DERPropertyList.Tag.dictionary, all.rest.isEmpty else {
      return nil
    }
    // Keys have the most, 37 in backups of fixtures; with more than these the elements would not lie on the stack.
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
