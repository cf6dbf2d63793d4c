import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import Keychains
import TestSupport
import Testing

@testable import Backups

@Suite("Accounts of authenticator apps in a backup")
struct AuthenticatorTests {
  private static let address =
    "otpauth://totp/Example:anna?secret=JBSWY3DPEHPK3PXP&issuer=Example&algorithm=SHA1&digits=6&period=30"
  private static let protonPath = "Library/Application Support/default.store"
  private static let protonDomain = "AppDomainGroup-group.me.proton.authenticator"

  /// The address above and a Steam account, encrypted with Python's cryptography package in the format of Proton
  /// Authenticator's source.
  private static let encryptedEntries = [
    """
    000102030405060708090a0b057f71bb8b769d20fcf272c1b0b355089c729bd22ce888088b85e86047df3451cc6e7f4e52502b629854f69f
    1e19c576d848a8518baa64f8802fd0b4a71f8c8336f93ef36b3594bddbe233689330d835a3986c7626fa3b34ac90b84e95db127c9863dc57
    34ababbfaa2480f776f89bd808fa14d4a0a9b2b1bfd9bed31ca7b3b7713a310b4aba0770a1b0
    """,
    """
    0102030405060708090a0b0cc5eb4154f638924afefefbc8149376e06aa96703bb29d6d518a19993181bd1a9506f27753ee1c0d5511c7caa
    eeeeeebcb875ed3aec8e
    """,
  ].map { $0.filter { $0 != "\n" } }
  /// The key ff ee 00 01 … 1d as a JSON string in Base64. Foundation escapes the slash.
  private static let key = #""\/+4AAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0=""#

  /// Creates a database of Proton Authenticator. The app's order is the reverse of the order of the entries.
  private func protonDatabase(_ encryptedEntries: [String] = Self.encryptedEntries) throws -> [UInt8] {
    var sql = """
      CREATE TABLE ZENCRYPTEDENTRYENTITY
        (Z_PK INTEGER PRIMARY KEY, ZORDER INTEGER, ZKEYID VARCHAR, ZENCRYPTEDDATA BLOB);
      """
    for (index, entry) in encryptedEntries.enumerated() {
      sql += "INSERT INTO ZENCRYPTEDENTRYENTITY VALUES (\(index + 1), \(-index), 'key-1', x'\(entry)');"
    }
    return try ExternalDatabase.bytes(sql)
  }

  private func keyItem(_ text: String = key, _ protection: ProtectionClass = .afterFirstUnlock) -> KeychainItem {
    .password("key-1", protection, service: "me.proton.authenticator", secret: text)
  }

  private func accounts(of backup: EditableBackup, installed: [String] = []) throws -> AuthenticatorAccounts {
    let archive = try backup.open()
    let key = try archive.unlock(password: backup.hasPassword ? Secret(utf8: EditableBackup.password) : nil)
    let reader = try archive.reader(with: key, for: .exporting)
    return try AuthenticatorAccounts(in: archive, reader, installed: installed)
  }

  private func addresses(_ accounts: AuthenticatorAccounts) -> [String] {
    accounts.accounts.map { $0.address.withBytes { String(decoding: $0, as: UTF8.self) } }
  }

  /// Describes each app whose accounts are missing, with the reason.
  private func missingApps(_ accounts: AuthenticatorAccounts) -> [String] {
    accounts.missing.map { "\($0.app.rawValue): \($0.obstacle.identifier)" }
  }

  @Test("Proton Authenticator's accounts are decrypted with the key in the keychain, in the order of the app")
  func proton() throws {
    let backup = try EditableBackup(
      files: [.init(Self.protonPath, try protonDatabase(), domain: Self.protonDomain)], items: [keyItem()])
    let result = try accounts(of: backup)
    #expect(addresses(result) == ["otpauth://steam/Steam?issuer=Steam&secret=JBSWY3DPEHPK3PXP", Self.address])
    #expect(result.missing.isEmpty && !result.hasUnreadableFile)
  }

  @Test("Without the key, or with a different key, Proton Authenticator's accounts are counted as missing")
  func protonWithoutKey() throws {
    let file = EditableBackup.File(Self.protonPath, try protonDatabase(), domain: Self.protonDomain)
    let otherKey = Self.key.replacing("AAQ", with: "BBQ")
    for items in [
      [], [keyItem(otherKey)], [keyItem("no key")], [keyItem(Self.key, .whenUnlockedThisDeviceOnly)],
      [.password("key-1", service: "other.example", secret: Self.key)],
    ] {
      let result = try accounts(of: try EditableBackup(files: [file], items: items))
      #expect(result.accounts.isEmpty)
      #expect(result.missing.map(\.obstacle) == [.keychainKey(count: 2)])
    }
  }

