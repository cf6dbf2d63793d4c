/// The protocol of an internet password, as in `kSecAttrProtocol`: four characters, blanks included.
///
/// Source: the values of Apple's `kSecAttrProtocol…` constants (`SecItemConstants.c`).
package struct InternetProtocol: RawRepresentable, Sendable, Hashable {
  package let rawValue: String

  package init(rawValue: String) { self.rawValue = rawValue }

  /// Creates a protocol from its usual name, such as `https` or `imaps`, or `nil` if the name has no code.
  package init?(name: String) {
    guard let entry = Self.table.first(where: { $0.name == name.lowercased() }) else { return nil }
    rawValue = entry.code
  }

  /// The names of all protocols, in alphabetical order.
  package static var names: [String] { table.map(\.name) }

  /// The scheme of URLs with this protocol, such as `https` for `htps`, or `nil` if the code is unknown.
  ///
  /// Source: IANA, "Uniform Resource Identifier (URI) Schemes".
  package var scheme: String? { Self.table.first { $0.code == rawValue }?.scheme }

  /// The default port, or `nil` if the code is unknown (IANA, "Service Name and Transport Protocol Port Number
  /// Registry").
  package var standardPort: UInt16? { Self.table.first { $0.code == rawValue }?.port }

  private struct Entry {
    let name: String
    let code: String
    let scheme: String
    let port: UInt16

    init(_ name: String, _ code: String, _ port: UInt16, scheme: String? = nil) {
      self.name = name
      self.code = code
      self.port = port
      self.scheme = scheme ?? name
    }
  }

  private static let table = [
    Entry("afp", "afp ", 548), Entry("ftp", "ftp ", 21), Entry("ftps", "ftps", 990), Entry("http", "http", 80),
    Entry("https", "htps", 443), Entry("imap", "imap", 143), Entry("imaps", "imps", 993), Entry("ipp", "ipp ", 631),
    Entry("irc", "irc ", 194), Entry("ircs", "ircs", 6697), Entry("ldap", "ldap", 389), Entry("ldaps", "ldps", 636),
    Entry("nntp", "nntp", 119), Entry("nntps", "ntps", 563, scheme: "snews"),
    Entry("pop3", "pop3", 110, scheme: "pop"), Entry("pop3s", "pops", 995, scheme: "pops"),
    Entry("rtsp", "rtsp", 554), Entry("smb", "smb ", 445), Entry("smtp", "smtp", 25), Entry("socks", "sox ", 1080),
    Entry("ssh", "ssh ", 22), Entry("telnet", "teln", 23), Entry("telnets", "tels", 992),
  ]
}
