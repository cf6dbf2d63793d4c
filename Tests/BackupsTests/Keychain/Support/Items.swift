import Basics
import KeychainFormats

extension KeychainItem {
  /// Creates a generic password with a secret.
  static func password(
    _ account: String, _ protection: ProtectionClass = .whenUnlocked, service: String = "chat.example",
    secret: String? = nil, changed seconds: Double = 1000, with more: AttributeMap<PropertyValue> = [:]
  ) -> KeychainItem {
    var item = KeychainItem(
      kind: .genericPassword,
      attributes: [
        .account: .string(account), .service: .string(service), .accessGroup: .string("app"),
        .creationDate: .date(KeychainDate(secondsSinceReferenceDate: 500)),
        .modificationDate: .date(KeychainDate(secondsSinceReferenceDate: seconds)), .synchronizable: .integer(0),
      ])
    item.protection = protection
    item.secret = SensitiveBytes(copying: Array((secret ?? "planted secret of \(account)").utf8))
    item.attributes.merge(more) { $1 }
    return item
  }
}