  @Test("A damaged database of Proton Authenticator is reported, and the accounts of other apps are still found")
  func damagedProton() throws {
    let database = try protonDatabase()
    let databaseWithView = try ExternalDatabase.bytes(
      "CREATE VIEW ZENCRYPTEDENTRYENTITY AS SELECT 'a' AS ZKEYID, x'00' AS ZENCRYPTEDDATA;")
    let preferences = try Self.freeOTPPreferences(order: ["a"], addresses: ["a": Self.address])
    let otherDatabase = try ExternalDatabase.bytes("CREATE TABLE other (a);")
    let truncatedDatabases: [[UInt8]] = [[], Array("SQLite format 3".utf8), Array(database.prefix(4096))]
    for bytes in truncatedDatabases + [otherDatabase, databaseWithView] {
      let backup = try EditableBackup(
        files: [
          .init(Self.protonPath, bytes, domain: Self.protonDomain),
          .init(
            "Library/Preferences/org.fedorahosted.freeotp.plist", preferences,
            domain: "AppDomain-org.fedorahosted.freeotp"),
        ], items: [keyItem()])
      let result = try accounts(of: backup)
      #expect(result.hasUnreadableFile)
      #expect(addresses(result) == [Self.address])
      #expect(missingApps(result) == ["freeotp: never-in-backup", "proton-authenticator: unreadable-file"])
    }
  }

  private static func rows(_ bytes: [UInt8]) throws(KeyhaulError) -> [ProtonAuthenticatorStore.Row] {
    try ProtonAuthenticatorStore.rows(of: try AppDatabase(file: bytes))
  }

  @Test("A database with changed bytes is read or refused, without a crash")
  func changedBytes() throws {
    let database = try protonDatabase()
    var random = SeededRandom(seed: 11)
    for _ in 0..<300 {
      var changed = database
      for _ in 0..<4 {
        let offset = Int(random.next() % UInt64(changed.count))
        changed[offset] = UInt8(truncatingIfNeeded: random.next())
      }
      guard let rows = try? Self.rows(changed) else { continue }
      #expect(rows.count <= ProtonAuthenticatorStore.maximumRowCount)
    }
  }

  @Test("A database with more than 10,000 rows is refused")
  func rowLimit() throws {
    #expect(ProtonAuthenticatorStore.maximumRowCount == 10_000)
    let bytes = try ExternalDatabase.bytes(
      """
      CREATE TABLE ZENCRYPTEDENTRYENTITY (ZKEYID VARCHAR, ZENCRYPTEDDATA BLOB);
      WITH RECURSIVE n(i) AS
        (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(ProtonAuthenticatorStore.maximumRowCount + 1))
        INSERT INTO ZENCRYPTEDENTRYENTITY SELECT 'k', x'00' FROM n;
      """)
    #expect(throws: KeyhaulError.self) { try Self.rows(bytes) }
  }

  /// Creates the preferences of FreeOTP: the order of the accounts' names, and the address of each account.
  private static func freeOTPPreferences(order: [String], addresses: [String: String]) throws -> [UInt8] {
    var root: [String: Any] = ["tokenOrder": order, "other": "otpauth://totp/other?secret=AA"]
    for (name, address) in addresses { root[name] = address }
    return Array(try PropertyListSerialization.data(fromPropertyList: root, format: .binary, options: 0))
  }

  @Test(
    "FreeOTP's first versions kept addresses in their preferences, in the order of the app", arguments: [true, false])
  func freeOTP(hasPassword: Bool) throws {
    let bytes = try Self.freeOTPPreferences(
      order: ["b", "a", "gone"], addresses: ["a": "otpauth://totp/a?secret=AA", "b": Self.address])
    let backup = try EditableBackup(
      hasPassword: hasPassword,
      files: [
        .init(
          "Library/Preferences/org.fedorahosted.freeotp.plist", bytes, domain: "AppDomain-org.fedorahosted.freeotp")
      ], items: [.password("anna")])
    let result = try accounts(of: backup)
    #expect(addresses(result) == [Self.address, "otpauth://totp/a?secret=AA"])
    #expect(missingApps(result) == ["freeotp: never-in-backup"])
  }

  @Test("Apps whose codes cannot be read are found by their files, their folders or the list of installed apps")
  func unreadableApps() throws {
    let backup = try EditableBackup(
      files: [
        .init("TwoFAS.sqlite", [0], domain: "AppDomainGroup-group.twofas.com"),
        .init("Documents/ente.offline_authenticator.db", [0], domain: "AppDomain-io.ente.auth"),
      ], items: [.password("anna")])
    let result = try accounts(
      of: backup, installed: ["com.finnwea.Raivo", "com.google.Authenticator", "org.example.other"])
    #expect(
      missingApps(result) == [
        "ente-auth: device-key", "google-authenticator: unpublished-storage", "raivo: app-password",
        "2fas: unpublished-key",
      ])
  }

  @Test("A backup without a known authenticator app has no accounts and no missing apps")
  func noAuthenticator() throws {
    let result = try accounts(of: try EditableBackup(items: [.password("anna")]), installed: ["org.example.other"])
    #expect(result.accounts.isEmpty && result.missing.isEmpty)
  }
}
