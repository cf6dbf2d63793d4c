import KeyhaulKit
import TestSupport
import Testing

@testable import Reports

@Suite("The overview of a backup's one-time passwords")
struct OneTimePasswordOverviewTests {
  private func account(_ name: String, _ app: AuthenticatorApp) -> AuthenticatorAccounts.Account {
    .init(app: app, address: SensitiveBytes(copying: Array("otpauth://totp/\(name)?secret=JBSWY3DPEHPK3PXP".utf8)))
  }

  private func overview(_ accounts: [AuthenticatorAccounts.Account]) -> OneTimePasswordOverview {
    OneTimePasswordOverview([], moving: [], AuthenticatorAccounts(accounts), names: AppDirectory([]))
  }

  @Test("The checklist entry counts each code once, and names the apps with the most codes first")
  func checklistEntry() {
    let accounts = [
      account("a", .freeOTP), account("b", .protonAuthenticator), account("c", .protonAuthenticator),
      account("b", .freeOTP),
    ]
    #expect(
      overview(accounts).checklistEntry(isRedacted: false)
        == "Save 3 one-time passwords of Proton Authenticator (2) and FreeOTP (1); all also move.")
    #expect(
      overview([account("a", .freeOTP)]).checklistEntry(isRedacted: false)
        == "Save 1 one-time password of FreeOTP; it also moves.")
    #expect(
      overview(accounts).checklistEntry(isRedacted: true)
        == "Save 3 one-time passwords; all also move.")
    #expect(overview([]).checklistEntry(isRedacted: false) == nil && overview([]).isEmpty)
  }

  @Test("The document names apps only if names are shown")
  func document() {
    let overview = overview([account("a", .freeOTP)])
    #expect(
      overview.json(isRedacted: false)
        == ["count": 1, "moving": 1, "apps": [["name": "FreeOTP", "count": 1, "moving": 1]], "missing": []])
    #expect(overview.json(isRedacted: true) == ["count": 1, "moving": 1, "apps": [], "missing": []])
  }
}
