import BackupArchive
import Testing

@testable import ArchivedKeychain

extension VerificationTests {
  @Test(
    "with a changed byte in a file that has no digest is never called whole", arguments: [true, false],
    BackupLayout.allCases)
  func unseenChange(hasPassword: Bool, layout: BackupLayout) throws {
    let shelf = try shelf(hasPassword: hasPassword, layout: layout)
    try shelf.change("HomeDomain/undigested.txt") { $0[3] ^= 1 }
    for hardware in [Hardware.none, .own] {
      for knowsPassword in [true, false] {
        let verification = try verify(shelf, knowsPassword: knowsPassword, hardware: hardware)
        #expect(verification.isFaultless && !verification.isWhole && verification.verdict != .whole)
      }
    }
  }
}
