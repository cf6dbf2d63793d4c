/// The four kinds of keychain item. The raw value is the name of the table, the key of the array in a backup and the
/// value of `kSecClass`. `allCases` is the order of items in a backup, which also determines the items' numbers.
///
/// Source: Apple `SecItemSchema.c`, `SecItemDb.c` (`SecServerCopyKeychainPlist`).
public enum ItemKind: String, Sendable, CaseIterable, Hashable {
  /// A password for a service and an account (`kSecClassGenericPassword`). Apps also store tokens and keys in such
  /// items.
  case genericPassword = "genp"
  /// A password for a server, with protocol, port and path (`kSecClassInternetPassword`).
  case internetPassword = "inet"
  /// An X.509 certificate (`kSecClassCertificate`), whose secret is its DER.
  case certificate = "cert"
  /// A cryptographic key (`kSecClassKey`), whose secret is PKCS#1 for RSA and 04‖X‖Y‖K for a curve.
  case key = "keys"

  /// The name in reports and JSON.
  package var reportName: String {
    switch self {
    case .genericPassword: "generic-password"
    case .internetPassword: "internet-password"
    case .certificate: "certificate"
    case .key: "key"
    }
  }

  /// The name in a sentence: "generic password".
  package var noun: String { reportName.replacing("-", with: " ") }
}
