import Foundation
import KeyhaulKit
import Testing

@testable import Reports

@Suite("Credential exchange format")
struct CredentialExchangeTests {
  /// The date that is 1,778,307,200.75 seconds after 1970.
  private static let exportDate = KeychainDate(secondsSinceReferenceDate: 800_000_000.75)

  private func document(_ items: [KeychainItem]) throws -> (export: ItemExport, root: [String: Any]) {
    let export = ItemExport(items, as: .credentialExchange, date: Self.exportDate)
    let root = try JSONSerialization.jsonObject(with: Data(export.text.utf8))
    return (export, try #require(root as? [String: Any]))
  }

  private func entries(_ items: [KeychainItem]) throws -> [[String: Any]] {
    let accounts = try #require(try document(items).root["accounts"] as? [[String: Any]])
    return try #require(accounts.only?["items"] as? [[String: Any]])
  }

  @Test("The document states its version, program and time, even without items")
  func header() throws {
    let root = try document([]).root
    #expect(root["version"] as? [String: Int] == ["major": 1, "minor": 0])
    #expect(root["timestamp"] as? Int == 1_778_307_200 && root["exporterDisplayName"] as? String == "Keyhaul")
    #expect(try entries([]).isEmpty)
  }

  @Test("A password is a login with its URL, dates and note")
  func login() throws {
    let entry = try #require(
      try entries([
        .internet(
          [
            .server: .string("shop.example"), .protocolType: .string("htps"), .account: .string("anna"),
            .comment: .string("two\nlines"), .uuid: .string("6F1A6B2E-8B0C-4F53-9E3B-0C6B7A6D5E4F"),
            .creationDate: .date(KeychainDate(secondsSinceReferenceDate: 1.9)),
            .modificationDate: .date(KeychainDate(secondsSinceReferenceDate: -2_000_000_000)),
          ], secret: #"a"b\c"#)
      ]).only)
    // The Base64 of the UUID.
    #expect(entry["id"] as? String == "NkYxQTZCMkUtOEIwQy00RjUzLTlFM0ItMEM2QjdBNkQ1RTRG")
    #expect(entry["title"] as? String == "shop.example" && entry["creationAt"] as? Int == 978_307_201)
    #expect(entry["modifiedAt"] == nil, "the format has no dates before 1970")
    #expect((entry["scope"] as? [String: [String]])?["urls"] == ["https://shop.example"])
    let credentials = try #require(entry["credentials"] as? [[String: Any]])
    #expect(credentials.map { $0["type"] as? String } == ["basic-auth", "note"])
    #expect(credentials[0]["username"] as? [String: String] == ["fieldType": "string", "value": "anna"])
    #expect(credentials[0]["password"] as? [String: String] == ["fieldType": "concealed-string", "value": #"a"b\c"#])
    #expect(credentials[1]["content"] as? [String: String] == ["fieldType": "string", "value": "two\nlines"])
  }

  @Test("A one-time password has its period, digits and algorithm, or the defaults")
  func oneTime() throws {
    let credentials = try entries([
      .generic([.account: .string("anna")], secret: "otpauth://totp/E:a?secret=jbswy3dp====&issuer=E"),
      .generic([:], secret: "otpauth://totp/x?digits=8&algorithm=sha256&period=60&secret=JBSWY3DP"),
    ]).compactMap { ($0["credentials"] as? [[String: Any]])?.first }
    #expect(credentials.map { $0["type"] as? String } == ["totp", "totp"])
    #expect(credentials.map { $0["secret"] as? String } == ["JBSWY3DP", "JBSWY3DP"])
    #expect(
      credentials.map { $0["period"] as? Int } == [30, 60] && credentials.map { $0["digits"] as? Int } == [6, 8])
    #expect(credentials.map { $0["algorithm"] as? String } == ["sha1", "sha256"])
    #expect(credentials.map { $0["username"] as? String } == ["a", "x"])
    #expect(credentials.map { $0["issuer"] as? String } == ["E", nil])
  }

  @Test(
    "One-time passwords that the format cannot represent are left out and counted",
    arguments: [
      "otpauth://hotp/x?secret=JBSWY3DP&counter=1", "otpauth://totp/x", "otpauth://totp/x?secret=",
      "otpauth://totp/x?secret=a1",
      "otpauth://totp/x?secret=AB=C", "otpauth://totp/x?secret=AA&secret=BB", "otpauth://totp/x?secret=AA&Secret=BB",
      "otpauth://totp/x?secret=AA&period=0", "otpauth://totp/x?secret=AA&digits=256",
      "otpauth://totp/x?secret=AA&algorithm=md5",
      "otpauth://totp/x?secret=A%31", "otpauth://totp/x?secret=AA&period=256", "otpauth://steam/x?secret=AA",
    ])
  func unrepresentable(_ secret: String) throws {
    let (export, _) = try document([.generic([.account: .string("a")], secret: secret), .generic([:])])
    #expect(export.counts.count == 1 && export.omittedItems.map(\.identity.account) == ["a"])
  }

  @Test("A Wi-Fi password is an entry with the network's name")
  func network() throws {
    let entry = try #require(
      try entries([
        .generic([.service: .string("AirPort"), .account: .string("Café \u{202E}\u{1}")], secret: "plum\t")
      ]).only)
    let credential = try #require((entry["credentials"] as? [[String: Any]])?.only)
    #expect(credential["type"] as? String == "wifi")
    #expect(credential["ssid"] as? [String: String] == ["fieldType": "string", "value": "Café \u{202E}\u{1}"])
    #expect(credential["passphrase"] as? [String: String] == ["fieldType": "concealed-string", "value": "plum\t"])
  }

  @Test("Identifiers are unique, even if UUIDs are repeated or too long")
  func identifiers() throws {
    let uuid = PropertyValue.string("6F1A6B2E-8B0C-4F53-9E3B-0C6B7A6D5E4F")
    let identifiers = try entries([
      .generic([.uuid: uuid]), .generic([.uuid: uuid]), .generic([:]),
      .generic([.uuid: .string(String(repeating: "A", count: 100))]),
    ]).compactMap { $0["id"] as? String }
    #expect(Set(identifiers).count == 4)
    // The Base64 of "item 1", "item 2" and "item 3".
    #expect(identifiers[1...] == ["aXRlbSAx", "aXRlbSAy", "aXRlbSAz"])
    #expect(identifiers.allSatisfy { $0.wholeMatch(of: /[A-Za-z0-9_-]{1,64}/) != nil })
  }

  @Test("Identifiers are unique, even if a UUID looks like the position of another item")
  func misleadingUUID() throws {
    let identifiers = try entries([.generic([.uuid: .string("item 1")]), .generic([:])])
      .compactMap { $0["id"] as? String }
    // The Base64 of "item 0" and "item 1".
    #expect(identifiers == ["aXRlbSAw", "aXRlbSAx"])
  }

  @Test("Certificates and keys are skipped, and passwords that are not text are reported as left out")
  func otherItems() throws {
    let (export, _) = try document([
      .make(.key, [:], [1]), .make(.certificate, [:], [1]), .make(.genericPassword, [.account: .string("b")], [0xFF]),
      .generic([.account: .string("none")], secret: nil), .generic([.account: .string("kept")]),
    ])
    #expect(export.counts.count == 1 && export.counts.secretCount == 1)
    #expect(export.omittedItems.map(\.identity.account) == ["b", "none"])
  }
}

extension Collection {
  fileprivate var only: Element? { count == 1 ? first : nil }
}
