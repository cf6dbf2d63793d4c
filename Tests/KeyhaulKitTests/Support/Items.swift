import Basics
import Foundation
import KeychainFormats

extension KeychainItem {
  static func password(
    _ account: String, _ protection: ProtectionClass = .whenUnlocked, service: String = "service",
    group: String = "app", secret: [UInt8]? = nil, at seconds: Double = 1000,
    marks attributes: AttributeMap<PropertyValue> = [:]
  ) -> KeychainItem {
    var item = KeychainItem(
      kind: .genericPassword,
      attributes: [
        .account: .string(account), .service: .string(service), .accessGroup: .string(group),
        .creationDate: .date(KeychainDate(secondsSinceReferenceDate: 500.125)),
        .modificationDate: .date(KeychainDate(secondsSinceReferenceDate: seconds)),
      ])
    item.protection = protection
    item.secret = SensitiveBytes(copying: secret ?? Array("secret of \(account)".utf8))
    item.attributes.merge(attributes) { $1 }
    return item
  }

  /// An internet password as Safari kept them before there was iCloud keychain.
  static func oldSafariPassword(_ account: String, at seconds: Double = 1000) -> KeychainItem {
    var item = password(account, group: "com.apple.cfnetwork", at: seconds)
    item.kind = .internetPassword
    item[.service] = nil
    item[.server] = .string("example.org")
    item[.protocolType] = .string("htps")
    item[.authenticationType] = .string("form")
    return item
  }

  func with(_ attributes: AttributeMap<PropertyValue>) -> KeychainItem {
    var item = self
    item.attributes.merge(attributes) { $1 }
    return item
  }

  func without(_ codes: AttributeCode...) -> KeychainItem {
    var item = self
    for code in codes { item[code] = nil }
    return item
  }

  func holding(_ secret: String) -> KeychainItem {
    var item = self
    item.secret = SensitiveBytes(copying: Array(secret.utf8))
    return item
  }

  func dated(_ seconds: Double) -> KeychainItem {
    with([.modificationDate: .date(KeychainDate(secondsSinceReferenceDate: seconds))])
  }

  var secretBytes: [UInt8]? { secret?.withBytes { Array($0) } }

  /// Everything there is to an item, comparable.
  struct Contents: Equatable {
    var attributes: AttributeMap<PropertyValue>
    var secrets: AttributeMap<[UInt8]>
  }

  var contents: Contents {
    Contents(attributes: attributes, secrets: secrets.mapValues { bytes in bytes.withBytes { Array($0) } })
  }

  /// What the item says, without what its place in one keychain adds: digest, UUID, reference, the date a conflict moves.
  var message: Contents {
    var contents = contents
    for code: AttributeCode in ["sha1", "UUID", "persistref", "mdat", "musr", "sync", "tomb", "clip"] {
      contents.attributes[code] = nil
    }
    // A group that came as data is stored as text.
    if let bytes = self["agrp"]?.dataValue {
      contents.attributes["agrp"] = .string(String(decoding: bytes, as: UTF8.self))
    }
    return contents
  }
}
