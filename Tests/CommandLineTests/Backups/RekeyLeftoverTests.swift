import Foundation
import Testing

@testable import keyhaul

@Suite("Leftovers of killed rekeys")
struct RekeyLeftoverTests {
  private func sandbox() throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox()
    try sandbox.write(Array("battery staple\n".utf8), to: ".np")
    try sandbox.backUp(to: "b/")
    return sandbox
  }

  @Test(
    "Every command that reads the backup reports a leftover with its name, contents and advice",
    arguments: [
      "inspect b", "verify b --password-file .bp", "convert b -o c.zip", "export b -o x.json --password-file .bp",
    ])
  func reported(line: String) throws {
    let sandbox = try sandbox()
    // A rekey that is killed before it deletes the old backup leaves such a directory.
    try sandbox.succeed("backup old-phone -o .b.1f2e.tmp/ --no-password -q")
    let errors = try unwrapped(sandbox.keyhaul(line).errors)
    #expect(errors.contains("warning: an interrupted run left a file or folder next to b"))
    #expect(errors.contains("/.b.1f2e.tmp: it is a backup whose files are not encrypted"))
    #expect(errors.contains("try: delete it; the next rekey of b also deletes it"))
  }

  @Test("The next rekey deletes a leftover, and a dry run keeps it")
  func deleted() throws {
    let sandbox = try sandbox()
    try sandbox.succeed("backup old-phone -o .b.1f2e.tmp/ --no-password -q")
    let line = "rekey b --password-file .bp --new-password-file .np"
    try sandbox.succeed("\(line) --dry-run")
    #expect(try sandbox.names().contains(".b.1f2e.tmp"))
    try sandbox.succeed(line)
    #expect(try !sandbox.names().contains(".b.1f2e.tmp"))
    #expect(try !sandbox.keyhaul("inspect b").errors.contains("warning"))
  }

  @Test("A leftover is found next to the file that a link points to")
  func linked() throws {
    let sandbox = try sandbox()
    try sandbox.devices.run("mkdir elsewhere && mv b elsewhere/b && ln -s elsewhere/b link")
    try sandbox.succeed("backup old-phone -o elsewhere/.b.1f2e.tmp/ --no-password -q")
    let errors = try unwrapped(sandbox.keyhaul("inspect link").errors)
    #expect(errors.contains("elsewhere/.b.1f2e.tmp: it is a backup whose files"))
  }
}
