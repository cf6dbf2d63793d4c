import Basics

/// CryptoKit's representation of a private key in the Secure Enclave (`dataRepresentation`), which apps often store as
/// a generic password. The key in it is wrapped so that only the same chip can use it.
///
/// It is an OCTET STRING with a dictionary in Apple's DER:
///
/// ```
/// ed        dictionary: acl (access control)
/// rk        dictionary: bid and kid (identifiers), pub (public key, 04‖X‖Y), rkm (wrapped key material)
/// ```
///
/// Apple does not document the format, so a value that does not match may still contain such a key. Additional members
/// are accepted.
///
/// Source: Apple Developer Forums, threads 119315 (an example of such a value) and 786223 (its meaning).
enum SecureEnclaveKeyBlob {
  /// The maximum number of bytes. A key with the longest access control has fewer.
  static let maximumByteCount = 16 << 10
  /// The deepest nesting of dictionaries; the published value has four levels.
  static let maximumDepth = 8
  private static let publicKeyByteCount = 65

  /// Returns whether bytes have this format. Nothing is copied.
  static func matches(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count <= maximumByteCount, bytes.first == DERPropertyList.Tag.data else { return false }
    do throws(FormatError) {
      var decoder = try DERDecoder(bytes, format: .der, dates: .refuse)
      let outer = try decoder.onlyElement()
      guard outer.tag == DERPropertyList.Tag.data else { return false }
      var contents = outer.contents
      let value = try decoder.element(in: &contents)
      guard contents.isAtEnd, let blob = try members(of: value, depth: 1, &decoder) else { return false }
      guard let restrictionsElement = blob["ed"], let keyElement = blob["rk"],
        let restrictions = try members(of: restrictionsElement, depth: 2, &decoder),
        let key = try members(of: keyElement, depth: 2, &decoder)
      else { return false }
      return restrictions["acl"]?.tag == DERPropertyList.Tag.dictionary && isKey(key)
    } catch {
      return false
    }
  }

  private static func isKey(_ members: [AttributeCode: DERDecoder.Element]) -> Bool {
    let requiredMembers: [AttributeCode] = ["bid", "kid", "pub", "rkm"]
    guard requiredMembers.allSatisfy({ members[$0]?.tag == DERPropertyList.Tag.data }), let pub = members["pub"] else {
      return false
    }
    return pub.contents.remaining == publicKeyByteCount && pub.contents.remainingBytes.first == 0x04
  }

  /// Returns the members of a dictionary. Returns `nil` if the element is not a dictionary, is nested too deeply, has a
  /// value that is not plain, or has a key twice.
  private static func members(
    of element: DERDecoder.Element, depth: Int, _ decoder: inout DERDecoder
  ) throws(FormatError) -> [AttributeCode: DERDecoder.Element]? {
    guard element.tag == DERPropertyList.Tag.dictionary, depth <= maximumDepth else { return nil }
    var contents = element.contents
    var members: [AttributeCode: DERDecoder.Element] = [:]
    while !contents.isAtEnd {
      let pair = try decoder.pair(in: &contents)
      guard try isPlain(pair.value, depth: depth, &decoder),
        members.updateValue(pair.value, forKey: try decoder.attributeCode(of: pair.key)) == nil
      else { return nil }
    }
    return members
  }

  /// Returns whether an element is data, a string, a boolean, an integer, or a dictionary of such elements.
  private static func isPlain(
    _ element: DERDecoder.Element, depth: Int, _ decoder: inout DERDecoder
  ) throws(FormatError) -> Bool {
    switch element.tag {
    case DERPropertyList.Tag.dictionary: try members(of: element, depth: depth + 1, &decoder) != nil
    case DERPropertyList.Tag.boolean: element.contents.remaining == 1
    case DERPropertyList.Tag.integer: element.contents.remaining > 0
    case DERPropertyList.Tag.data, DERPropertyList.Tag.string: true
    default: false
    }
  }
}

extension KeychainItem {
  /// Whether the item is a password whose value has the format of a CryptoKit key in the Secure Enclave.
  package var containsSecureEnclaveKey: Bool {
    switch kind {
    case .genericPassword, .internetPassword: secret?.withBytes(SecureEnclaveKeyBlob.matches) ?? false
    case .certificate, .key: false
    }
  }
}
