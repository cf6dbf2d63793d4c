import Basics
import KeychainFormats
import KeychainRules
import Testing

@Suite("Changes that change nothing")
struct ItemChangesTests {
  private let item = KeychainItem(
    kind: .genericPassword,
    attributes: [
      .account: .string("anna"), .label: .string("Chat"), .accessGroup: .string("g"),
      .protection: .string(ProtectionClass.whenUnlocked.rawValue),
      .modificationDate: .date(KeychainDate(secondsSinceReferenceDate: 700_000_000)),
    ],
    secrets: [.valueData: SensitiveBytes(copying: [1, 2, 3])])

  @Test("are those to what an item has already; its date alone would be another")
  func same() {
    #expect(ItemChanges().changeNothing(of: item))
    #expect(ItemChanges(attributes: [.label: .string("Chat")]).changeNothing(of: item))
    #expect(ItemChanges(attributes: [.comment: .null]).changeNothing(of: item))
    #expect(
      ItemChanges(attributes: [.label: .string("Chat")], secrets: [.valueData: SensitiveBytes(copying: [1, 2, 3])])
        .changeNothing(of: item))
  }

  @Test("are no others: another value, one more, one less, another secret, and one that the item has not")
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

  @Test("are none to an item that could not be changed so, and to one without a date")
  func impossible() {
    #expect(!ItemChanges(attributes: [.server: .string("x")]).changeNothing(of: item))
    #expect(!ItemChanges(attributes: [.protection: .null]).changeNothing(of: item))
    var undated = item
    undated[.modificationDate] = nil
    #expect(!ItemChanges().changeNothing(of: undated))
  }
}
