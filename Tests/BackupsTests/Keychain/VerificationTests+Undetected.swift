import Basics
import KeychainFormats
import Testing

@testable import Backups

extension VerificationTests {
  @Test("A decrypted item that devices refuse is reported, as in a plan")
  func refusedItem() throws {
    var groupless = KeychainItem.password("no group")
    groupless[.accessGroup] = nil
    let verification = try verify(EditableBackup(items: [.password("anna"), groupless]))
    let items = verification.items
    #expect(items?.readable == 1 && items?.damaged == 1 && items?.deviceBound == 0)
    #expect(verification.faults.map(\.kind) == [.itemDamaged])
    let reason = "malformed: the item has no access group"
    #expect(verification.faults.first?.item == 1 && verification.faults.first?.reason == reason)
    #expect(
      verification.detail(of: .items)?.hasPrefix(
        "1 of 2 can be decrypted, 1 more can be decrypted, but no device accepts it: item 1, \(reason) (")
        == true)
  }

  @Test(
    "A backup with a changed file without a digest is never verified as whole", arguments: [true, false],
    BackupLayout.allCases)
  func undetectedChange(hasPassword: Bool, layout: BackupLayout) throws {
    let backup = try backup(hasPassword: hasPassword, layout: layout)
    try backup.change("HomeDomain/undigested.txt") { $0[3] ^= 1 }
    for hardware in [Hardware.none, .own] {
      for knowsPassword in [true, false] {
        let verification = try verify(backup, knowsPassword: knowsPassword, hardware: hardware)
        #expect(verification.isFaultless && !verification.isWhole && verification.verdict != .whole)
      }
    }
  }
}
