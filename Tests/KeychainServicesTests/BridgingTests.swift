import Basics
import Foundation
import KeychainServices
import Testing

@Suite("Conversion of Foundation values in keychain queries and results", .onAPhone)
struct BridgingTests {
  private func add(_ attributes: [String: Any]) -> OSStatus {
    let item: [String: Any] = [kSecClass as String: kSecClassGenericPassword]
    return SecItemAdd(item.merging(attributes) { $1 } as CFDictionary, nil)
  }

  private func attributes() throws -> [String: Any] {
    let query: [CFString: Any] = [kSecClass: kSecClassGenericPassword, kSecReturnAttributes: true]
    var result: CFTypeRef?
    try #require(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
    return try #require(result as? [String: Any])
  }

  @Test("Strings, data, numbers, booleans, and dates keep their values when they are stored and returned")
  func kinds() throws {
    let status = add([
      kSecAttrAccount as String: "Ännä 🔑", kSecAttrGeneric as String: Data([0, 1, 255]),
      kSecAttrCreator as String: 7, kSecAttrType as String: UInt8(9), kSecAttrIsInvisible as String: true,
      kSecAttrIsNegative as String: kCFBooleanFalse!, kSecAttrComment as String: "text" as NSString,
      kSecAttrLabel as String: NSMutableString(string: "label"),
      kSecAttrDescription as String: NSData(data: Data("described".utf8)),
    ])
    #expect(status == errSecSuccess)
    let attributes = try attributes()
    #expect(attributes[kSecAttrAccount as String] as? String == "Ännä 🔑")
    #expect(attributes[kSecAttrGeneric as String] as? Data == Data([0, 1, 255]))
    #expect(attributes[kSecAttrCreator as String] as? Int == 7)
    #expect(attributes[kSecAttrType as String] as? NSNumber == 9)
    #expect(attributes[kSecAttrIsInvisible as String] as? Bool == true)
    #expect(attributes[kSecAttrIsNegative as String] as? Int == 0)
    #expect(attributes[kSecAttrComment as String] as? String == "text")
    #expect(attributes[kSecAttrLabel as String] as? String == "label")
    #expect(attributes[kSecAttrDescription as String] as? Data == Data("described".utf8))
    // The test clock's time, which advances only during waits.
    let now = Date(timeIntervalSinceReferenceDate: 785_412_345.25)
    #expect(attributes[kSecAttrCreationDate as String] as? Date == now)
    #expect(attributes[kSecAttrSynchronizable as String] as? Int == 0)
    #expect(attributes[kSecAttrAccessible as String] as? String == kSecAttrAccessibleWhenUnlocked as String)
  }

  @Test(
    "The return keys determine the type of a search's result, and the match limit determines whether it is an array")
  func shapes() throws {
    for name in ["a", "b"] {
      #expect(add([kSecAttrAccount as String: name, kSecValueData as String: Data(name.utf8)]) == errSecSuccess)
    }
    func find(_ returnKeys: [CFString], all: Bool) throws -> AnyObject? {
      var query: [CFString: Any] = [kSecClass: kSecClassGenericPassword]
      for key in returnKeys { query[key] = kCFBooleanTrue }
      if all { query[kSecMatchLimit] = kSecMatchLimitAll } else { query[kSecAttrAccount] = "a" }
      var result: AnyObject?
      try #require(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
      return result
    }
    #expect(try find([], all: false) == nil)
    #expect(try find([kSecReturnData], all: false) as? Data == Data("a".utf8))
    #expect(try Set(#require(find([kSecReturnData], all: true) as? [Data])) == [Data("a".utf8), Data("b".utf8)])

    let item = try #require(find([kSecReturnAttributes, kSecReturnData], all: false) as? [String: AnyObject])
    #expect(item[kSecValueData as String] as? Data == Data("a".utf8))
    let items = try #require(find([kSecReturnAttributes], all: true) as? [[String: Any]])
    #expect(Set(items.compactMap { $0[kSecAttrAccount as String] as? String }) == ["a", "b"])
    #expect(items.allSatisfy { $0[kSecValueData as String] == nil })

    let reference = try #require(find([kSecReturnPersistentRef], all: false) as? Data)
    // The class in four bytes, and a UUID.
    #expect(reference.count == 20)
    #expect(try #require(find([kSecReturnPersistentRef], all: true) as? [Data]).contains(reference))
    let dictionary = try #require(find([kSecReturnPersistentRef, kSecReturnData], all: false) as? NSDictionary)
    #expect(dictionary[kSecValuePersistentRef] as? Data == reference)
  }

  @Test("A failed search leaves the result unchanged, and the result pointer may be nil")
  func resultPointer() {
    let query: [CFString: Any] = [kSecClass: kSecClassGenericPassword, kSecReturnData: true]
    var result: CFTypeRef? = NSString(string: "before")
    #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecItemNotFound)
    #expect(result as? String == "before")
    #expect(add([:]) == errSecSuccess)
    #expect(SecItemCopyMatching(query as CFDictionary, nil) == errSecSuccess)
  }

  private final class UnsupportedType {}

  @Test("A query with an unsupported key or value is errSecParam (-50)")
  func unsupported() {
    #expect(add([kSecAttrAccount as String: UnsupportedType()]) == errSecParam)
    #expect(add([kSecAttrAccount as String: (1, 2)]) == errSecParam)
    #expect(add([kSecAttrAccount as String: NSNull()]) == errSecParam)
    #expect(add([kSecAttrAccount as String: ["an", "array"]]) == errSecParam)
    #expect(add(["no such key": "x"]) == errSecParam)
    let withNumberAsKey: NSDictionary = [kSecClass: kSecClassGenericPassword, 1: "x"]
    #expect(SecItemAdd(withNumberAsKey, nil) == errSecParam)
    #expect(SecItemAdd(NSDictionary(), nil) == errSecParam)
    #expect(add([:]) == errSecSuccess)
  }

  @Test("A query with more than eight levels of nesting is errSecParam")
  func depth() {
    func nested(_ depth: Int) -> Any { depth == 0 ? "x" : [nested(depth - 1)] as NSArray }
    // Keys that begin with f_ are ignored.
    #expect(add(["f_nested": nested(8), kSecAttrAccount as String: "8"]) == errSecSuccess)
    #expect(add(["f_nested": nested(9), kSecAttrAccount as String: "9"]) == errSecParam)
  }

  @Test("Core Foundation type identifiers distinguish the types of objects")
  func typeIDs() {
    let objects: [(CFTypeRef, CFTypeID)] = [
      ("x" as NSString, CFStringGetTypeID()), (NSData(), CFDataGetTypeID()),
      (NSNumber(value: 1), CFNumberGetTypeID()), (kCFBooleanTrue, CFBooleanGetTypeID()),
      (NSDate(), CFDateGetTypeID()), (NSArray(), CFArrayGetTypeID()), (NSDictionary(), CFDictionaryGetTypeID()),
    ]
    for (object, type) in objects { #expect(CFGetTypeID(object) == type) }
    #expect(Set(objects.map(\.1)).count == objects.count)
  }
}
