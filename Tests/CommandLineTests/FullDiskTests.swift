import Foundation
import Testing

@testable import keyhaul

@Suite("A disk that is full while a backup is changed or copied")
struct FullDiskTests {
  @Test("leaves the backup as it was, and no part of anything")
  func full() throws {
    let world = try MoveWorld()
    try world.write(Array("battery staple\n".utf8), to: ".np")
    try world.backUp(to: "b/")
    try world.backUp(to: "b.tar")
    try world.devices.run("cp -Rp b kept; cp b.tar kept.tar")
    let before = try world.names()
    for line in [
      "convert b -o c.tar", "convert b -o c.zip", "convert b.tar -o c/", "convert b -o c.tar.gz",
      "rekey b.tar --password-file .bp --new-password-file .np", "export b -o x.json --reveal --password-file .bp",
    ] {
      // A shell's limit stands for the disk: as much as one of the backup's files, and less than all of them.
      let outcome = try world.devices.run("ulimit -f 16; keyhaul \(line)")
      #expect(outcome.status == 1, "\(line): \(outcome)")
      let told = outcome.errors.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      #expect(told.contains("error: could not write ") && told.contains(" file too large "), "\(line): \(told)")
      #expect(try world.names() == before, "\(line)")
    }
    #expect(try world.devices.run("diff -r b kept && cmp b.tar kept.tar").status == 0)
    let lost = try world.devices.run("keyhaul export b -o - --password-file .bp > /dev/full")
    #expect(lost.status == 1 && lost.errors.contains("error: could not write the result\n"), "\(lost)")
  }
}
