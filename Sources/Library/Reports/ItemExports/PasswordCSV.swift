import KeyhaulKit

extension ItemExport {
  /// The columns of Apple's Passwords app, which other password managers also import.
  public static let passwordColumns = ["Title", "URL", "Username", "Password", "Notes", "OTPAuth"]
}

extension ExportFormat {
  /// Generic and internet passwords as a table (RFC 4180, every field in quotes, UTF-8 without a byte order mark).
  ///
  /// Passwords, addresses of one-time passwords, and telephone numbers as user names are written unchanged, because
  /// programs import them literally. Any other cell that a spreadsheet would evaluate begins with an added apostrophe.
  public static let passwords = ExportFormat(
    "csv", hint: "passwords", kinds: [.genericPassword, .internetPassword], noun: "password",
    containsOneTimePasswords: true,
    begin: { $0.appendColumns(ItemExport.passwordColumns) }, append: { $0.appendPassword($1) })
}

extension ItemExportWriter {
  mutating func appendPassword(_ item: KeychainItem) {
    guard let secret = item.secret, !secret.isEmpty else { return counts.skip(item, "it has no secret") }
    let oneTimePassword = OneTimePassword(item)
    guard oneTimePassword != nil || item.hasTextSecret else { return counts.skip(item, "its secret is not text") }
    let title = PasswordEntry.title(of: item, oneTimePassword: oneTimePassword)
    if title.isEmpty { counts.namelessCount += 1 }
    appendName(title)
    text.append(",")
    appendName(ItemURL.text(of: item))
    text.append(",")
    let user = PasswordEntry.userName(of: item, oneTimePassword: oneTimePassword)
    if PasswordEntry.isTelephoneNumber(user) { text.appendQuoted(user) } else { appendName(user) }
    text.append(",")
    if oneTimePassword == nil { secret.withBytes { appendSecret($0) } } else { text.append("\"\"") }
    text.append(",")
    appendName(item.text(of: .comment))
    text.append(",")
    if let oneTimePassword { oneTimePassword.address.withBytes { text.appendQuoted($0) } } else { text.append("\"\"") }
    endLine()
    counts.count += 1
    counts.secretCount += 1
  }
}

/// The title and the user name of a password in another program.
enum PasswordEntry {
  /// Returns the item's label. If it is empty, returns the issuer of the one-time password, the service or server, or the
  /// account.
  static func title(of item: KeychainItem, oneTimePassword: OneTimePassword?) -> String {
    let location = item.kind == .internetPassword ? AttributeCode.server : .service
    let issuer = (try? oneTimePassword?.parameters.get())?.issuer ?? ""
    return [item.text(of: .label), issuer, item.text(of: location), item.text(of: .account)].first { !$0.isEmpty } ?? ""
  }

  /// Returns the account of the one-time password. If it is empty, returns the item's account.
  static func userName(of item: KeychainItem, oneTimePassword: OneTimePassword?) -> String {
    let account = (try? oneTimePassword?.parameters.get())?.account ?? ""
    return account.isEmpty ? item.text(of: .account) : account
  }

  /// Returns whether a text is a telephone number, such as "+49 170 1234567". A spreadsheet turns it into a number,
  /// which is harmless.
  static func isTelephoneNumber(_ text: String) -> Bool {
    let digits = text.utf8.dropFirst()
    return text.utf8.first == UInt8(ascii: "+") && !digits.isEmpty
      && digits.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x20 }
  }
}
