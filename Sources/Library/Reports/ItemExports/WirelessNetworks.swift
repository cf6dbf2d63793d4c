import KeyhaulKit

extension ItemExport {
  /// The names of the columns, in the first row.
  public static let networkColumns = ["Network", "Password"]
}

extension ExportFormat {
  /// Known Wi-Fi networks and their passwords, as a table in the format of `passwords`.
  public static let wirelessNetworks = ExportFormat(
    "wifi", kinds: [.genericPassword], noun: "network", secretNoun: "password", containsWholeKinds: false,
    begin: { $0.appendColumns(ItemExport.networkColumns) }, append: { $0.appendNetwork($1) })
}

extension ItemExportWriter {
  /// Appends the row of an item, if it is the password of a network.
  mutating func appendNetwork(_ item: KeychainItem) {
    guard item.isWirelessNetwork else { return }
    guard let secret = item.secret else { return counts.skip(item, "it has no secret") }
    guard item.hasTextSecret else { return counts.skip(item, "its secret is not text") }
    appendName(item.text(of: .account))
    text.append(",")
    secret.withBytes { appendSecret($0) }
    endLine()
    counts.count += 1
    counts.secretCount += 1
  }
}

extension KeychainItem {
  /// Whether the item is the password of a Wi-Fi network. Apple's devices use the service "AirPort" for these, and the
  /// network's name as the account.
  var isWirelessNetwork: Bool { kind == .genericPassword && text(of: .service) == "AirPort" }
}
