import Foundation
import KeyhaulKit

@testable import Reports

extension KeychainItem {
  /// A generic password.
  static func generic(
    _ attributes: AttributeMap<PropertyValue>, secret: String? = "hunter2"
  ) -> KeychainItem {
    made(.genericPassword, attributes, secret.map { Array($0.utf8) })
  }

  static func internet(
    _ attributes: AttributeMap<PropertyValue>, secret: String? = "hunter2"
  ) -> KeychainItem {
    made(.internetPassword, attributes, secret.map { Array($0.utf8) })
  }

  static func made(
    _ kind: ItemKind, _ attributes: AttributeMap<PropertyValue>, _ secret: [UInt8]?
  ) -> KeychainItem {
    var item = KeychainItem(kind: kind, attributes: attributes)
    item.secret = secret.map { SensitiveBytes(copying: $0) }
    return item
  }
}

extension ItemExport {
  /// What it holds, in clear.
  var text: String { contents.withBytes { String(decoding: $0, as: UTF8.self) } }

  /// Lines as RFC 4180 ends them, without the header.
  var rows: [String] { text.components(separatedBy: "\r\n").dropFirst().dropLast() }
}

extension ItemExport {
  /// An export in a format that does not state its time.
  init(_ items: [KeychainItem], as format: ExportFormat) {
    self.init(items, as: format, made: KeychainDate(secondsSinceReferenceDate: 0))
  }
}
