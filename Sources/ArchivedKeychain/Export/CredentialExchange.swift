public import KeychainFormats

extension ItemExport {
  /// Generic and internet passwords as JSON that password managers exchange: a login for each, a one-time password for a
  /// secret of one, a Wi-Fi network for one.
  ///
  /// An item is known by its UUID where it has one of its own, else by its place. What is counted up at each use has no
  /// form. Source: FIDO Alliance, "Credential Exchange Format" 1.0, Proposed Standard of 2025-08-14.
  ///
  /// - Parameters:
  ///   - items: Of any kind; others are passed over.
  ///   - made: The moment of the export, in whole seconds.
  public static func credentialExchange(_ items: [KeychainItem], made: KeychainDate) -> ItemExport {
    var builder = ItemExportBuilder()
    builder.text.append(
      #"{"version":{"major":1,"minor":0},"exporterRpId":"keyhaul.invalid","exporterDisplayName":"Keyhaul","#)
    builder.text.append(#""timestamp":\#(CredentialExchange.seconds(made) ?? 0),"#)
    builder.text.append(#""accounts":[{"id":"\#(CredentialExchange.identifier("keychain"))","username":"","email":"","#)
    builder.text.append(#""collections":[],"items":["#)
    var identifiers: Set<String> = []
    for (index, item) in items.enumerated() where item.kind == .genericPassword || item.kind == .internetPassword {
      builder.appendCredential(item, at: index, &identifiers)
    }
    builder.text.append("]}]}\n")
    return builder.finish()
  }
}

enum CredentialExchange {
  /// Bytes as the format names things: Base64 for addresses, without padding.
  static func identifier(_ text: String) -> String {
    String(
      Base64Digits.text(of: Array(text.utf8)).compactMap { digit in
        switch digit {
        case "+": "-"
        case "/": "_"
        case "=": nil
        default: digit
        }
      })
  }

  /// Seconds since 1970; `nil` for a moment before, which the format has no number for.
  static func seconds(_ date: KeychainDate) -> UInt64? {
    UInt64(exactly: (date.secondsSinceReferenceDate + 978_307_200).rounded(.down))
  }
}

extension ItemExportBuilder {
  fileprivate mutating func appendCredential(_ item: KeychainItem, at index: Int, _ identifiers: inout Set<String>) {
    guard let secret = item.secret, !secret.isEmpty else { return leave(item, "it has no secret") }
    guard item.hasTextSecret else { return leave(item, "its secret is not text") }
    let oneTime: TimedSecret?
    if secret.withBytes({ OneTimeSecret.isOne($0) }) {
      guard let timed = secret.withBytes({ TimedSecret($0) }) else {
        return leave(item, "its one-time passwords are not made of the time, or not as the format can say")
      }
      oneTime = timed
    } else {
      oneTime = nil
    }
    let title = PasswordEntry.title(of: item)
    if title.isEmpty { namelessCount += 1 }
    if count > 0 { text.append(",") }
    let uuid = item.words(.uuid)
    let isOwn = !uuid.isEmpty && uuid.utf8.count <= 36 && identifiers.insert(uuid).inserted
    let identifier = CredentialExchange.identifier(isOwn ? uuid : "item \(index)")
    text.append(#"{"id":"\#(identifier)","title":"#)
    appendJSON(title)
    for (name, code) in [("creationAt", AttributeCode.creationDate), ("modifiedAt", .modificationDate)] {
      guard case .date(let date)? = item[code], let seconds = CredentialExchange.seconds(date) else { continue }
      text.append(#","\#(name)":\#(seconds)"#)
    }
    let address = InternetAddress.text(of: item)
    if !address.isEmpty {
      text.append(#","scope":{"urls":["#)
      appendJSON(address)
      text.append(#"],"androidApps":[]}"#)
    }
    text.append(#","credentials":["#)
    secret.withBytes { bytes in
      if let oneTime {
        append(oneTime, of: item, bytes)
      } else {
        appendLogin(item, bytes)
      }
    }
    let comment = item.words(.comment)
    if !comment.isEmpty {
      text.append(#",{"type":"note","content":"#)
      appendField("string") { $0.appendJSON(comment) }
      text.append("}")
    }
    text.append("]}")
    count += 1
    secretCount += 1
  }

  private mutating func appendLogin(_ item: KeychainItem, _ secret: UnsafeRawBufferPointer) {
    let account = item.words(.account)
    let (type, name, password) =
      item.isWirelessNetwork ? ("wifi", "ssid", "passphrase") : ("basic-auth", "username", "password")
    text.append(#"{"type":"\#(type)","#)
    if !account.isEmpty {
      text.append(#""\#(name)":"#)
      appendField("string") { $0.appendJSON(account) }
      text.append(",")
    }
    text.append(#""\#(password)":"#)
    appendField("concealed-string") { $0.appendJSON(secret) }
    text.append("}")
  }

  private mutating func append(_ timed: TimedSecret, of item: KeychainItem, _ secret: UnsafeRawBufferPointer) {
    text.append(#"{"type":"totp","secret":"#)
    appendJSON(UnsafeRawBufferPointer(rebasing: secret[timed.secret]))
    text.append(#","period":\#(timed.period),"digits":\#(timed.digits),"algorithm":"\#(timed.algorithm)""#)
    let account = item.words(.account)
    if !account.isEmpty {
      text.append(#","username":"#)
      appendJSON(account)
    }
    text.append("}")
  }

  private mutating func appendField(_ type: String, _ value: (inout ItemExportBuilder) -> Void) {
    text.append(#"{"fieldType":"\#(type)","value":"#)
    value(&self)
    text.append("}")
  }

  private mutating func appendJSON(_ words: String) {
    var words = words
    words.withUTF8 { appendJSON(UnsafeRawBufferPointer($0)) }
  }

  /// UTF-8 as a string of JSON (RFC 8259, 7), without a copy that nobody wipes.
  private mutating func appendJSON(_ bytes: UnsafeRawBufferPointer) {
    text.append(#"""#)
    for byte in bytes {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        text.append(UInt8(ascii: "\\"))
        text.append(byte)
      case ..<0x20:
        text.append(byte < 0x10 ? #"\u000"# : #"\u00"#)
        text.append(String(byte, radix: 16))
      default: text.append(byte)
      }
    }
    text.append(#"""#)
  }
}

/// What an address of a one-time secret says, apart from the secret itself, of which it knows the place alone.
struct TimedSecret: Equatable {
  private(set) var secret = 0..<0
  private(set) var period: UInt8 = 30
  private(set) var digits: UInt8 = 6
  private(set) var algorithm = "sha1"

  private static let start = Array("otpauth://totp/".utf8)
  private static let algorithms = ["SHA1": "sha1", "SHA256": "sha256", "SHA512": "sha512"]

  /// - Returns: `nil` for passwords that are counted up, for a secret that is no Base32, for a value that the format has
  ///   no place for, and where a value is there twice.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.starts(with: Self.start), let query = bytes.firstIndex(of: UInt8(ascii: "?")) else { return nil }
    var seen: Set<String> = []
    var place = query + 1
    while place <= bytes.endIndex {
      let end = bytes[place...].firstIndex(of: UInt8(ascii: "&")) ?? bytes.endIndex
      if let equals = bytes[place..<end].firstIndex(of: UInt8(ascii: "=")) {
        let name = String(decoding: bytes[place..<equals], as: UTF8.self).lowercased()
        guard seen.insert(name).inserted, take(name, equals + 1..<end, bytes) else { return nil }
      }
      place = end + 1
    }
    guard !secret.isEmpty else { return nil }
  }

  private mutating func take(_ name: String, _ range: Range<Int>, _ bytes: UnsafeRawBufferPointer) -> Bool {
    if name == "secret" {
      let digits = bytes[range].prefix { $0 != UInt8(ascii: "=") }
      guard !digits.isEmpty, digits.allSatisfy(Self.isBase32) else { return false }
      guard bytes[digits.endIndex..<range.upperBound].allSatisfy({ $0 == UInt8(ascii: "=") }) else { return false }
      secret = digits.startIndex..<digits.endIndex
      return true
    }
    let value = String(decoding: bytes[range], as: UTF8.self)
    switch name {
    case "period":
      guard let number = UInt8(value), number > 0 else { return false }
      period = number
    case "digits":
      guard let number = UInt8(value), number > 0 else { return false }
      digits = number
    case "algorithm":
      guard let known = Self.algorithms[value.uppercased()] else { return false }
      algorithm = known
    default: break
    }
    return true
  }

  private static func isBase32(_ byte: UInt8) -> Bool {
    (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || (0x32...0x37).contains(byte)
  }
}
