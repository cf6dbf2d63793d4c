import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Full disks during changes and copies of a backup")
struct FullDiskTests {
  @Test("A full disk leaves the backup unchanged and leaves no partial files")
  func full() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.write(Array("battery staple\n".utf8), to: ".np")
    try sandbox.backUp(to: "b/")
    try sandbox.backUp(to: "b.tar")
    try sandbox.devices.run("cp -Rp b kept; cp b.tar kept.tar")
    let before = try sandbox.names()
    for line in [
      "convert b -o c.tar", "convert b -o c.zip", "convert b.tar -o c/", "convert b -o c.tar.gz",
      "rekey b.tar --password-file .bp --new-password-file .np", "export b -o x.json --reveal --password-file .bp",
    ] {
      // The shell's limit on the size of files simulates a full disk. Some files of the backup fit, but not all.
      let outcome = try sandbox.devices.run("ulimit -f 16; keyhaul \(line)")
      #expect(outcome.status == 1, "\(line): \(outcome)")
      let errors = unwrapped(outcome.errors)
      #expect(errors.contains("error: could not write ") && errors.contains(" file too large "), "\(line): \(errors)")
      #expect(try sandbox.names() == before, "\(line)")
    }
    #expect(try sandbox.devices.run("diff -r b kept && cmp b.tar kept.tar").status == 0)
    for line in ["convert b -o -", "backup old-phone -o - --password-file .bp --rounds 1"] {
      let outcome = try sandbox.devices.run("keyhaul \(line) > /dev/full")
      #expect(outcome.status == 1 && outcome.errors.contains("the output is incomplete"), "\(line): \(outcome)")
      // Output to a stream leaves no file to mention.
      #expect(!outcome.errors.contains("no partial file"), "\(line): \(outcome)")
    }
    let export = try sandbox.devices.run("keyhaul export b -o - --password-file .bp > /dev/full")
    #expect(export.status == 1 && export.errors.contains("error: could not write the result\n"), "\(export)")
  }
}
