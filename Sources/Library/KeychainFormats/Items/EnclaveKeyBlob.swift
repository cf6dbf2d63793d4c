import Basics

/// The form in which CryptoKit gives out a private key of the Secure Enclave (`dataRepresentation`), and in which an app
/// keeps it wherever it likes, often as a generic password: the key wrapped so that only the chip can use it.
///
/// An OCTET STRING with one dictionary of Apple's DER in it: `ed`, with the access control `acl` that goes with the key,
/// and `rk`, the key itself: among others its identifiers `bid` and `kid`, the public key `pub` as 04‖X‖Y, and the wrapped
/// key material `rkm`. Apple does not document the form, so that other values may hold such a key as well; further
/// members are accepted.
///
/// Source: Apple Developer Forums, threads 119315 (such a value, printed) and 786223 (what it is).
enum EnclaveKeyBlob {
  /// More than a key with the longest access control takes, in bytes.
  static let maximumByteCount = 16 << 10
  /// The most dictionaries inside each other; the printed one has four.
  static let maximumDepth = 8
  private static let publicKeyByteCount = 65

  /// Whether bytes have this form, to the last one. Nothing of them is copied.
  static func matches(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count <= maximumByteCount, bytes.first == DERPropertyList.Tag.data else { return false }
    do throws(FormatError) {
      var decoder = try DERDecoder(bytes, format: .der, dates: .refuse)
      let outer = try decoder.onlyElement()
      guard outer.tag == DERPropertyList.Tag.data else { return false }
      var rest = outer.contents
      let value = try decoder.element(in: &rest)
      guard rest.isAtEnd, let blob = try members(of: value, depth: 1, &decoder) else { return false }
      guard let restrictions = blob["ed"], let key = blob["rk"],
        let restrictions = try members(of: restrictions, depth: 2, &decoder),
        let key = try members(of: key, depth: 2, &decoder)
      else { return false }
      return restrictions["acl"]?.tag == DERPropertyList.Tag.dictionary && isKey(key)
    } catch {
      return false
    }
  }

  private static func isKey(_ members: [AttributeCode: DERDecoder.Element]) -> Bool {
    let needed: [AttributeCode] = ["bid", "kid", "pub", "rkm"]
    guard needed.allSatisfy({ members[$0]?.tag == DERPropertyList.Tag.data }), let pub = members["pub"] else {
      return false
    }
    return pub.contents.remaining == publicKeyByteCount && pub.contents.rest.first == 0x04
  }

  /// Returns the members of a dictionary whose values are all plain (see `isPlain`); `nil` for any other element, or if
  /// a key occurs twice.
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
  /// Whether the item is a password whose value has the form of a CryptoKit key of the Secure Enclave.
  public var holdsEnclaveKey: Bool {
    switch kind {
    case .genericPassword, .internetPassword: secret?.withBytes(EnclaveKeyBlob.matches) ?? false
    case .certificate, .key: false
    }
  }
}
