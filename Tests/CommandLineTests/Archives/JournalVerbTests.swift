import Testing

@testable import keyhaul

@Suite("A Manifest.db-wal beside Manifest.db")
struct JournalVerbTests {
  @Test("is named by every verb, and lost by none without a word")
  func named() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    try world.succeed("convert b.tar -o b/ -q")
    try world.write(Array("rows that nobody reads".utf8), to: "b/Manifest.db-wal")
    let fact = "Manifest.db-wal: it is stored next to Manifest.db, has 22 bytes, may change it, and was not read"
    for (line, status) in [
      ("inspect b --password-file .bp", Int32(0)), ("verify b --password-file .bp", 13), ("verify b --quick", 13),
      ("plan b --to new-phone --password-file .bp", 3), ("restore b --to new-phone --yes --password-file .bp", 13),
      ("rekey b --password-file .bp --new-password-file .bp", 13), ("convert b -o c.tar", 3),
      ("convert b --decrypted -o clear/ --password-file .bp", 3), ("export b --files out --password-file .bp", 3),
    ] {
      let outcome = try world.keyhaul(line)
      #expect(outcome.status == status, "\(line): \(outcome)")
      let said = flat(outcome.errors + outcome.output)
      #expect(said.contains(fact), "\(line): \(said)")
      #expect(!said.contains("is whole") && !said.contains("Nothing in b is damaged"), "\(line): \(said)")
    }
    #expect(try world.read("b/Manifest.db-wal") == Array("rows that nobody reads".utf8))
  }
}
