import Basics
import Foundation
import KeychainServices
import Testing
import VirtualDevice

@Suite("Access controls and the person at the device", .onAPhone)
struct AccessControlTests {
  let phone: KeychainClient

  init() throws { phone = try DefaultKeychain.client() }

  private let item: [CFString: Any] = [kSecClass: kSecClassGenericPassword, kSecAttrService: "wallet"]

  private func control(
    _ flags: SecAccessControlCreateFlags, _ accessible: CFString = kSecAttrAccessibleWhenUnlocked
  ) throws -> SecAccessControl {
    try #require(SecAccessControlCreateWithFlags(kCFAllocatorDefault, accessible, flags, nil))
  }

  private func add(_ flags: SecAccessControlCreateFlags, _ more: [CFString: Any] = [:]) throws -> OSStatus {
    let values: [CFString: Any] = [
      kSecAttrAccessControl: try control(flags), kSecValueData: Data("seed".utf8),
    ]
    return SecItemAdd(item.merging(values) { $1 }.merging(more) { $1 } as CFDictionary, nil)
  }

  private func read(_ more: [CFString: Any] = [:]) -> (status: OSStatus, data: Data?) {
    var result: CFTypeRef?
    let query = item.merging([kSecReturnData: true]) { $1 }.merging(more) { $1 }
    let status = SecItemCopyMatching(query as CFDictionary, &result)
    return (status, result as? Data)
  }

  // MARK: Making one

  @Test(
    "flags that contradict each other are -50",
    arguments: [
      ([.or, .and, .biometryAny, .devicePasscode], false), ([.biometryAny, .biometryCurrentSet, .or], false),
      ([.userPresence, .biometryAny], false), ([.userPresence, .devicePasscode], false), ([], true),
      ([.userPresence], true), ([.userPresence, .applicationPassword], true), ([.biometryAny], true),
      ([.biometryCurrentSet, .or, .devicePasscode], true), ([.biometryAny, .and, .devicePasscode], true),
      ([.privateKeyUsage, .userPresence], true), ([.touchIDAny], true), ([.watch, .or, .biometryAny], true),
    ] as [(SecAccessControlCreateFlags, Bool)])
  func flags(flags: SecAccessControlCreateFlags, isMade: Bool) throws {
    var error: Unmanaged<CFError>?
    let made = SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenUnlocked, flags, &error)
    #expect((made != nil) == isMade)
    let failure = error?.takeRetainedValue()
    #expect(failure?.code == (isMade ? nil : -50))
    if isMade { #expect(try CFGetTypeID(#require(made)) == SecAccessControlGetTypeID()) }
  }

  @Test("the protection is one of the accessible values")
  func protection() throws {
    var error: Unmanaged<CFError>?
    #expect(SecAccessControlCreateWithFlags(nil, "zz" as NSString, [], &error) == nil)
    #expect(error?.takeRetainedValue().code == -50)
    #expect(SecAccessControlCreateWithFlags(nil, NSNumber(value: 1), [], nil) == nil)
  }

  // MARK: Reading through one

  @Test(
    "what the person does decides what the read ends with",
    arguments: [
      (.allow, 0), (.deny, -25293), (.cancel, -128), (.unavailable, -25308),
    ] as [(AuthenticationOutcome, OSStatus)])
  func answers(outcome: AuthenticationOutcome, status: OSStatus) throws {
    #expect(try add([.userPresence]) == errSecSuccess)
    phone.authenticationOutcome = outcome
    let result = read()
    #expect(result.status == status)
    #expect(result.data == (status == 0 ? Data("seed".utf8) : nil))
  }

  @Test("with the dialog forbidden the read is -25308, with such items skipped it finds nothing, and nobody is asked")
  func interaction() throws {
    phone.authenticationOutcome = .allow
    #expect(try add([.biometryAny]) == errSecSuccess)
    #expect(read([kSecUseAuthenticationUI: kSecUseAuthenticationUIFail]).status == errSecInteractionNotAllowed)
    #expect(read([kSecUseAuthenticationUI: kSecUseAuthenticationUISkip]).status == errSecItemNotFound)
    #expect(phone.device.person.requests.isEmpty)
    #expect(read([kSecUseAuthenticationUI: kSecUseAuthenticationUIAllow]).status == errSecSuccess)
    #expect(phone.device.person.requests.count == 1)
  }

  @Test("an access control beside a class of its own is -50, also one beside a synchronized item")
  func conflicts() throws {
    #expect(try add([.userPresence], [kSecAttrAccessible: kSecAttrAccessibleWhenUnlocked]) == errSecParam)
    #expect(try add([.userPresence], [kSecAttrSynchronizable: true]) == errSecParam)
  }

