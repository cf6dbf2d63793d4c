import Basics
import KeychainFormats
import KeychainRules
import TestSupport
import Testing

@Suite("Incoming items of a restore")
struct IncomingItemTests {
  @Test("An item without an access group, with an unknown class or with an invalid value is rejected as undecodable")
  func invalid() {
    let item = KeychainItem.genericPassword()
    for invalidItem in [
      item.without(.accessGroup), item.without(.protection), item.with([.protection: .string("zz")]),
      item.with([.account: .boolean(true)]), item.with(["future": .real(0.5)]),
      item.with([.modificationDate: .string("yesterday")]),
      // With these values, a search does not find the item, and it is not a tombstone.
      item.with([.tombstone: .integer(2)]), item.with([.tombstone: .integer(-1)]),
      item.with([.tombstone: .boolean(true)]), item.with([.tombstone: .string("1")]),
    ] {
      let error = #expect(throws: KeychainRuleError.self) { try IncomingItem(invalidItem) }
      #expect(error?.code == .decode)
    }
  }

  @Test("An item with an infinite date is rejected before anything is stored")
  func infiniteDates() throws {
    for seconds in [Double.infinity, -.infinity, .nan] {
      for code in [AttributeCode.modificationDate, .creationDate] {
        let item = KeychainItem.genericPassword().with([code: .date(KeychainDate(secondsSinceReferenceDate: seconds))])
        let error = #expect(throws: KeychainRuleError.self) { try IncomingItem(item) }
        #expect(error?.code == .decode)
      }
    }
  }

  @Test("Safari's old passwords become synchronized, and other items do not")
  func inferredSync() throws {
    let safari = KeychainItem.internetPassword(group: "com.apple.cfnetwork")
    #expect(SyncInference.appliesTo(safari))
    #expect(try IncomingItem(safari).item.isSynchronizable)
    for otherItem in [
      KeychainItem.internetPassword(), safari.without(.protocolType), safari.with([.protocolType: .integer(1)]),
      safari.with([.server: .data([1])]), safari.without(.authenticationType),
      safari.with([.sharingGroup: .string("s")]),
      .genericPassword(group: "com.apple.cfnetwork").with([
        .server: .string("a"), .protocolType: .string("b"), .authenticationType: .string("c"),
      ]),
    ] {
      #expect(!SyncInference.appliesTo(otherItem))
      #expect(try !IncomingItem(otherItem).item.isSynchronizable)
    }
  }
}
