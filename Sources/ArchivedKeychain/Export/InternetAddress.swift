import KeychainFormats

/// The address that a password is for, put together from an item's attributes.
enum InternetAddress {
  /// `https://example.org:8443/login` of an internet password, a service that is an address itself of a generic one;
  /// empty where nothing says an address.
  static func text(of item: KeychainItem) -> String {
    guard item.kind == .internetPassword else {
      let service = item.words(.service)
      return ["https://", "http://"].contains(where: service.lowercased().hasPrefix) ? service : ""
    }
    let server = item.words(.server)
    guard !server.isEmpty else { return "" }
    let spoken = InternetProtocol(rawValue: item.words(.protocolType))
    // Numeric addresses of IPv6 have colons of their own (RFC 3986, 3.2.2).
    var text = server.contains(":") && !server.hasPrefix("[") ? "[\(server)]" : server
    if let scheme = spoken.scheme { text = "\(scheme)://\(text)" }
    if let port = item[.port]?.integerValue.flatMap(UInt16.init(exactly:)), port != 0, port != spoken.standardPort {
      text += ":\(port)"
    }
    let path = item.words(.path)
    guard !path.isEmpty, path != "/" else { return text }
    return text + (path.hasPrefix("/") ? "" : "/") + escaped(path)
  }

  /// Spelled in bytes where an address may not have the character itself (RFC 3986, 3.3 and 3.4). What is spelled in
  /// bytes already stays.
  private static func escaped(_ path: String) -> String {
    let plain = Set("-._~!$&'()*+,;=:@/?%#".utf8)
    return path.utf8.reduce(into: "") { text, byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: text.unicodeScalars.append(Unicode.Scalar(byte))
      case _ where plain.contains(byte): text.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        text += (byte < 0x10 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
      }
    }
  }
}
