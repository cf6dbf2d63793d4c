import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

// MARK: Property lists
extension VerificationTests {
  @Test("An unfinished backup is damaged, and all other checks are made")
  func unfinished() throws {
    let backup = try backup()
    try backup.write(
      try BackupStatus(uuid: nil, date: EditableBackup.date, snapshotState: "uploading").serialized(),
      to: "Status.plist")
    let verification = try verify(backup)
    #expect(verification.faultCount == [.structure: 1] && verification.faults.first?.kind == .unfinished)
    #expect(verification.verdict == .damaged && !verification.isUnopened)
    #expect(verification.items == .init(readable: 2, deviceBound: 1, damaged: 0))
  }

  @Test("A backup without Status.plist is not verified as whole, even without faults")
  func unconfirmed() throws {
    let backup = try backup()
    try backup.remove("Status.plist")
    let verification = try verify(backup)
    #expect(verification.faultCount == [:] && verification.verdict == .unconfirmed && !verification.isWhole)
    #expect(verification.notes == ["there is no Status.plist to show that the backup was finished"])
  }

  @Test(
    "A truncated property list is a fault, and all other checks are made",
    arguments: ["Info.plist", "Status.plist"], [true, false])
  func truncated(name: String, knowsPassword: Bool) throws {
    let backup = try backup()
    let complete = try XMLPlist.encode(
      .dictionary(["Device Name": .string("x"), "SnapshotState": .string("finished")]))
    try backup.write(complete, to: name)
    #expect(try verify(backup, knowsPassword: knowsPassword).verdict == .unproven)
    try backup.write(Array(complete.dropLast(20)), to: name)
    let verification = try verify(backup, knowsPassword: knowsPassword)
    #expect(verification.faultCount == [.structure: 1] && verification.verdict == .damaged)
    let fault = try #require(verification.faults.first)
    #expect(fault.kind == .structureDamaged && fault.file == name)
    #expect(fault.reason.hasPrefix("it ends inside an element, at byte "))
    // The line with the fault comes first, followed by the correct parts.
    #expect(verification.detail(of: .structure)?.hasPrefix("\(name): \(fault.reason); also, ") == true)
    #expect(!verification.isHostile && !verification.isOnlyIncomplete && !verification.isUnopened)
    if knowsPassword { #expect(verification.items == .init(readable: 2, deviceBound: 1, damaged: 0)) }
  }

  @Test(
    "A property list that expands beyond its size is hostile", arguments: ["Info.plist", "Status.plist"])
  func expanding(name: String) throws {
    let backup = try backup()
    try backup.write(CostlyPlists.nestedArrays, to: name)
    let verification = try verify(backup)
    #expect(verification.isHostile && verification.faults.map(\.file) == [name])
  }
}
