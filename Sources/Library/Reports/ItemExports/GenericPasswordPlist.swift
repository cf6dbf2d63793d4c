import KeyhaulKit

/// The XML before and after the entries.
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
  /// Generic passwords as a property list in XML: a dictionary with an array `genp`. Each entry has an item's attributes
  /// by their codes, and its secret as data (`v_Data`).
  ///
  /// iLEAPP accepts it as `--keychain`, and reads `agrp`, `acct`, `svce` and `v_Data` of each entry in `genp`. Values keep
  /// their types; dates are truncated to whole seconds, and text that XML cannot represent is written as data. Source:
  /// iLEAPP, `scripts/ios_keychain.py`.
  public static let genericPasswordPlist = ExportFormat(
    "genp-plist", ending: ".genp.plist", kinds: [.genericPassword], noun: "generic password",
    begin: { $0.text.append(GenericPasswordPlist.start) }, append: { $0.appendEntry($1) },
    end: { $0.text.append(GenericPasswordPlist.end) })
}

extension ItemExportWriter {
  /// Appends the dictionary of an item, or records that the item has no secret.
  mutating func appendEntry(_ item: KeychainItem) {
    guard let secret = item.secret, !secret.isEmpty else { return counts.skip(item, "it has no secret") }
    text.append("\t\t<dict>\n")
    for code in item.attributes.keys.sorted() {
      guard let element = item[code].flatMap(Self.element), let key = XMLPlist.escapedText(code.rawValue) else {
        continue
      }
      text.append("\t\t\t<key>\(key)</key>\(element)\n")
    }
    text.append("\t\t\t<key>v_Data</key><data>")
    secret.withBytes { Base64Digits.append($0, to: &text) }
    text.append("</data>\n\t\t</dict>\n")
    counts.count += 1
    counts.secretCount += 1
  }

  /// Returns a value as an XML element; `nil` if the value is an access control, or of a type that no other attribute
  /// has.
  private static func element(of value: PropertyValue) -> String? {
    switch value {
    case .string(let text):
      XMLPlist.escapedText(text).map { "<string>\($0)</string>" } ?? element(of: .data(Array(text.utf8)))
    case .data(let bytes): "<data>\(Base64Digits.text(of: bytes))</data>"
    case .integer(let number): "<integer>\(number)</integer>"
    case .unsignedInteger(let number): "<integer>\(number)</integer>"
    case .boolean(let flag): "<\(flag)/>"
    case .date(let date): "<date>\(Timestamp.text(of: date.truncatedToSeconds))</date>"
    case .null, .real, .uid, .array, .dictionary, .set: nil
    }
  }
}

extension KeychainDate {
  /// The date without its fraction of a second, which XML property lists cannot represent.
  fileprivate var truncatedToSeconds: KeychainDate {
    KeychainDate(secondsSinceReferenceDate: secondsSinceReferenceDate.rounded(.down))
  }
}
