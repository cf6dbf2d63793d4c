import KeyhaulKit

extension ExportFormat {
  /// Generic and internet passwords in the JSON format that password managers exchange: logins, one-time passwords and
  /// Wi-Fi networks. It contains the time of the export, in whole seconds.
  ///
  /// An entry is identified by the item's UUID if that is unique, otherwise by the item's position. The format cannot
  /// represent one-time passwords that are based on a counter. Source: FIDO Alliance, "Credential Exchange Format" 1.0,
  /// Proposed Standard of 2025-08-14.
  public static let credentialExchange = ExportFormat(
    "cxf", kinds: [.genericPassword, .internetPassword], noun: "password", containsOneTimePasswords: true,
    begin: { $0.exchange = CredentialExchange(date: $0.date) }, append: { $0.appendCredential($1) },
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

/// The state of a credential exchange document that is written item by item.
struct CredentialExchange: ~Copyable {
  private var stream: JSONStream
  /// The hashes of the UUIDs that identify entries. An item whose hash is already in the set is identified
  /// by its position.
  private var uuidHashes: Set<UInt64> = []
  /// The position of the next item, among items of all kinds.
  private var position = 0

  init(date: KeychainDate) {
    let account: JSONValue = [
      "id": .string(Self.base64URL("keychain")), "username": "", "email": "", "collections": [], "items": [],
    ]
    stream = JSONStream([
      "version": ["major": 1, "minor": 0], "exporterRpId": "keyhaul.invalid", "exporterDisplayName": "Keyhaul",
      "timestamp": .integer(Self.seconds(date) ?? 0), "accounts": [account],
    ])
  }

  mutating func append<Failure: Error>(
    _ item: KeychainItem, _ counts: inout ItemExportCounts,
    to output: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    defer { position += 1 }
    guard let credential = Self.credential(of: item, &counts) else { return }
    try stream.append(entry(for: item, credential, &counts), to: output)
  }

  consuming func end<Failure: Error>(
    to output: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    try stream.end(to: output)
  }

  /// Returns an identifier as the format requires: base64url without padding (RFC 4648, 5).
  private static func base64URL(_ text: String) -> String {
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

  /// Returns a hash of a text that is the same in every run. Source: FNV-1a with 64 bits.
  private static func hash(of text: String) -> UInt64 {
    text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
  }

  /// Returns the seconds since 1970; `nil` if the date is earlier, because the format cannot represent that.
  private static func seconds(_ date: KeychainDate) -> Int64? {
    Int64(exactly: date.secondsSince1970.rounded(.down)).flatMap { $0 < 0 ? nil : $0 }
  }

  /// Returns an editable field with its type.
  private static func field(_ type: String, _ value: JSONValue) -> JSONValue {
    ["fieldType": .string(type), "value": value]
  }

  /// Returns a member with a text field; empty if the text is empty.
  private static func member(_ name: String, text: String) -> [(String, JSONValue)] {
    text.isEmpty ? [] : [(name, field("string", .string(text)))]
  }

  /// Returns an item's secret as a credential; `nil` if the format cannot represent it. The counts then contain the
  /// reason.
  private static func credential(of item: KeychainItem, _ counts: inout ItemExportCounts) -> JSONValue? {
    func skip(_ reason: String) -> JSONValue? {
      counts.skip(item, reason)
      return nil
    }
    guard let secret = item.secret, !secret.isEmpty else { return skip("it has no secret") }
    guard let oneTimePassword = OneTimePassword(item) else {
      return item.hasTextSecret ? login(item, secret) : skip("its secret is not text")
    }
    switch oneTimePassword.parameters {
    case .failure(let problem): return skip(problem.rawValue)
    case .success(let parameters):
      guard case .time(let seconds) = parameters.factor else { return skip("its codes are based on a counter") }
      guard let period = UInt8(exactly: seconds) else { return skip("its period is longer than 255 seconds") }
      guard let algorithm = Self.algorithm(parameters.algorithm) else { return skip("its hash algorithm is MD5") }
      return credential(parameters, period: period, algorithm: algorithm, of: item)
    }
  }

  private static func login(_ item: KeychainItem, _ secret: SensitiveBytes) -> JSONValue {
    let (type, name, password) =
      item.isWirelessNetwork ? ("wifi", "ssid", "passphrase") : ("basic-auth", "username", "password")
    return .object(
      [("type", .string(type))] + Self.member(name, text: item.text(of: .account))
        + [(password, Self.field("concealed-string", .sensitive(secret, .text)))])
  }

  private static func credential(
    _ parameters: OneTimePassword.Parameters, period: UInt8, algorithm: String, of item: KeychainItem
  ) -> JSONValue {
    let credential: JSONValue = [
      "type": "totp", "secret": .sensitive(parameters.secret, .text), "period": .integer(Int64(period)),
      "digits": .integer(Int64(parameters.digitCount)), "algorithm": .string(algorithm),
    ]
    let account = parameters.account.isEmpty ? item.text(of: .account) : parameters.account
    let names = [(name: "username", value: account), (name: "issuer", value: parameters.issuer)]
    return credential.adding(names.filter { !$0.value.isEmpty }.map { ($0.name, .string($0.value)) })
  }

  /// Returns the name of a hash algorithm; `nil` if the format does not support it.
  private static func algorithm(_ algorithm: OneTimePassword.Algorithm) -> String? {
    switch algorithm {
    case .sha1: "sha1"
    case .sha256: "sha256"
    case .sha512: "sha512"
    case .md5: nil
    }
  }

  /// Returns the entry of an item, and counts it.
  private mutating func entry(
    for item: KeychainItem, _ credential: JSONValue, _ counts: inout ItemExportCounts
  ) -> JSONValue {
    counts.count += 1
    counts.secretCount += 1
    let title = PasswordEntry.title(of: item, oneTimePassword: OneTimePassword(item))
    if title.isEmpty { counts.namelessCount += 1 }
    var members: [(String, JSONValue)] = [("id", .string(identifier(of: item))), ("title", .string(title))]
    for (name, code) in [("creationAt", AttributeCode.creationDate), ("modifiedAt", .modificationDate)] {
      guard case .date(let date)? = item[code], let seconds = Self.seconds(date) else { continue }
      members.append((name, .integer(seconds)))
    }
    let url = ItemURL.text(of: item)
    if !url.isEmpty { members.append(("scope", ["urls": [.string(url)], "androidApps": []])) }
    let comment = Self.member("content", text: item.text(of: .comment))
    let note: [JSONValue] = comment.isEmpty ? [] : [.object([("type", "note")] + comment)]
    members.append(("credentials", .array([credential] + note)))
    return .object(members)
  }

  /// Returns the identifier of an entry: the item's UUID if it is unique, otherwise the item's position.
  private mutating func identifier(of item: KeychainItem) -> String {
    let uuid = item.text(of: .uuid)
    // The text may be from another writer. It must not be longer than a UUID, or look like a position.
    let isUsable =
      !uuid.isEmpty && uuid.utf8.count <= 36 && !uuid.hasPrefix("item ")
      && uuidHashes.insert(Self.hash(of: uuid)).inserted
    return Self.base64URL(isUsable ? uuid : "item \(position)")
  }
}
