import Basics
import Foundation
import KeychainServices
import Testing
import VirtualDevice

@Suite("Access controls and the user's authentication", .onAPhone)
struct AccessControlTests {
  let phone: KeychainClient

  init() throws { phone = try DefaultKeychain.client() }

  private let item: [CFString: Any] = [kSecClass: kSecClassGenericPassword, kSecAttrService: "wallet"]

  private func control(
    _ flags: SecAccessControlCreateFlags, _ accessible: CFString = kSecAttrAccessibleWhenUnlocked
  ) throws -> SecAccessControl {
    try #require(SecAccessControlCreateWithFlags(kCFAllocatorDefault, accessible, flags, nil))
  }

  /// Adds the item with an access control and, if given, additional attributes.
  private func add(_ flags: SecAccessControlCreateFlags, _ attributes: [CFString: Any] = [:]) throws -> OSStatus {
    let values: [CFString: Any] = [
      kSecAttrAccessControl: try control(flags), kSecValueData: Data("seed".utf8),
    ]
    return SecItemAdd(item.merging(values) { $1 }.merging(attributes) { $1 } as CFDictionary, nil)
  }

  /// Reads the item's secret with, if given, additional options of the query.
  private func read(_ options: [CFString: Any] = [:]) -> (status: OSStatus, data: Data?) {
    var result: CFTypeRef?
    let query = item.merging([kSecReturnData: true]) { $1 }.merging(options) { $1 }
    let status = SecItemCopyMatching(query as CFDictionary, &result)
    return (status, result as? Data)
  }

  // MARK: Creation

  @Test(
    "An access control can be created only from flags that do not contradict each other, otherwise errSecParam (-50)",
    arguments: [
      ([.or, .and, .biometryAny, .devicePasscode], false), ([.biometryAny, .biometryCurrentSet, .or], false),
      ([.userPresence, .biometryAny], false), ([.userPresence, .devicePasscode], false), ([], true),
      ([.userPresence], true), ([.userPresence, .applicationPassword], true), ([.biometryAny], true),
      ([.biometryCurrentSet, .or, .devicePasscode], true), ([.biometryAny, .and, .devicePasscode], true),
      ([.privateKeyUsage, .userPresence], true), ([.touchIDAny], true), ([.watch, .or, .biometryAny], true),
    ] as [(SecAccessControlCreateFlags, Bool)])
  func flags(flags: SecAccessControlCreateFlags, isValid: Bool) throws {
    var error: Unmanaged<CFError>?
    let control = SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenUnlocked, flags, &error)
    #expect((control != nil) == isValid)
    let failure = error?.takeRetainedValue()
    #expect(failure?.code == (isValid ? nil : -50))
    if isValid { #expect(try CFGetTypeID(#require(control)) == SecAccessControlGetTypeID()) }
  }

  @Test("An access control requires one of the accessibility constants")
  func protection() throws {
    var error: Unmanaged<CFError>?
    #expect(SecAccessControlCreateWithFlags(nil, "zz" as NSString, [], &error) == nil)
    #expect(error?.takeRetainedValue().code == -50)
    #expect(SecAccessControlCreateWithFlags(nil, NSNumber(value: 1), [], nil) == nil)
  }

  // MARK: Reading guarded items

