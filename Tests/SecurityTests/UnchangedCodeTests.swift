import Basics
import Foundation
import LocalAuthentication
import Security
import Testing

// Code of apps and packages for iOS, unchanged, including its imports, conditions, casts, and tables of errors.

#if canImport(Security) && canImport(LocalAuthentication)
  /// A token store, as in many apps.
  private final class TokenStore {
    enum StoreError: Error, Equatable {
      case status(OSStatus)
      case unexpectedData
    }

    private let service: String
    private var query: [AnyHashable: Any] {
      [kSecClass: kSecClassGenericPassword, kSecAttrService: service]
    }

    init(service: String) { self.service = service }

    func save(_ token: String, for account: String) throws {
      var attributes = query
      attributes[kSecAttrAccount] = account
      attributes[kSecValueData] = Data(token.utf8)
      attributes[kSecAttrAccessible] = kSecAttrAccessibleAfterFirstUnlock
      let status = SecItemAdd(attributes as CFDictionary, nil)
      guard status == errSecDuplicateItem else {
        guard status == errSecSuccess else { throw StoreError.status(status) }
        return
      }
      attributes[kSecValueData] = nil
      attributes[kSecAttrAccessible] = nil
      let changes: [String: Any] = [
        kSecValueData as String: Data(token.utf8), kSecUseDataProtectionKeychain as String: true,
      ]
      let update = SecItemUpdate(attributes as CFDictionary, changes as CFDictionary)
      guard update == noErr else { throw StoreError.status(update) }
    }

    func token(for account: String) throws -> String? {
      var search = query
      search[kSecAttrAccount] = account
      search[kSecReturnData] = kCFBooleanTrue
      search[kSecMatchLimit] = kSecMatchLimitOne
      var item: CFTypeRef?
      switch SecItemCopyMatching(search as CFDictionary, &item) {
      case errSecSuccess:
        guard let data = item as? Data else { throw StoreError.unexpectedData }
        return String(decoding: data, as: UTF8.self)
      case errSecItemNotFound: return nil
      case let status: throw StoreError.status(status)
      }
    }
  }
#endif

@Suite("Unchanged iOS code", NewPhoneTrait())
struct UnchangedCodeTests {
  @Test("A token can be saved, replaced, and found")
  func tokens() throws {
    let store = TokenStore(service: "org.example.tokens")
    #expect(try store.token(for: "anna") == nil)
    try store.save("one", for: "anna")
    try store.save("two", for: "anna")
    #expect(try store.token(for: "anna") == "two")
  }

  @Test("In a dictionary, an attribute's constant and its text are the same key")
  func keys() throws {
    #expect(AnyHashable(kSecAttrAccount) == AnyHashable("acct"))
    #expect(AnyHashable("acct").hashValue == AnyHashable(kSecAttrAccount).hashValue)
    let attributes: [AnyHashable: Any] = [kSecAttrAccount: "anna"]
    #expect(attributes["acct"] as? String == "anna")
    let textKeys: [AnyHashable: Any] = ["svce": "mail"]
    #expect(textKeys[kSecAttrService] as? String == "mail")
  }

  @Test("Contexts can be members of sets, and evaluate access controls")
  func contexts() async throws {
    let (context, otherContext) = (LAContext(), LAContext())
    #expect(Set([context, otherContext, context]).count == 2 && context == context && context != otherContext)
    var problem: NSError?
    #expect(context.canEvaluatePolicy(.deviceOwnerAuthentication, error: &problem), "\(String(describing: problem))")
    let control = try #require(
      SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly, .userPresence, nil))
    // No user responds, so the evaluation must fail with `notInteractive`.
    let isAllowedOrFailsOtherwise = await withCheckedContinuation { continuation in
      context.evaluateAccessControl(control, operation: .useItem, localizedReason: "to sign in") { done, error in
        continuation.resume(returning: done || (error as? LAError)?.code != .notInteractive)
      }
    }
    #expect(!isAllowedOrFailsOtherwise)
    let unconstrained = try #require(SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenUnlocked, [], nil))
    let isAllowed = await withCheckedContinuation { continuation in
      context.evaluateAccessControl(unconstrained, operation: .useItem, localizedReason: "to sign in") { done, _ in
        continuation.resume(returning: done)
      }
    }
    #expect(isAllowed)
  }

  @Test("SecRandomCopyBytes fills memory with random bytes and refuses a negative count")
  func random() {
    var bytes = [UInt8](repeating: 0, count: 64)
    #expect(SecRandomCopyBytes(kSecRandomDefault, bytes.count, &bytes) == errSecSuccess)
    let previousBytes = bytes
    #expect(Set(previousBytes).count > 8)
    #expect(SecRandomCopyBytes(kSecRandomDefault, 32, &bytes) == errSecSuccess)
    #expect(bytes[32...] == previousBytes[32...] && bytes[..<32] != previousBytes[..<32])
    #expect(SecRandomCopyBytes(nil, -1, &bytes) == errSecParam && SecRandomCopyBytes(nil, 0, &bytes) == errSecSuccess)
  }

  @Test("CFData wraps bytes with and without a copy")
  func data() throws {
    var bytes: [UInt8] = [1, 2, 3]
    try bytes.withUnsafeMutableBufferPointer { buffer in
      let base = try #require(buffer.baseAddress)
      let shared = try #require(CFDataCreateWithBytesNoCopy(kCFAllocatorDefault, base, 3, kCFAllocatorNull))
      let copied = try #require(CFDataCreate(nil, base, 3))
      base[0] = 9
      #expect(CFDataGetBytePtr(shared)[0] == 9 && CFDataGetBytePtr(copied)[0] == 1)
      #expect(CFDataGetLength(shared) == 3)
      #expect(CFDataCreate(nil, base, -1) == nil && CFDataCreateWithBytesNoCopy(nil, nil, 1, nil) == nil)
    }
    let owned = UnsafeMutablePointer<UInt8>.allocate(capacity: 16)
    owned.initialize(repeating: 7, count: 16)
    #expect(try #require(CFDataCreateWithBytesNoCopy(nil, owned, 16, nil)) as Data == Data(repeating: 7, count: 16))
  }

  @Test("Core Foundation functions count the elements of collections and return the user info of an error")
  func collections() {
    #expect(CFArrayGetCount(["a", "b"] as CFArray) == 2 && CFSetGetCount(Set(["a"]) as CFSet) == 1)
    #expect(CFDictionaryGetCount([kSecClass: kSecClassKey] as CFDictionary) == 1)
    let error = NSError(domain: NSOSStatusErrorDomain, code: -25300, userInfo: [NSLocalizedDescriptionKey: "none"])
    let userInfo = CFErrorCopyUserInfo(error) as? [String: Any]
    #expect(userInfo?[NSLocalizedDescriptionKey] as? String == "none")
  }

  @Test("A bundle key and a four-character code have Apple's values")
  func constants() {
    #expect(kCFBundleIdentifierKey as String == "CFBundleIdentifier")
    let code: FourCharCode = 0x6765_6E70
    #expect(withUnsafeBytes(of: code.bigEndian, Array.init) == Array("genp".utf8))
  }
}
