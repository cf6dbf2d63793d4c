/// The four kinds of keychain item. The raw value is the table's name, the array's key in a backup and the value of
/// `kSecClass`. `allCases` is the order in which a backup is written, read and numbered.
///
/// Source: Apple `SecItemSchema.c`, `SecItemDb.c` (`SecServerCopyKeychainPlist`).
public enum ItemKind: String, Sendable, CaseIterable, Hashable {
  case genericPassword = "genp"
  case internetPassword = "inet"
  case certificate = "cert"
  case key = "keys"

  /// The name that reports and JSON use.
  public var reportName: String {
    switch self {
    case .genericPassword: "generic-password"
    case .internetPassword: "internet-password"
    case .certificate: "certificate"
    case .key: "key"
    }
  }

  /// The same in a sentence: "generic password".
  package var noun: String { reportName.replacing("-", with: " ") }
}
