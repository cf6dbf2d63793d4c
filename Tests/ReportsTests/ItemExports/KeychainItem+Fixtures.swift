import Foundation
import KeyhaulKit

@testable import Reports

extension KeychainItem {
  /// Creates a generic password.
  static func generic(
    _ attributes: AttributeMap<PropertyValue>, secret: String? = "hunter2"
  ) -> KeychainItem {
    make(.genericPassword, attributes, secret.map { Array($0.utf8) })
  }

  /// Creates an internet password.
  static func internet(
    _ attributes: AttributeMap<PropertyValue>, secret: String? = "hunter2"
  ) -> KeychainItem {
    make(.internetPassword, attributes, secret.map { Array($0.utf8) })
  }

  /// Creates an item.
  static func make(
    _ kind: ItemKind, _ attributes: AttributeMap<PropertyValue>, _ secret: [UInt8]?
  ) -> KeychainItem {
    var item = KeychainItem(kind: kind, attributes: attributes)
    item.secret = secret.map { SensitiveBytes(copying: $0) }
    return item
  }
}

extension ItemExport {
  /// The export as text.
  var text: String { contents.withBytes { String(decoding: $0, as: UTF8.self) } }

  /// The lines (RFC 4180) without the header.
  var rows: [String] { text.components(separatedBy: "\r\n").dropFirst().dropLast() }
}

extension ItemExport {
  /// Creates an export in a format that does not state its time.
  init(_ items: [KeychainItem], as format: ExportFormat) {
    self.init(items, as: format, date: KeychainDate(secondsSinceReferenceDate: 0))
  }
}
