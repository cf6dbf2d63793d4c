import Basics
import KeychainFormats
import Testing

@testable import Backups

@Suite("Comparisons with partial sources")
struct ComparisonScopeTests {
  private func item(_ label: String, date: Double, secret: String?) -> KeychainItem {
    var item = KeychainItem(
      kind: .genericPassword,
      attributes: [
        .account: .string("anna"), .service: .string("chat"), .label: .string(label), .protection: .string("ak"),
        .accessGroup: .string("a"), .modificationDate: .date(KeychainDate(secondsSinceReferenceDate: date)),
      ])
    item.secret = secret.map { SensitiveBytes(copying: Array($0.utf8)) }
    return item
  }

  /// Compares two keychains with one item each.
  ///
  /// - Parameter scope: The parts of an item that the second keychain can contain.
  private func difference(
    _ first: KeychainItem, _ second: KeychainItem, _ scope: KeychainEntry.Scope
  ) throws -> KeychainDifference {
    var secondEntry = KeychainEntry(index: 0, item: second)
    secondEntry.scope = scope
    return try KeychainDifference(from: [KeychainEntry(index: 0, item: first)], to: [secondEntry])
  }

  @Test("A secret that a source does not contain is counted, and is not a change")
  func secret() throws {
    let (withSecret, withoutSecret) = (item("l", date: 1, secret: "s"), item("l", date: 1, secret: nil))
    let excluded = try difference(withSecret, withoutSecret, .init(includesSecret: false))
    let included = try difference(withSecret, withoutSecret, .init())

    #expect(
      excluded.changed.isEmpty && excluded.sameCount == 1 && excluded.uncomparedSecretCount == 1 && !excluded.isComplete
    )
    #expect(included.changed.map(\.isSecretChanged) == [true] && included.uncomparedSecretCount == 0)
  }

  @Test("A date in whole seconds equals only dates within the same second")
  func dates() throws {
    let scope = KeychainEntry.Scope(hasWholeSeconds: true)
    func changes(_ date: Double, _ scope: KeychainEntry.Scope) throws -> [AttributeCode] {
      let (first, second) = (item("l", date: 1.75, secret: "s"), item("l", date: date, secret: "s"))
      return try difference(first, second, scope).changed.flatMap(\.attributes)
    }

    #expect(try changes(1, scope) == [])
    #expect(try changes(2.75, scope) == [.modificationDate])
    #expect(try changes(1, .init()) == [.modificationDate])
  }

  @Test("Attributes that a source cannot contain are not compared")
  func attributes() throws {
    let (old, new) = (item("old", date: 1, secret: "s"), item("new", date: 1, secret: "s"))

    #expect(try difference(old, new, .init(attributes: [.account, .service])).changed.isEmpty)
    #expect(try difference(old, new, .init(attributes: [.label])).changed.map(\.attributes) == [[.label]])
  }
}