  @Test(
    "The user's answer to the prompt determines the status of the read",
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

  @Test(
    "Without a prompt, a read that forbids it fails with -25308, and a read that skips guarded items finds nothing")
  func interaction() throws {
    phone.authenticationOutcome = .allow
    #expect(try add([.biometryAny]) == errSecSuccess)
    #expect(read([kSecUseAuthenticationUI: kSecUseAuthenticationUIFail]).status == errSecInteractionNotAllowed)
    #expect(read([kSecUseAuthenticationUI: kSecUseAuthenticationUISkip]).status == errSecItemNotFound)
    #expect(phone.device.user.requests.isEmpty)
    #expect(read([kSecUseAuthenticationUI: kSecUseAuthenticationUIAllow]).status == errSecSuccess)
    #expect(phone.device.user.requests.count == 1)
  }

  @Test("An item with an access control cannot be synchronizable or have an accessibility attribute (errSecParam)")
  func conflicts() throws {
    #expect(try add([.userPresence], [kSecAttrAccessible: kSecAttrAccessibleWhenUnlocked]) == errSecParam)
    #expect(try add([.userPresence], [kSecAttrSynchronizable: true]) == errSecParam)
  }

  @Test("Returned attributes include the access control, without a prompt")
  func returnedAttributes() throws {
    #expect(try add([.biometryAny, .or, .devicePasscode]) == errSecSuccess)
    var result: CFTypeRef?
    let query = item.merging([kSecReturnAttributes: true]) { $1 }
    #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
    let attributes = try #require(result as? [String: Any])
    let returnedControl = try #require(attributes[kSecAttrAccessControl as String] as? SecAccessControl)
    #expect(try returnedControl == control([.biometryAny, .or, .devicePasscode]))
  }
}

@Suite("LAContext with a simulated user", .onAPhone)
struct LAContextTests {
  let phone: KeychainClient

  init() throws { phone = try DefaultKeychain.client() }

  /// Returns the code of the LAError that a closure throws, or `nil` if it throws none.
  private func code(_ body: () async throws -> Void) async -> LAError.Code? {
    do {
      try await body()
      return nil
    } catch {
      return (error as? LAError)?.code
    }
  }

  @Test(
    "LAContext reports the outcome that the test sets",
    arguments: [
      (.allow, nil), (.deny, .authenticationFailed), (.cancel, .userCancel), (.unavailable, .notInteractive),
    ] as [(AuthenticationOutcome, LAError.Code?)])
  func answers(outcome: AuthenticationOutcome, expected: LAError.Code?) async throws {
    phone.authenticationOutcome = outcome
    let context = LAContext()
    var error: NSError?
    #expect(context.canEvaluatePolicy(.deviceOwnerAuthentication, error: &error))
    let errorCode = await code {
      try await context.evaluatePolicy(.deviceOwnerAuthenticationWithBiometrics, localizedReason: "Pay")
    }
    #expect(errorCode == expected)
    let (success, failure) = await withCheckedContinuation { continuation in
      LAContext().evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "Pay") { success, error in
        continuation.resume(returning: (success, (error as? LAError)?.code))
      }
    }
    #expect(success == (expected == nil))
    #expect(failure == expected)
  }

  @Test("LAContext cannot evaluate the device owner policy without a passcode", .onAPhone(passcode: ""))
  func noPasscode() async throws {
    let context = LAContext()
    var error: NSError?
    #expect(!context.canEvaluatePolicy(.deviceOwnerAuthentication, error: &error))
    #expect(error?.domain == LAErrorDomain)
    #expect(error?.code == LAError.passcodeNotSet.rawValue)
  }

  @Test("Keychain calls reuse the successful authentication of their context until the context is invalidated")
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

  @Test("A context that forbids interaction fails without a prompt")
  func interaction() async throws {
    try addGuarded()
    phone.authenticationOutcome = .allow
    let silentContext = LAContext()
    silentContext.interactionNotAllowed = true
    #expect(read(silentContext) == errSecInteractionNotAllowed)
    #expect(
      await code { try await silentContext.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "") }
        == .notInteractive)
  }

  @Test("The reason of a context is the text of the prompt")
  func reason() throws {
    try addGuarded()
    phone.authenticationOutcome = .allow
    let context = LAContext()
    context.localizedReason = "Pay the baker"
    #expect(read(context) == errSecSuccess)
    #expect(phone.device.user.requests.last?.prompt == "Pay the baker")
  }

  @Test("An item with an application password is readable only with that password")
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
