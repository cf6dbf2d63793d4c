import KeyhaulKit

extension ExportFormat {
  /// Generic and internet passwords as JSON that password managers exchange: a login for each, a one-time password for a
  /// secret of one, a Wi-Fi network for one. It states when it was made, in whole seconds.
  ///
  /// An item is identified by its UUID if it has one of its own, otherwise by its place. One-time passwords that count
  /// their uses cannot be expressed. Source: FIDO Alliance, "Credential Exchange Format" 1.0, Proposed Standard of
  /// 2025-08-14.
  public static let credentialExchange = ExportFormat(
    "cxf", kinds: [.genericPassword, .internetPassword], noun: "password",
    begin: { $0.exchange = CredentialExchange(made: $0.made) }, append: { $0.appendCredential($1) },
    end: { $0.endCredentials() })
}

extension ItemExportWriter {
  mutating func appendCredential(_ item: KeychainItem) {
    guard var exchange = exchange.take() else { return }
    exchange.append(item, &counts) { text.append($0) }
    self.exchange = consume exchange
  }

  mutating func endCredentials() {
    guard let exchange = exchange.take() else { return }
    exchange.end { text.append($0) }
  }
}

/// The document that password managers exchange, made while its items go by.
struct CredentialExchange: ~Copyable {
  private var stream: JSONStream
  /// What the UUIDs come to that an entry is known by already. An item whose UUID comes to the same is known by its place.
  private var identifiers: Set<UInt64> = []
  /// The place of the next item, whatever its kind.
  private var place = 0

  init(made: KeychainDate) {
    let account: JSONValue = [
      "id": .string(Self.identifier("keychain")), "username": "", "email": "", "collections": [], "items": [],
    ]
    stream = JSONStream([
      "version": ["major": 1, "minor": 0], "exporterRpId": "keyhaul.invalid", "exporterDisplayName": "Keyhaul",
      "timestamp": .integer(Self.seconds(made) ?? 0), "accounts": [account],
    ])
  }

  mutating func append<Failure: Error>(
    _ item: KeychainItem, _ counts: inout ItemExportCounts,
    to portion: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    defer { place += 1 }
    guard let credential = Self.credential(of: item, &counts) else { return }
    try stream.append(entry(for: item, credential, &counts), to: portion)
  }

  consuming func end<Failure: Error>(
    to portion: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    try stream.end(to: portion)
  }

  /// Bytes as the format names things: Base64 for addresses, without padding.
  private static func identifier(_ text: String) -> String {
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

  /// The same number for the same text in every run. Source: FNV-1a with 64 bits.
  private static func number(of text: String) -> UInt64 {
    text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
  }

  /// Seconds since 1970; `nil` for a moment before, which the format has no number for.
  private static func seconds(_ date: KeychainDate) -> Int64? {
    Int64(exactly: date.secondsSince1970.rounded(.down)).flatMap { $0 < 0 ? nil : $0 }
  }

  /// A value that a person may change.
  private static func field(_ type: String, _ value: JSONValue) -> JSONValue {
    ["fieldType": .string(type), "value": value]
  }

  /// A member for a text; none where there is no text.
  private static func member(_ name: String, _ words: String) -> [(String, JSONValue)] {
    words.isEmpty ? [] : [(name, field("string", .string(words)))]
  }

  /// An item's secret as a credential; `nil` if the format has none for it, which is noted.
  private static func credential(of item: KeychainItem, _ counts: inout ItemExportCounts) -> JSONValue? {
    func leave(_ reason: String) -> JSONValue? {
      counts.leave(item, reason)
      return nil
    }
    guard let secret = item.secret, !secret.isEmpty else { return leave("it has no secret") }
    guard item.hasTextSecret else { return leave("its secret is not text") }
    guard secret.withBytes({ OneTimeSecret.isOne($0) }) else { return login(item, secret) }
    guard let timed = secret.withBytes({ TimedSecret($0) }) else {
      return leave("its one-time passwords are not time-based, or use parameters that the format cannot express")
    }
    return oneTime(timed, item, secret)
  }

  private static func login(_ item: KeychainItem, _ secret: SensitiveBytes) -> JSONValue {
    let (type, name, password) =
      item.isWirelessNetwork ? ("wifi", "ssid", "passphrase") : ("basic-auth", "username", "password")
    return .object(
      [("type", .string(type))] + Self.member(name, item.words(.account))
        + [(password, Self.field("concealed-string", .sensitive(secret, .text)))])
  }

  private static func oneTime(_ timed: TimedSecret, _ item: KeychainItem, _ secret: SensitiveBytes) -> JSONValue {
    let key = secret.withBytes { SensitiveBytes(copying: UnsafeRawBufferPointer(rebasing: $0[timed.secret])) }
    let credential: JSONValue = [
      "type": "totp", "secret": .sensitive(key, .text), "period": .integer(Int64(timed.period)),
      "digits": .integer(Int64(timed.digits)), "algorithm": .string(timed.algorithm),
    ]
    let account = item.words(.account)
    return credential.adding(account.isEmpty ? [] : [("username", .string(account))])
  }

  private mutating func entry(
    for item: KeychainItem, _ credential: JSONValue, _ counts: inout ItemExportCounts
  ) -> JSONValue {
    counts.count += 1
    counts.secretCount += 1
    let title = PasswordEntry.title(of: item)
    if title.isEmpty { counts.namelessCount += 1 }
    let uuid = item.words(.uuid)
    // None may look like a place.
    let isOwn =
      !uuid.isEmpty && uuid.utf8.count <= 36 && !uuid.hasPrefix("item ")
      && identifiers.insert(Self.number(of: uuid)).inserted
    var members: [(String, JSONValue)] = [
      ("id", .string(Self.identifier(isOwn ? uuid : "item \(place)"))), ("title", .string(title)),
    ]
    for (name, code) in [("creationAt", AttributeCode.creationDate), ("modifiedAt", .modificationDate)] {
      guard case .date(let date)? = item[code], let seconds = Self.seconds(date) else { continue }
      members.append((name, .integer(seconds)))
    }
    let address = InternetAddress.text(of: item)
    if !address.isEmpty { members.append(("scope", ["urls": [.string(address)], "androidApps": []])) }
    let comment = Self.member("content", item.words(.comment))
    let note: [JSONValue] = comment.isEmpty ? [] : [.object([("type", "note")] + comment)]
    members.append(("credentials", .array([credential] + note)))
    return .object(members)
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

  /// - Returns: `nil` for passwords that are counted up, for a secret that is not Base32, for a value that the format has
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
