import Basics
import Foundation
import KeychainServices
import Testing

@Suite("Foundation's values on their way in and out", .onAPhone)
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

  @Test("text, data, numbers, booleans and dates come back as what they were")
  func kinds() throws {
    let status = add([
      kSecAttrAccount as String: "Ännä 🔑", kSecAttrGeneric as String: Data([0, 1, 255]),
      kSecAttrCreator as String: 7, kSecAttrType as String: UInt8(9), kSecAttrIsInvisible as String: true,
      kSecAttrIsNegative as String: kCFBooleanFalse!, kSecAttrComment as String: "text" as NSString,
      kSecAttrLabel as String: NSMutableString(string: "label"),
      kSecAttrDescription as String: NSData(data: Data("described".utf8)),
    ])
    #expect(status == errSecSuccess)
    let found = try attributes()
    #expect(found[kSecAttrAccount as String] as? String == "Ännä 🔑")
    #expect(found[kSecAttrGeneric as String] as? Data == Data([0, 1, 255]))
    #expect(found[kSecAttrCreator as String] as? Int == 7)
    #expect(found[kSecAttrType as String] as? NSNumber == 9)
    #expect(found[kSecAttrIsInvisible as String] as? Bool == true)
    #expect(found[kSecAttrIsNegative as String] as? Int == 0)
    #expect(found[kSecAttrComment as String] as? String == "text")
    #expect(found[kSecAttrLabel as String] as? String == "label")
    #expect(found[kSecAttrDescription as String] as? Data == Data("described".utf8))
    let now = Date(timeIntervalSinceReferenceDate: 785_412_345.25)
    #expect(found[kSecAttrCreationDate as String] as? Date == now)
    #expect(found[kSecAttrSynchronizable as String] as? Int == 0)
    #expect(found[kSecAttrAccessible as String] as? String == kSecAttrAccessibleWhenUnlocked as String)
  }

  @Test("the shapes of a result: nothing, data, a dictionary, a reference, and arrays of them")
  func shapes() throws {
    for name in ["a", "b"] {
      #expect(add([kSecAttrAccount as String: name, kSecValueData as String: Data(name.utf8)]) == errSecSuccess)
    }
    func find(_ wanted: [CFString], all: Bool) throws -> AnyObject? {
      var query: [CFString: Any] = [kSecClass: kSecClassGenericPassword]
      for key in wanted { query[key] = kCFBooleanTrue }
      if all { query[kSecMatchLimit] = kSecMatchLimitAll } else { query[kSecAttrAccount] = "a" }
      var result: AnyObject?
      try #require(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
      return result
    }
    #expect(try find([], all: false) == nil)
    #expect(try find([kSecReturnData], all: false) as? Data == Data("a".utf8))
    #expect(try Set(#require(find([kSecReturnData], all: true) as? [Data])) == [Data("a".utf8), Data("b".utf8)])
    let one = try #require(find([kSecReturnAttributes, kSecReturnData], all: false) as? [String: AnyObject])
    #expect(one[kSecValueData as String] as? Data == Data("a".utf8))
    let several = try #require(find([kSecReturnAttributes], all: true) as? [[String: Any]])
    #expect(Set(several.compactMap { $0[kSecAttrAccount as String] as? String }) == ["a", "b"])
    #expect(several.allSatisfy { $0[kSecValueData as String] == nil })
    let reference = try #require(find([kSecReturnPersistentRef], all: false) as? Data)
    #expect(reference.count == 20)
    #expect(try #require(find([kSecReturnPersistentRef], all: true) as? [Data]).contains(reference))
    let dictionary = try #require(find([kSecReturnPersistentRef, kSecReturnData], all: false) as? NSDictionary)
    #expect(dictionary[kSecValuePersistentRef] as? Data == reference)
  }

  @Test("a failing call leaves the result alone, and no result pointer is needed")
  func resultPointer() {
    let query: [CFString: Any] = [kSecClass: kSecClassGenericPassword, kSecReturnData: true]
    var result: CFTypeRef? = NSString(string: "before")
    #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecItemNotFound)
    #expect(result as? String == "before")
    #expect(add([:]) == errSecSuccess)
    #expect(SecItemCopyMatching(query as CFDictionary, nil) == errSecSuccess)
  }

  private final class Stranger {}

  @Test("what is no value of a query, or no key, is -50 and stops nothing")
  func foreignNames() {
    #expect(add([kSecAttrAccount as String: Stranger()]) == errSecParam)
    #expect(add([kSecAttrAccount as String: (1, 2)]) == errSecParam)
    #expect(add([kSecAttrAccount as String: NSNull()]) == errSecParam)
    #expect(add([kSecAttrAccount as String: ["an", "array"]]) == errSecParam)
    #expect(add(["no such key": "x"]) == errSecParam)
    let numbered: NSDictionary = [kSecClass: kSecClassGenericPassword, 1: "x"]
    #expect(SecItemAdd(numbered, nil) == errSecParam)
    #expect(SecItemAdd(NSDictionary(), nil) == errSecParam)
    #expect(add([:]) == errSecSuccess)
  }

  @Test("values lie in each other at most eight deep")
  func depth() {
    func nested(_ depth: Int) -> Any { depth == 0 ? "x" : [nested(depth - 1)] as NSArray }
    // Keys that begin with f_ are ignored, whatever they hold.
    #expect(add(["f_nested": nested(8), kSecAttrAccount as String: "8"]) == errSecSuccess)
    #expect(add(["f_nested": nested(9), kSecAttrAccount as String: "9"]) == errSecParam)
  }

  @Test("kinds of objects are told apart by their type numbers")
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
