package import KeyhaulKit

/// The table of `item find --format csv`, for spreadsheets and other programs. Like JSON, it does not shorten names.
package enum FoundItemsCSV {
  private static let columns = [
    "kind", "service", "server", "account", "label", "access_group", "protection", "protocol", "port", "path",
    "synchronizable", "created", "changed", "readable",
  ]
  /// The columns for secrets. A secret is in the first column if it is valid UTF-8 and not a spreadsheet formula,
  /// otherwise in the second.
  private static let secretColumns = ["secret", "secret_base64"]

  /// Returns a table of items.
  ///
  /// - Parameters:
  ///   - entries: The items.
  ///   - revealsSecrets: Whether the table has columns for secrets.
  ///   - omitsProtectedSecrets: Whether to omit the secrets of items that require authentication. `false` for a dump,
  ///     which stores them in plain text.
  ///   - backup: The path of the items' backup, for the first column; `nil` to omit this column.
  ///   - hasHeader: Whether the table begins with the names of the columns.
  package static func table(
    of entries: [KeychainEntry], revealsSecrets: Bool, omitsProtectedSecrets: Bool = true, backup: String? = nil,
    hasHeader: Bool = true
  ) -> SensitiveBytes {
    var table = SensitiveBuffer()
    let backupField = backup.map { [$0] } ?? []
    if hasHeader {
      table.append(
        CSV.line((backup == nil ? [] : ["backup"]) + columns + (revealsSecrets ? secretColumns : [])))
    }
    for entry in entries {
      table.append(CSV.fields(backupField + fields(of: entry)))
      if revealsSecrets { appendSecret(of: entry, omitsProtectedSecrets: omitsProtectedSecrets, to: &table) }
      table.append("\r\n")
    }
    return table.bytes()
  }

  private static func fields(of entry: KeychainEntry) -> [String] {
    let identity = entry.identity
    let item = entry.item
    let dates = [item?.creationDate, entry.modificationDate].map { $0.map(Timestamp.text) ?? "" }
    let names = [identity.service, identity.server, identity.account, identity.label, identity.accessGroup]
    return [entry.kind.reportName] + names.map { $0 ?? "" }
      + [
        entry.protection?.rawValue ?? "", text(item?[.protocolType]), text(item?[.port]), text(item?[.path]),
        entry.isSynchronizable ? "1" : "0",
      ] + dates + [entry.item == nil ? "0" : "1"]
  }

  private static func text(_ value: PropertyValue?) -> String {
    switch value {
    case .string(let text): text
    case .integer(let number): String(number)
    case .data(let bytes): String(validating: bytes, as: UTF8.self) ?? ""
    default: ""
    }
  }

  /// Appends the secret of an item, or empty fields if the secret is unknown, absent or omitted.
  private static func appendSecret(
    of entry: KeychainEntry, omitsProtectedSecrets: Bool, to table: inout SensitiveBuffer
  ) {
    guard let item = entry.item, !(omitsProtectedSecrets && item.requiresAuthentication), let secret = item.secret
    else { return table.append(",,") }
    secret.withBytes { bytes in
      table.append(",")
      guard !UTF8Scalars.isValid(bytes) || CSV.isFormula(bytes) else {
        table.appendField(bytes)
        return table.append(",")
      }
      table.append(",")
      Base64Digits.append(bytes, to: &table)
    }
  }
}
