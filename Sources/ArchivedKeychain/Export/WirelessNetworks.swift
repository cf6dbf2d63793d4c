public import KeychainFormats

extension ItemExport {
  /// The names of the two columns, as the first row has them.
  public static let networkColumns = ["Network", "Password"]

  /// The Wi-Fi networks that a device knows, and their passwords, as a table like that of the passwords.
  public static func wirelessNetworks(_ items: [KeychainItem]) -> ItemExport {
    var builder = ItemExportBuilder()
    builder.text.append(networkColumns.joined(separator: ","))
    builder.endLine()
    for item in items where item.isWirelessNetwork {
      guard let secret = item.secret else {
        builder.leave(item, "it has no secret")
        continue
      }
      guard item.hasTextSecret else {
        builder.leave(item, "its secret is not text")
        continue
      }
      builder.appendName(item.words(.account))
      builder.text.append(",")
      secret.withBytes { builder.appendSecret($0) }
      builder.endLine()
      builder.count += 1
      builder.secretCount += 1
    }
    return builder.finish()
  }
}

extension KeychainItem {
  /// Apple's devices keep the password of a network under this service, its name as the account.
  var isWirelessNetwork: Bool { kind == .genericPassword && words(.service) == "AirPort" }
}
