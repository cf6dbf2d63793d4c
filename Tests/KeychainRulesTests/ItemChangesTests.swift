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
    #expect(ItemChanges().changeNothing(of: item))
    #expect(ItemChanges(attributes: [.label: .string("Chat")]).changeNothing(of: item))
    #expect(ItemChanges(attributes: [.comment: .null]).changeNothing(of: item))
    #expect(
      ItemChanges(attributes: [.label: .string("Chat")], secrets: [.valueData: SensitiveBytes(copying: [1, 2, 3])])
        .changeNothing(of: item))
  }

  @Test("Another value, an additional or missing attribute, and another secret have an effect")
  func different() {
    #expect(!ItemChanges(attributes: [.label: .string("chat")]).changeNothing(of: item))
    #expect(!ItemChanges(attributes: [.comment: .string("x")]).changeNothing(of: item))
    #expect(!ItemChanges(attributes: [.label: .null]).changeNothing(of: item))
    #expect(!ItemChanges(secrets: [.valueData: SensitiveBytes(copying: [1, 2, 4])]).changeNothing(of: item))
    #expect(!ItemChanges(secrets: [.valueData: SensitiveBytes(copying: [])]).changeNothing(of: item))
    var bare = item
    bare.secret = nil
    #expect(!ItemChanges(secrets: [.valueData: SensitiveBytes(copying: [1, 2, 3])]).changeNothing(of: bare))
    #expect(ItemChanges(secrets: [.valueData: SensitiveBytes(copying: [1, 2, 4])]).attributesChangeNothing(of: item))
  }

  @Test("Invalid changes, and changes to an item without a date, count as having an effect")
  func impossible() {
    #expect(!ItemChanges(attributes: [.server: .string("x")]).changeNothing(of: item))
    #expect(!ItemChanges(attributes: [.protection: .null]).changeNothing(of: item))
    var undated = item
    undated[.modificationDate] = nil
    #expect(!ItemChanges().changeNothing(of: undated))
  }
}
