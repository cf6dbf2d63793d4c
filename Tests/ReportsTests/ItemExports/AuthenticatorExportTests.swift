import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import Reports

@Suite("Export of codes from files of authenticator apps")
struct AuthenticatorExportTests {
  private static let address =
    "otpauth://totp/Example:anna?secret=JBSWY3DPEHPK3PXP&issuer=Example&algorithm=SHA1&digits=6&period=30"

  private func account(_ address: String) -> AuthenticatorAccounts.Account {
    .init(app: .protonAuthenticator, address: SensitiveBytes(copying: Array(address.utf8)))
  }

  private func export(
    _ items: [KeychainItem], _ accounts: [AuthenticatorAccounts.Account], as format: ExportFormat
  ) -> (text: String, counts: ItemExportCounts) {
    var text: [UInt8] = []
    var writer = ItemExportWriter(format, date: KeychainDate(secondsSinceReferenceDate: 0))
    for item in items { writer.append(item) { text += $0 } }
    for account in accounts { writer.append(account) { text += $0 } }
    let counts = writer.end { text += $0 }
    return (String(decoding: text, as: UTF8.self), counts)
  }

  @Test("A code from a file is in every format of one-time passwords, with its issuer and account")
  func formats() {
    let accounts = [account(Self.address)]
    #expect(export([], accounts, as: .oneTimeSecrets).text == Self.address + "\n")
    let table = export([], accounts, as: .passwords).text
    #expect(table.hasSuffix("\r\n\"Example\",\"\",\"anna\",\"\",\"\",\"\(Self.address)\"\r\n"))
    let exchange = export([], accounts, as: .credentialExchange).text
    for part in [#""issuer": "Example""#, #""username": "anna""#, #""secret": "JBSWY3DPEHPK3PXP""#] {
      #expect(exchange.contains(part), "\(part)")
    }
    for format in [ExportFormat.codes, .migration] {
      let page = export([], accounts, as: format)
      #expect(page.text.contains("Example") && page.text.contains("anna") && page.counts.count == 1)
    }
    for format in [ExportFormat.genericPasswordPlist, .wirelessNetworks, .certificatesAndKeys] {
      #expect(export([], accounts, as: format).counts.count == 0)
    }
  }

  @Test("A code in both an item and a file is written once, regardless of its spelling")
  func duplicates() {
    let item = KeychainItem.generic(
      [.service: .string("codes")],
      secret: "otpauth://totp/Example:anna?issuer=Example&secret=jbsw%20y3dp%20ehpk%203pxp")
    for format in ExportFormat.all where format.containsOneTimePasswords {
      let (_, counts) = export([item], [account(Self.address), account(Self.address)], as: format)
      #expect(counts.count == 1 && counts.repeatedCount == 2, "\(format.name)")
    }
    // Another account at the same service, or another period, is another code.
    let otherAccounts = [
      account("otpauth://totp/Example:bert?secret=JBSWY3DPEHPK3PXP"),
      account("otpauth://totp/Example:anna?period=60&secret=JBSWY3DPEHPK3PXP"),
    ]
    #expect(export([item], otherAccounts, as: .oneTimeSecrets).counts.count == 3)
  }

  @Test("Two items with one code are one line in a list of codes, and two in a table of passwords")
  func repeatedItems() {
    let items = ["a", "b"].map { KeychainItem.generic([.account: .string($0)], secret: Self.address) }
    #expect(export(items, [], as: .oneTimeSecrets).text == Self.address + "\n")
    #expect(export(items, [], as: .oneTimeSecrets).counts.repeatedCount == 1)
    #expect(export(items, [], as: .passwords).counts.count == 2)
  }

  @Test("An account without an otpauth address is left out and counted")
  func noAddress() {
    for format in ExportFormat.all where format.containsOneTimePasswords {
      let (_, counts) = export([], [account("steam://JBSWY3DP"), account("")], as: format)
      #expect(counts.count == 0 && counts.omittedCount == 2, "\(format.name)")
    }
  }

  @Test(
    "The page with codes has no scripts and loads nothing, prints each code on one page, and says to delete it"
  )
  func page() {
    for format in [ExportFormat.codes, .migration] {
      let text = export([], [account(Self.address)], as: format).text
      for forbidden in ["<script", "http://", "https://", "<link", "<img", "@import", "url("] {
        #expect(!text.contains(forbidden), "\(forbidden)")
      }
      #expect(text.contains("article,figure,tr,pre,li{break-inside:avoid}"))
      #expect(text.contains("Delete it as soon as you have scanned the codes."))
      #expect(!text.contains("JBSWY3DPEHPK3PXP"), "only the picture contains the secret")
    }
  }

  @Test("Every app and obstacle has a reason and advice, in complete sentences")
  func completeness() {
    let obstacles: [AuthenticatorAccounts.Obstacle] = [
      .neverInBackup, .deviceKey, .appPassword, .unpublishedKey, .unpublishedStorage, .keychainKey(count: 1),
      .keychainKey(count: 2), .file(reason: "it is cut short"),
    ]
    // The two obstacles with a count have the same identifier.
    #expect(Set(obstacles.map(\.identifier)).count == 7)
    for app in AuthenticatorApp.allCases {
      for obstacle in obstacles {
        let sentence = AuthenticatorText.sentence(app, obstacle)
        #expect(sentence.hasPrefix("\(app.name) is installed; ") && sentence.hasSuffix("."))
        #expect(sentence.contains("source device."))
      }
    }
    #expect(
      AuthenticatorText.sentence(.raivo, .appPassword)
        == "Raivo OTP is installed; its codes are encrypted with the app's own password. "
        + "Export the codes in the app before you erase the source device.")
  }
}
