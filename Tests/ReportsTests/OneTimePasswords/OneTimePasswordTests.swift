import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import Reports

@Suite("One-time passwords of authenticator apps")
struct OneTimePasswordTests {
  private func addresses(_ items: [KeychainItem]) -> [String] {
    ItemExport(items, as: .oneTimeSecrets).text.split(separator: "\n").map(String.init)
  }

  private func exchangeItems(_ items: [KeychainItem]) throws -> [[String: Any]] {
    let export = ItemExport(items, as: .credentialExchange)
    let root = try #require(try JSONSerialization.jsonObject(with: Data(export.text.utf8)) as? [String: Any])
    let account = try #require((root["accounts"] as? [[String: Any]])?.first)
    return try #require(account["items"] as? [[String: Any]])
  }

  private func credentials(_ items: [KeychainItem]) throws -> [[String: Any]] {
    try exchangeItems(items).compactMap { ($0["credentials"] as? [[String: Any]])?.first }
  }

  @Test(
    "A secret is exported without spaces, hyphens and padding, and in upper case",
    arguments: [
      ("JBSWY3DPEHPK3PXP", "JBSWY3DPEHPK3PXP"), ("JBSW Y3DP EHPK 3PXP", "JBSWY3DPEHPK3PXP"),
      ("JBSW%20Y3DP%20EHPK%203PXP", "JBSWY3DPEHPK3PXP"), ("jbsw-y3dp-ehpk-3pxp", "JBSWY3DPEHPK3PXP"),
      ("J3WWIV3PTGJPQV5QAICM====", "J3WWIV3PTGJPQV5QAICM"),
      ("J3WWIV3PTGJPQV5QAICM%3D%3D%3d%3D", "J3WWIV3PTGJPQV5QAICM"),
    ])
  func secrets(_ typed: String, _ expected: String) throws {
    let item = KeychainItem.generic([:], secret: "otpauth://totp/Example:anna?secret=\(typed)&issuer=Example")
    #expect(addresses([item]) == ["otpauth://totp/Example:anna?secret=\(expected)&issuer=Example"])
    #expect(try credentials([item]).map { $0["secret"] as? String } == [expected])
    #expect(ItemExport([item], as: .passwords).text.contains("\"otpauth://totp/Example:anna?secret=\(expected)&issuer"))
  }

  private func parameters(
    _ query: String
  ) throws -> Result<OneTimePassword.Parameters, OneTimePassword.Problem> {
    let item = KeychainItem.generic([:], secret: "otpauth://totp/Example:anna?secret=JBSWY3DPEHPK3PXP&\(query)")
    return try #require(OneTimePassword(item)).parameters
  }

  /// Source: RFC 4226 §5.3, which truncates a value to 31 bits, so that it has at most ten digits.
  @Test(
    "Numbers of digits and periods outside of their ranges are reported",
    arguments: [
      ("digits=0", .digitCount), ("digits=11", .digitCount), ("digits=256", .digitCount), ("digits=six", .digitCount),
      ("period=0", .period), ("period=4294967296", .period),
    ] as [(String, OneTimePassword.Problem)])
  func outOfRange(query: String, problem: OneTimePassword.Problem) throws {
    #expect(throws: problem) { try parameters(query).get() }
  }

  @Test("Numbers of digits at both ends of their range are kept", arguments: [1, 10] as [UInt8])
  func digitCounts(_ count: UInt8) throws {
    #expect(try parameters("digits=\(count)").get().digitCount == count)
  }

  @Test("Periods at both ends of their range are kept", arguments: [1, .max] as [UInt32])
  func periods(_ seconds: UInt32) throws {
    #expect(try parameters("period=\(seconds)").get().factor == .time(period: seconds))
  }

