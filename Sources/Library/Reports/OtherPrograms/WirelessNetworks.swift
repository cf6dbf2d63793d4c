import KeyhaulKit

extension ItemExport {
  /// The names of the two columns, as the first row has them.
  public static let networkColumns = ["Network", "Password"]
}

extension ExportFormat {
  /// The Wi-Fi networks that a device knows, and their passwords, as a table like that of the passwords.
  public static let wirelessNetworks = ExportFormat(
    "wifi", kinds: [.genericPassword], noun: "network", secretNoun: "password", containsWholeKinds: false,
    begin: { $0.appendColumns(ItemExport.networkColumns) }, append: { $0.appendNetwork($1) })
}

extension ItemExportWriter {
  /// Of a password that is none of a network, nothing.
  mutating func appendNetwork(_ item: KeychainItem) {
    guard item.isWirelessNetwork else { return }
    guard let secret = item.secret else { return counts.leave(item, "it has no secret") }
    guard item.hasTextSecret else { return counts.leave(item, "its secret is not text") }
    appendName(item.words(.account))
    text.append(",")
    secret.withBytes { appendSecret($0) }
    endLine()
    counts.count += 1
    counts.secretCount += 1
  }
}

extension KeychainItem {
  /// Apple's devices keep the password of a network under this service, its name as the account.
  var isWirelessNetwork: Bool { kind == .genericPassword && words(.service) == "AirPort" }
}
