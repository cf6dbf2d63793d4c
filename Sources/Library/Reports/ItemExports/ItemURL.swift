import KeyhaulKit

/// The URL that a password is for, from an item's attributes.
enum ItemURL {
  /// Returns the URL of an item, such as `https://example.org:8443/login`. If the server or the service is already a URL,
  /// returns it unchanged. Empty if the item has no URL.
  static func text(of item: KeychainItem) -> String {
    guard item.kind == .internetPassword else {
      let service = item.text(of: .service)
      return ["https://", "http://"].contains(where: service.lowercased().hasPrefix) ? service : ""
    }
    let server = item.text(of: .server)
    guard !server.isEmpty, !hasScheme(server) else { return server }
    let itemProtocol = InternetProtocol(rawValue: item.text(of: .protocolType))
    // IPv6 addresses contain colons (RFC 3986, 3.2.2).
    var text = isIPv6(server) ? "[\(server)]" : server
    if let scheme = itemProtocol.scheme { text = "\(scheme)://\(text)" }
    if let port = item[.port]?.integerValue.flatMap(UInt16.init(exactly:)), port != 0,
      port != itemProtocol.standardPort,
      !text.hasSuffix(":\(port)")
    {
      text += ":\(port)"
    }
    let path = item.text(of: .path)
    guard !path.isEmpty, path != "/" else { return text }
    return text + (path.hasPrefix("/") ? "" : "/") + percentEncoded(path)
  }

  /// Returns whether a text begins with a URL scheme, such as `https://` (RFC 3986, 3.1).
  private static func hasScheme(_ text: String) -> Bool { text.contains(/^[A-Za-z][A-Za-z0-9+.\-]*:\/\//) }

  /// Returns whether a text is an IPv6 address: eight groups of hexadecimal digits, or fewer with one `::`. The last two
  /// groups may be an IPv4 address, and a zone may follow (RFC 4291, 2.2; RFC 4007, 11).
  private static func isIPv6(_ text: String) -> Bool {
    let address = text.prefix { $0 != "%" }
    let halves = address.split(separator: "::", omittingEmptySubsequences: false)
    guard halves.count <= 2 else { return false }
    let groups = halves.filter { !$0.isEmpty }.flatMap { $0.split(separator: ":", omittingEmptySubsequences: false) }
    let endsInIPv4 = groups.last?.contains(".") == true
    if endsInIPv4, groups.last?.wholeMatch(of: /\d{1,3}(\.\d{1,3}){3}/) == nil { return false }
    guard (endsInIPv4 ? groups.dropLast() : groups[...]).allSatisfy({ $0.wholeMatch(of: /[0-9A-Fa-f]{1,4}/) != nil })
    else { return false }
    // An IPv4 address takes the space of two groups.
    let groupCount = groups.count + (endsInIPv4 ? 1 : 0)
    return halves.count == 2 ? groupCount < 8 : groupCount == 8
  }

  /// Returns a path with percent encoding for characters that a URL may not contain (RFC 3986, 3.3 and 3.4). Existing
  /// percent encoding stays.
  private static func percentEncoded(_ path: String) -> String {
    let allowed = Set("-._~!$&'()*+,;=:@/?%#".utf8)
    return path.utf8.reduce(into: "") { text, byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: text.unicodeScalars.append(Unicode.Scalar(byte))
      case _ where allowed.contains(byte): text.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        text += (byte < 0x10 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
      }
    }
  }
}
