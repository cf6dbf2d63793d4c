import Basics
import KeychainFormats
import KeychainRules
import Testing

@Suite("Changes without an effect")
struct ItemChangesTests {
  private let item = KeychainItem(
    kind: .genericPassword,
    attributes: [
      .account: .string("anna"), .label: .string("Chat"), .accessGroup: .string("g"),
      .protection: .string(ProtectionClass.whenUnlocked.rawValue),
      .modificationDate: .date(KeychainDate(secondsSinceReferenceDate: 700_000_000)),
    ],
    secrets: [.valueData: SensitiveBytes(copying: [1, 2, 3])])

  @Test("Setting attributes and secrets to their current values has no effect")
  func same() {
    #expect(ItemChanges().isNoOp(for: item))
    #expect(ItemChanges(attributes: [.label: .string("Chat")]).isNoOp(for: item))
    #expect(ItemChanges(attributes: [.comment: .null]).isNoOp(for: item))
    #expect(
      ItemChanges(attributes: [.label: .string("Chat")], secrets: [.valueData: SensitiveBytes(copying: [1, 2, 3])])
        .isNoOp(for: item))
  }

  @Test("A different value, an additional or removed attribute, and a different secret have an effect")
  func different() {
    #expect(!ItemChanges(attributes: [.label: .string("chat")]).isNoOp(for: item))
    #expect(!ItemChanges(attributes: [.comment: .string("x")]).isNoOp(for: item))
    #expect(!ItemChanges(attributes: [.label: .null]).isNoOp(for: item))
    #expect(!ItemChanges(secrets: [.valueData: SensitiveBytes(copying: [1, 2, 4])]).isNoOp(for: item))
    #expect(!ItemChanges(secrets: [.valueData: SensitiveBytes(copying: [])]).isNoOp(for: item))
    var withoutSecret = item
    withoutSecret.secret = nil
    #expect(!ItemChanges(secrets: [.valueData: SensitiveBytes(copying: [1, 2, 3])]).isNoOp(for: withoutSecret))
    #expect(ItemChanges(secrets: [.valueData: SensitiveBytes(copying: [1, 2, 4])]).attributesAreNoOp(for: item))
  }

  @Test("Invalid changes, and changes to an item without a date, count as having an effect")
  func invalid() {
    #expect(!ItemChanges(attributes: [.server: .string("x")]).isNoOp(for: item))
    #expect(!ItemChanges(attributes: [.protection: .null]).isNoOp(for: item))
    var undated = item
    undated[.modificationDate] = nil
    #expect(!ItemChanges().isNoOp(for: undated))
  }
}
