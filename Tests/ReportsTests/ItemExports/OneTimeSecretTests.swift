import KeyhaulKit
import Testing

@testable import Reports

@Suite("Exports of one-time passwords and Wi-Fi networks")
struct OneTimeSecretTests {
  private let uri = "otpauth://totp/Example:anna?secret=JBSWY3DPEHPK3PXP"

  @Test("The export of otpauth URIs has one URI on each line and nothing else")
  func lines() {
    let export = ItemExport(
      [
        .generic([:], secret: uri), .generic([:], secret: "hunter2"), .internet([:], secret: "otpauth://hotp/b"),
        .generic([:], secret: "otpauth://"), .generic([:], secret: " " + uri), .generic([:], secret: nil),
        .generic([:], secret: uri + "\nmore"), .make(.genericPassword, [:], Array("otpauth://".utf8) + [0xFF]),
      ], as: .oneTimeSecrets)
    #expect(export.text == "\(uri)\notpauth://hotp/b\n")
    #expect(export.counts.count == 2 && export.counts.secretCount == 2)
  }

  @Test("The export of Wi-Fi networks lists only items of the service AirPort, each with its network name")
  func networks() {
    let export = ItemExport(
      [
        .generic([.service: .string("AirPort"), .account: .string("Café, \"Zürich\"")], secret: "=plum"),
        .generic([.service: .string("AirPort"), .account: .string("=cmd")], secret: "x"),
        .generic([.service: .string("airport"), .account: .string("no")]),
        .internet([.service: .string("AirPort")]),
        .make(.genericPassword, [.service: .string("AirPort"), .account: .string("binary")], [0xFF]),
      ], as: .wirelessNetworks)
    #expect(export.text == "Network,Password\r\n\"Café, \"\"Zürich\"\"\",\"=plum\"\r\n\"'=cmd\",\"x\"\r\n")
    #expect(export.omittedItems.map(\.identity.account) == ["binary"])
    // The name "=cmd" got an apostrophe, so that a spreadsheet does not evaluate it.
    #expect(export.counts.formulaSecretCount == 1 && export.counts.inertNameCount == 1)
  }
}