  @Test("the attributes of an item show its access control again, with nobody asked")
  func shown() throws {
    #expect(try add([.biometryAny, .or, .devicePasscode]) == errSecSuccess)
    var result: CFTypeRef?
    let query = item.merging([kSecReturnAttributes: true]) { $1 }
    #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
    let attributes = try #require(result as? [String: Any])
    let shown = try #require(attributes[kSecAttrAccessControl as String] as? SecAccessControl)
    #expect(try shown == control([.biometryAny, .or, .devicePasscode]))
  }
}

@Suite("LAContext, a dialog that answers as the device is told", .onAPhone)
struct LAContextTests {
  let phone: KeychainClient

  init() throws { phone = try DefaultKeychain.client() }

  private func code(_ body: () async throws -> Void) async -> LAError.Code? {
    do {
      try await body()
      return nil
    } catch {
      return (error as? LAError)?.code
    }
  }

  @Test(
    "the person's answer is the dialog's",
    arguments: [
      (.allow, nil), (.deny, .authenticationFailed), (.cancel, .userCancel), (.unavailable, .notInteractive),
    ] as [(AuthenticationOutcome, LAError.Code?)])
  func answers(outcome: AuthenticationOutcome, expected: LAError.Code?) async throws {
    phone.authenticationOutcome = outcome
    let context = LAContext()
    var error: NSError?
    #expect(context.canEvaluatePolicy(.deviceOwnerAuthentication, error: &error))
    let thrown = await code {
      try await context.evaluatePolicy(.deviceOwnerAuthenticationWithBiometrics, localizedReason: "Pay")
    }
    #expect(thrown == expected)
    let (success, failure) = await withCheckedContinuation { continuation in
      LAContext().evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "Pay") { success, error in
        continuation.resume(returning: (success, (error as? LAError)?.code))
      }
    }
    #expect(success == (expected == nil))
    #expect(failure == expected)
  }

  @Test("without a passcode nobody can be asked", .onAPhone(passcode: ""))
  func noPasscode() async throws {
    let context = LAContext()
    var error: NSError?
    #expect(!context.canEvaluatePolicy(.deviceOwnerAuthentication, error: &error))
    #expect(error?.domain == LAErrorDomain)
    #expect(error?.code == LAError.passcodeNotSet.rawValue)
  }

  @Test("who was asked once by a context is not asked again by the calls that it goes along with")
  func reuse() async throws {
    try addGuarded()
    phone.authenticationOutcome = .allow
    let context = LAContext()
    try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "Pay")
    phone.authenticationOutcome = .deny
    #expect(read(context) == errSecSuccess)
    #expect(read(LAContext()) == errSecAuthFailed)
    context.invalidate()
    #expect(read(context) == errSecInteractionNotAllowed)
    #expect(
      await code { try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "") }
        == .invalidContext)
  }

  @Test("a context that forbids the dialog ends it before it begins, and its reason is what the person reads")
  func interaction() async throws {
    try addGuarded()
    phone.authenticationOutcome = .allow
    let silent = LAContext()
    silent.interactionNotAllowed = true
    #expect(read(silent) == errSecInteractionNotAllowed)
    #expect(
      await code { try await silent.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "") }
        == .notInteractive)
    let talking = LAContext()
    talking.localizedReason = "Pay the baker"
    #expect(read(talking) == errSecSuccess)
    #expect(phone.device.person.requests.last?.prompt == "Pay the baker")
  }

  @Test("an application password opens its items, another one doesn't")
  func applicationPassword() throws {
    func context(_ password: String?) -> LAContext {
      let context = LAContext()
      context.setCredential(password.map { Data($0.utf8) }, type: .applicationPassword)
      #expect(context.isCredentialSet(.applicationPassword) == (password != nil))
      return context
    }
    phone.authenticationOutcome = .unavailable
    #expect(try addGuarded([.applicationPassword], context("right")) == errSecSuccess)
    #expect(read(context("right")) == errSecSuccess)
    #expect(read(context("wrong")) == errSecAuthFailed)
    #expect(read(context(nil)) != errSecSuccess)
  }

  @discardableResult
  private func addGuarded(
    _ flags: SecAccessControlCreateFlags = .userPresence, _ context: LAContext? = nil
  ) throws -> OSStatus {
    let control = try #require(
      SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenUnlocked, flags, nil))
    var item: [CFString: Any] = [
      kSecClass: kSecClassGenericPassword, kSecAttrAccessControl: control, kSecValueData: Data("seed".utf8),
    ]
    if let context { item[kSecUseAuthenticationContext] = context }
    return SecItemAdd(item as CFDictionary, nil)
  }

  private func read(_ context: LAContext) -> OSStatus {
    let query: [CFString: Any] = [
      kSecClass: kSecClassGenericPassword, kSecUseAuthenticationContext: context, kSecReturnData: true,
    ]
    var result: CFTypeRef?
    return SecItemCopyMatching(query as CFDictionary, &result)
  }
}
