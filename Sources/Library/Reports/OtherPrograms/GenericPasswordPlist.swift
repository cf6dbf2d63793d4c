import KeyhaulKit

/// The text around the entries.
enum GenericPasswordPlist {
  static let start = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">
    <dict>
    \t<key>genp</key>
    \t<array>

    """
  static let end = "\t</array>\n</dict>\n</plist>\n"
}

extension ExportFormat {
  /// Generic passwords as a property list in XML: a dictionary with an array `genp`, each entry an item's attributes by
  /// their codes and its secret as data (`v_Data`).
  ///
  /// This is what iLEAPP takes as `--keychain`: it asks a dictionary for `genp` and reads `agrp`, `acct`, `svce` and
  /// `v_Data`. Values keep their types; dates are cut to whole seconds, and text that XML cannot represent is written as
  /// data. Source: iLEAPP, `scripts/ios_keychain.py`.
  public static let genericPasswordPlist = ExportFormat(
    "genp-plist", ending: ".genp.plist", kinds: [.genericPassword], noun: "generic password",
    begin: { $0.text.append(GenericPasswordPlist.start) }, append: { $0.appendEntry($1) },
    end: { $0.text.append(GenericPasswordPlist.end) })
}

extension ItemExportWriter {
  mutating func appendEntry(_ item: KeychainItem) {
    guard let secret = item.secret, !secret.isEmpty else { return counts.leave(item, "it has no secret") }
    text.append("\t\t<dict>\n")
    for code in item.attributes.keys.sorted() {
      guard let value = item[code].flatMap(Self.element), let key = XMLPlist.escapedText(code.rawValue) else {
        continue
      }
      text.append("\t\t\t<key>\(key)</key>\(value)\n")
    }
    text.append("\t\t\t<key>v_Data</key><data>")
    secret.withBytes { Base64Digits.append($0, to: &text) }
    text.append("</data>\n\t\t</dict>\n")
    counts.count += 1
    counts.secretCount += 1
  }

  /// `nil` for a value that is none of an attribute: an access control.
  private static func element(of value: PropertyValue) -> String? {
    switch value {
    case .string(let text):
      XMLPlist.escapedText(text).map { "<string>\($0)</string>" } ?? element(of: .data(Array(text.utf8)))
    case .data(let bytes): "<data>\(Base64Digits.text(of: bytes))</data>"
    case .integer(let number): "<integer>\(number)</integer>"
    case .unsignedInteger(let number): "<integer>\(number)</integer>"
    case .boolean(let flag): "<\(flag)/>"
    case .date(let date): "<date>\(Timestamp.text(of: date.cutToSeconds))</date>"
    case .null, .real, .uid, .array, .dictionary, .set: nil
    }
  }
}

extension KeychainDate {
  /// The format has no fractions.
  fileprivate var cutToSeconds: KeychainDate {
    KeychainDate(secondsSinceReferenceDate: secondsSinceReferenceDate.rounded(.down))
  }
}
