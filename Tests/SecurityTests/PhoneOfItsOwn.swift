import KeychainServices
import Testing

/// Lets each test speak to a new phone: the one of the process is for all tests in it, and some of them choose another.
struct PhoneOfItsOwn: SuiteTrait, TestTrait, TestScoping {
  var isRecursive: Bool { true }

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    guard testCase != nil else { return try await function() }
    let client = try KeychainClient.onNewDevice(passcode: "0000")
    try await DefaultKeychain.using(client) { try await function() }
  }
}
