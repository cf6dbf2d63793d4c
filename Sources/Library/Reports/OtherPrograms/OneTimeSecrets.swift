import KeyhaulKit

extension ExportFormat {
  /// The secrets of one-time passwords, as the URLs that authenticators import, one on each line.
  ///
  /// Source: Google Authenticator, "Key Uri Format".
  public static let oneTimeSecrets = ExportFormat(
    "otpauth", kinds: [.genericPassword, .internetPassword], noun: "one-time password secret",
    containsWholeKinds: false,
    append: { $0.appendOneTimeSecret($1) })
}

extension ItemExportWriter {
  /// Of an item whose secret is none, nothing.
  mutating func appendOneTimeSecret(_ item: KeychainItem) {
    guard let secret = item.secret, secret.withBytes({ OneTimeSecret.isOne($0) }) else { return }
    secret.withBytes { text.append($0) }
    text.append("\n")
    counts.count += 1
    counts.secretCount += 1
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
