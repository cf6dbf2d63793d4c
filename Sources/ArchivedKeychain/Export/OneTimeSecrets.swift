public import KeychainFormats

extension ItemExport {
  /// The secrets that one-time passwords are made of, as the addresses that authenticators import, one on each line.
  ///
  /// Source: Google Authenticator, "Key Uri Format".
  public static func oneTimeSecrets(_ items: [KeychainItem]) -> ItemExport {
    var builder = ItemExportBuilder()
    for item in items where item.secret?.withBytes({ OneTimeSecret.isOne($0) }) == true {
      item.secret?.withBytes { builder.text.append($0) }
      builder.text.append("\n")
      builder.count += 1
      builder.secretCount += 1
    }
    return builder.finish()
  }
}

enum OneTimeSecret {
  private static let start = Array("otpauth://".utf8)

  /// Whether a secret is such an address: UTF-8, on one line.
  static func isOne(_ bytes: UnsafeRawBufferPointer) -> Bool {
    bytes.count > start.count && bytes.starts(with: start) && !bytes.contains { $0 < 0x20 || $0 == 0x7F }
      && UTF8Text.isValid(bytes)
  }
}
