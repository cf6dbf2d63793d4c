import Basics
import KeychainFormats
import KeychainRules
import Keychains
import Testing

@Suite("Keychain dumps")
struct KeychainDumpTests {
  @Test("Items of a dump are numbered as in a backup, by kind and then in the dump's order")
  func numbering() {
    let kindsByEntry: [(entry: Int, kind: ItemKind)] = [
      (0, .key), (2, .genericPassword), (3, .key), (5, .genericPassword),
    ]
    let items = kindsByEntry.map { entry, kind in
      DumpedItem(entryPosition: entry, kind: kind, content: .attributesOnly(KeychainItem(kind: kind), nil))
    }
    let dump = KeychainDump(format: .items, items: items, skippedEntryCounts: [.identity: 1, .noTable: 1])

    #expect(dump.items.map(\.entryPosition) == [2, 5, 0, 3])
    #expect(dump.items.map(\.index) == [0, 1, 2, 3])
    #expect(dump.entryCount == 6)
  }

  @Test("An item that cannot be decrypted has a reason and its protection class")
  func undecryptable() {
    let fault = DumpFault(.tagMismatch, "the secret's tag does not match")
    let undecryptable = DumpedItem(
      entryPosition: 0, kind: .key, content: .undecryptable(fault, protection: .whenUnlocked))
    let attributesOnly = DumpedItem(
      entryPosition: 1, kind: .key,
      content: .attributesOnly(KeychainItem(kind: .key, attributes: [.protection: .string("ck")]), fault))

    #expect(undecryptable.item == nil)
    #expect(undecryptable.protection == .whenUnlocked)
    #expect(attributesOnly.item != nil && !attributesOnly.hasSecret)
    #expect(attributesOnly.protection == .afterFirstUnlock)
    #expect(attributesOnly.fault == fault)
  }
}
