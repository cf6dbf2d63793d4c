package import Basics
package import KeychainFormats

extension KeychainItem {
  /// Creates a generic password.
  package static func genericPassword(
    _ account: String = "anna", service: String = "mail", group: String = "keyhaul",
    as protection: ProtectionClass = .whenUnlocked, secret: String = "correct horse"
  ) -> KeychainItem {
    var item = KeychainItem(
      kind: .genericPassword,
      attributes: [
        .account: .string(account), .service: .string(service), .accessGroup: .string(group),
        .protection: .string(protection.rawValue),
      ])
    item.secret = SensitiveBytes(copying: Array(secret.utf8))
    return item
  }

  /// Creates an internet password.
  package static func internetPassword(_ server: String = "imap.example.org", group: String = "keyhaul") -> KeychainItem
  {
    var item = KeychainItem(
      kind: .internetPassword,
      attributes: [
        .account: .string("anna"), .server: .string(server), .protocolType: .string("imps"), .port: .integer(993),
        .authenticationType: .string("dflt"), .accessGroup: .string(group), .protection: .string("ak"),
      ])
    item.secret = SensitiveBytes(copying: Array("battery staple".utf8))
    return item
  }

  /// Returns the item with changed attributes.
  package func with(_ attributes: AttributeMap<PropertyValue>) -> KeychainItem {
    var item = self
    for (code, value) in attributes { item[code] = value }
    return item
  }

  /// Returns the item without some attributes.
  package func without(_ codes: AttributeCode...) -> KeychainItem {
    var item = self
    for code in codes { item[code] = nil }
    return item
  }
}

extension KeychainDate {
  package static func seconds(_ seconds: Double) -> KeychainDate { KeychainDate(secondsSinceReferenceDate: seconds) }
}