  @Test("Two codes of an app are distinguished by the issuers in their addresses, and have the accounts in them")
  func names() throws {
    let items = [("Bank", "6F1C0A4E"), ("Mail", "93B7D210")].map { issuer, account in
      KeychainItem.generic(
        [.service: .string("org.example.auth"), .account: .string(account)],
        secret: "otpauth://totp/\(issuer):anna@example.org?secret=JBSWY3DPEHPK3PXP&issuer=\(issuer)")
    }
    #expect(try exchangeItems(items).map { $0["title"] as? String } == ["Bank", "Mail"])
    let credentials = try credentials(items)
    #expect(credentials.map { $0["issuer"] as? String } == ["Bank", "Mail"])
    #expect(credentials.map { $0["username"] as? String } == ["anna@example.org", "anna@example.org"])
    let rows = ItemExport(items, as: .passwords).text.split(separator: "\r\n").dropFirst()
    // In both rows, the columns before the one-time password have 35 characters.
    let expected = [#""Bank","","anna@example.org","","","#, #""Mail","","anna@example.org","","","#]
    #expect(rows.map { String($0.prefix(35)) } == expected)
  }

  @Test("An address in the generic attribute and the raw bytes of its secret are exported as one address")
  func separateSecret() throws {
    let address = "otpauth://totp/Example:anna?digits=6&issuer=Example&algorithm=SHA1&period=30"
    let item = KeychainItem.make(
      .genericPassword, [.generic: .data(Array(address.utf8))],
      [0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x21, 0xDE, 0xAD, 0xBE, 0xEF])
    #expect(addresses([item]) == [address + "&secret=JBSWY3DPEHPK3PXP"])
    #expect(try credentials([item]).map { $0["secret"] as? String } == ["JBSWY3DPEHPK3PXP"])
    #expect(ItemExport([item], as: .passwords).text.contains(address + "&secret=JBSWY3DPEHPK3PXP"))
    // An address with its own secret does not belong to the secret of the item.
    let itemWithTwoSecrets = KeychainItem.make(
      .genericPassword, [.generic: .data(Array((address + "&secret=AA").utf8))], [0x01])
    #expect(addresses([itemWithTwoSecrets]).isEmpty)
  }

  /// An account that Tofu archived. Created with Python's plistlib, with the fields in Tofu's source.
  private func tofuArchive() throws -> [UInt8] {
    let digits = """
      YnBsaXN0MDDUAQIDBAUGJCdZJGFyY2hpdmVyWCRvYmplY3RzVCR0b3BYJHZlcnNpb25fEA9OU0tleWVkQXJjaGl2ZXKmBwgJCgse
      VSRudWxsSkhlbGxvId6tvu9fEBBhbm5hQGV4YW1wbGUub3JnaQBCAOQAbgBrACAAJgAgAEMAb9kMDQ4PEBESExQVFhcYGRobHB1W
      JGNsYXNzWWFsZ29yaXRobVdjb3VudGVyVmRpZ2l0c1Zpc3N1ZXJUbmFtZVZwZXJpb2RWc2VjcmV0WXRpbWVCYXNlZIAFEAEQABAI
      gAOAAhA8gAEJ0h8gISJYJGNsYXNzZXNaJGNsYXNzbmFtZaIiI1dBY2NvdW50WE5TT2JqZWN00SUmVHJvb3SABBIAAYagAAgAEQAb
      ACQAKQAyAEQASwBRAFwAbwCCAJUAnACmAK4AtQC8AMEAyADPANkA2wDdAN8A4QDjAOUA5wDpAOoA7wD4AQMBBgEOARcBGgEfASEA
      AAAAAAACAQAAAAAAAAAoAAAAAAAAAAAAAAAAAAABJg==
      """
    return [0x02] + (try #require(Data(base64Encoded: digits, options: .ignoreUnknownCharacters)))
  }

  @Test("An account that Tofu archived is exported as an address")
  func archived() throws {
    let item = KeychainItem.make(.genericPassword, [:], try tofuArchive())
    #expect(
      addresses([item]) == [
        "otpauth://totp/B%C3%A4nk%20%26%20Co:anna%40example.org?algorithm=SHA256&digits=8&period=60"
          + "&issuer=B%C3%A4nk%20%26%20Co&secret=JBSWY3DPEHPK3PXP"
      ])
  }

  @Test("A truncated archive of Tofu is not exported, and a flipped bit does not crash the reader")
  func damagedArchives() throws {
    let archive = try tofuArchive()
    for count in 0..<archive.count {
      #expect(addresses([.make(.genericPassword, [:], Array(archive.prefix(count)))]).isEmpty)
    }
    var random = SeededRandom(seed: 7)
    for _ in 0..<2_000 {
      var changed = archive
      changed[Int(random.next() % UInt64(changed.count))] ^= UInt8(1 << (random.next() % 8))
      #expect(addresses([.make(.genericPassword, [:], changed)]).count <= 1)
    }
  }

  @Test("Base32 digits agree with RFC 4648's test vectors, but have no padding")
  func base32() {
    let vectors = [
      ("", ""), ("f", "MY"), ("fo", "MZXQ"), ("foo", "MZXW6"), ("foob", "MZXW6YQ"), ("fooba", "MZXW6YTB"),
      ("foobar", "MZXW6YTBOI"),
    ]
    for (text, digits) in vectors {
      let encoded = Array(text.utf8).withUnsafeBytes { Base32.digits(of: $0) }
      #expect(encoded.withBytes { String(decoding: $0, as: UTF8.self) } == digits)
      #expect(Base32.bytes(of: encoded).withBytes { String(decoding: $0, as: UTF8.self) } == text)
    }
  }

  @Test(
    "Each one-time password that the exchange format cannot represent has its own reason",
    arguments: [
      ("hotp/x?secret=AA&counter=1", "its codes are based on a counter"),
      ("totp/x?secret=A1", "its secret is not Base32"), ("totp/x?issuer=E", "its address contains no secret"),
      ("totp/x?secret=AA&period=300", "its period is longer than 255 seconds"),
      ("totp/x?secret=AA&algorithm=MD5", "its hash algorithm is MD5"),
      ("totp/x?secret=AA&algorithm=SM3", "its hash algorithm is unknown"),
      ("totp/x?secret=AA&secret=BB", "its address contains a parameter twice"),
      ("steam/x?secret=AA", "its codes are based neither on the time nor on a counter"),
    ])
  func problems(_ address: String, _ reason: String) {
    let items = [KeychainItem.generic([:], secret: "otpauth://" + address)]
    let export = ItemExport(items, as: .credentialExchange)
    #expect(export.omittedItems.map(\.reason) == [reason])
    #expect(addresses(items).count == 1, "a list of addresses still contains the address")
  }

  private static let thirteenItems = (0..<13).map { index in
    KeychainItem.generic(
      [:], secret: "otpauth://totp/Bank:account\(index)?secret=JBSWY3DPEHPK3PXP&algorithm=SHA256&digits=8&issuer=Bank")
  }

  @Test("Google Authenticator's message contains its one-time passwords, and its index among the messages")
  func migrationMessage() throws {
    let messages = try Self.thirteenItems.prefix(2).map { item in
      let password = try #require(OneTimePassword(item))
      return try #require(MigrationMessage(try password.parameters.get()))
    }
    let address = MigrationMessage.address(of: messages, index: 1, of: 2).withBytes {
      String(decoding: $0, as: UTF8.self)
    }
    let prefix = "otpauth-migration://offline?data="
    #expect(address.hasPrefix(prefix))
    let digits = try #require(String(address.dropFirst(prefix.count)).removingPercentEncoding)
    let data = try #require(Data(base64Encoded: digits))

    // Two passwords, then the version, the number of messages and the index.
    let fields = protobufFields(Array(data))
    #expect(fields.map(\.number) == [1, 1, 2, 3, 4])
    #expect(fields.suffix(3).map(\.value) == [1, 2, 1])
    let password = protobufFields(fields[1].bytes)
    #expect(password.map(\.number) == [1, 2, 3, 4, 5, 6])
    // The bytes of JBSWY3DPEHPK3PXP, the secret of many published examples: "Hello!", then DE AD BE EF.
    #expect(password[0].bytes == [0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x21, 0xDE, 0xAD, 0xBE, 0xEF])
    #expect(password[1...2].map { String(decoding: $0.bytes, as: UTF8.self) } == ["account1", "Bank"])
    #expect(password.suffix(3).map(\.value) == [2, 2, 2], "SHA-256, eight digits, based on the time")
  }

  @Test("The page for Google Authenticator has a QR code for up to ten one-time passwords")
  func migrationPage() {
    let page = ItemExport(Self.thirteenItems, as: .migration)
    #expect(page.counts.count == 13 && page.counts.secretCount == 13 && page.counts.failure == nil)
    let codeCount = page.text.components(separatedBy: "<svg").count - 1
    #expect(codeCount == 2)
    #expect(page.text.contains("Code 2 of 2"))
  }

  private struct Field {
    var number: UInt8
    var value = 0
    var bytes: [UInt8] = []
  }

  /// Reads a Protocol Buffer whose numbers and lengths are below 16,384.
  ///
  /// A field begins with a byte with its number and its type (`number << 3 | type`). For type 0, a number
  /// follows. For type 2, a length and that many bytes follow. Each byte of a number or a length has seven bits, the lowest
  /// ones first. The highest bit of the byte is set if another byte follows.
  private func protobufFields(_ bytes: [UInt8]) -> [Field] {
    var remaining = bytes[...]
    func readNumber() -> Int {
      let lowByte = Int(remaining.popFirst() ?? 0)
      return lowByte < 0x80 ? lowByte : lowByte & 0x7F | Int(remaining.popFirst() ?? 0) << 7
    }
    var fields: [Field] = []
    while let key = remaining.popFirst() {
      let value = readNumber()
      let isBytes = key & 7 == 2
      fields.append(Field(number: key >> 3, value: value, bytes: isBytes ? Array(remaining.prefix(value)) : []))
      if isBytes { remaining = remaining.dropFirst(value) }
    }
    return fields
  }

  @Test("One-time passwords that Google Authenticator does not support are left out of its page, with the reason")
  func unsupportedByGoogle() {
    let export = ItemExport(
      [
        .generic([:], secret: "otpauth://totp/a?secret=AA&period=60"),
        .generic([:], secret: "otpauth://totp/b?secret=AA&digits=7"),
        .generic([:], secret: "otpauth://totp/\(String(repeating: "c", count: 3_000))?secret=AA"),
        .generic([:], secret: "otpauth://hotp/d?secret=AA&counter=5"),
      ], as: .migration)
    #expect(export.counts.count == 1)
    #expect(
      export.omittedItems.map(\.reason) == [
        "Google Authenticator supports only six or eight digits, and periods of 30 seconds",
        "Google Authenticator supports only six or eight digits, and periods of 30 seconds",
        "its names are too long for a QR code",
      ])
  }

  @Test("A page of QR codes contains no script, no address and no secret in text")
  func page() {
    let export = ItemExport(
      [
        .generic([:], secret: "otpauth://totp/Bank:anna?secret=JBSWY3DPEHPK3PXP&issuer=Bank"),
        .generic([:], secret: "otpauth://totp/%3Cscript%3E:eve?secret=JBSWY3DPEHPK3PXP"), .generic([:]),
      ], as: .codes)
    #expect(export.counts.count == 2 && export.counts.failure == nil)
    #expect(export.text.components(separatedBy: "<svg").count == 3)
    #expect(export.text.contains("<bdi>Bank</bdi>") && export.text.contains("<bdi>anna</bdi>"))
    #expect(!export.text.contains("<script") && !export.text.contains("otpauth") && !export.text.contains("JBSWY3DP"))
    #expect(export.text.hasSuffix("</html>\n"))
  }
}
