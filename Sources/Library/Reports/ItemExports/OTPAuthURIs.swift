import KeyhaulKit

extension ExportFormat {
  /// The one-time passwords as `otpauth` URIs, one on each line, for authenticator apps.
  ///
  /// Source: Google Authenticator, "Key Uri Format".
  public static let oneTimeSecrets = ExportFormat(
    "otpauth", kinds: [.genericPassword, .internetPassword], noun: "one-time password secret",
    containsWholeKinds: false, containsOneTimePasswords: true,
    append: { $0.appendOneTimeSecret($1) })
}

extension ItemExportWriter {
  /// Appends the `otpauth` URI of an item that contains a one-time password.
  mutating func appendOneTimeSecret(_ item: KeychainItem) {
    guard let password = OneTimePassword(item) else { return }
    password.address.withBytes { text.append($0) }
    text.append("\n")
    counts.count += 1
    counts.secretCount += 1
  }
}
