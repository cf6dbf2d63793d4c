import Foundation
import Testing

@testable import keyhaul

@Suite("Backups with non-ASCII file names, in any locale")
struct EntryNameCommandTests {
  @Test(
    "A backup with a non-ASCII name is inspected, verified, rekeyed and copied, and keeps its name",
    arguments: ["C", "C.UTF-8"])
  func everyCommand(locale: String) throws {
    let sandbox = try PhoneSandbox()
    try sandbox.write(Array("battery staple\n".utf8), to: ".np")
    try sandbox.backUp(to: "Gr\u{F6}\u{DF}e/")
    try sandbox.devices.run("tar -cf b.tar Gr\u{F6}\u{DF}e")
    for line in [
      "inspect b.tar", "verify b.tar --password-file .bp",
      "rekey b.tar --password-file .bp --new-password-file .np", "verify b.tar --password-file .np",
      "convert b.tar -o c.zip", "convert b.tar -o c/", "verify c.zip --password-file .np",
    ] {
      let outcome = try sandbox.devices.run("LC_ALL=\(locale) keyhaul \(line)")
      #expect(outcome.status == 0, "\(line): \(outcome.errors)")
    }
    #expect(Data(try sandbox.read("b.tar")).ranges(of: Data("Gr\u{F6}\u{DF}e/Manifest.plist".utf8)).count > 0)
    #expect(try sandbox.names().filter { $0.hasPrefix(".b.") } == [])
  }
}
