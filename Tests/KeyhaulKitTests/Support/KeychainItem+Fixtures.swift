import Basics
import Foundation
import KeychainFormats
import TestSupport

extension KeychainItem {
  static func password(
    _ account: String, _ protection: ProtectionClass = .whenUnlocked, service: String = "service",
    group: String = "app", secret: [UInt8]? = nil, at seconds: Double = 1000,
    attributes: AttributeMap<PropertyValue> = [:]
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

  /// Returns an internet password as Safari stored them before iCloud Keychain.
  static func oldSafariPassword(_ account: String, at seconds: Double = 1000) -> KeychainItem {
    var item = password(account, group: "com.apple.cfnetwork", at: seconds)
    item.kind = .internetPassword
    item[.service] = nil
    item[.server] = .string("example.org")
    item[.protocolType] = .string("htps")
    item[.authenticationType] = .string("form")
    return item
  }

  func with(secret: String) -> KeychainItem {
    var item = self
    item.secret = SensitiveBytes(copying: Array(secret.utf8))
    return item
  }

  func dated(_ seconds: Double) -> KeychainItem {
    with([.modificationDate: .date(KeychainDate(secondsSinceReferenceDate: seconds))])
  }

  var secretBytes: [UInt8]? { secret?.withBytes { Array($0) } }

  /// All attributes and secrets of an item, for comparisons.
  struct Contents: Equatable {
    var attributes: AttributeMap<PropertyValue>
    var secrets: AttributeMap<[UInt8]>
  }

  var contents: Contents {
    Contents(attributes: attributes, secrets: secrets.mapValues { bytes in bytes.withBytes { Array($0) } })
  }

  /// The contents without attributes that depend on the keychain: digest, UUID, reference, and the date, which a conflict
  /// changes.
  var portableContents: Contents {
    var contents = contents
    for code: AttributeCode in ["sha1", "UUID", "persistref", "mdat", "musr", "sync", "tomb", "clip"] {
      contents.attributes[code] = nil
    }
    // A restore stores a group that is data as text.
    if let bytes = self["agrp"]?.dataValue {
      contents.attributes["agrp"] = .string(String(decoding: bytes, as: UTF8.self))
    }
    return contents
  }
}
