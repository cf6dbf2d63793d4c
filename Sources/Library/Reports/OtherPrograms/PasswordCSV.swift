import KeyhaulKit

extension ItemExport {
  /// The header that Apple's Passwords writes and that it and other password managers import.
  public static let passwordColumns = ["Title", "URL", "Username", "Password", "Notes", "OTPAuth"]
}

extension ExportFormat {
  /// Generic and internet passwords as a table (RFC 4180, every field in quotes, UTF-8 without a byte order mark).
  ///
  /// A password, a one-time secret and a telephone number as user name are written unchanged, because programs import them
  /// literally. Every other cell that a spreadsheet would compute gets an apostrophe before it.
  public static let passwords = ExportFormat(
    "csv", hint: "passwords", kinds: [.genericPassword, .internetPassword], noun: "password",
    begin: { $0.appendColumns(ItemExport.passwordColumns) }, append: { $0.appendPassword($1) })
}

extension ItemExportWriter {
  mutating func appendPassword(_ item: KeychainItem) {
    guard let secret = item.secret, !secret.isEmpty else { return counts.leave(item, "it has no secret") }
    guard item.hasTextSecret else { return counts.leave(item, "its secret is not text") }
    let title = PasswordEntry.title(of: item)
    if title.isEmpty { counts.namelessCount += 1 }
    appendName(title)
    text.append(",")
    appendName(InternetAddress.text(of: item))
    text.append(",")
    let user = item.words(.account)
    if PasswordEntry.isTelephoneNumber(user) { text.appendQuoted(user) } else { appendName(user) }
    text.append(",")
    let isOneTime = secret.withBytes { OneTimeSecret.isOne($0) }
    secret.withBytes { bytes in
      if isOneTime { text.append("\"\"") } else { appendSecret(bytes) }
      text.append(",")
      appendName(item.words(.comment))
      text.append(",")
      if isOneTime { text.appendQuoted(bytes) } else { text.append("\"\"") }
    }
    endLine()
    counts.count += 1
    counts.secretCount += 1
  }
}

/// What a row of a table of passwords says of an item.
enum PasswordEntry {
  /// What the item is labeled, else what it is for, else whose it is.
  static func title(of item: KeychainItem) -> String {
    let place = item.kind == .internetPassword ? AttributeCode.server : .service
    return [.label, place, .account].lazy.map(item.words).first { !$0.isEmpty } ?? ""
  }

  /// "+49 170 1234567": a spreadsheet makes a number of it at worst.
  static func isTelephoneNumber(_ text: String) -> Bool {
    let rest = text.utf8.dropFirst()
    return text.utf8.first == UInt8(ascii: "+") && !rest.isEmpty
      && rest.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x20 }
  }
}
