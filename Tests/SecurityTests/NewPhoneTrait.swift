import KeychainServices
import Testing

/// Gives each test a new phone, because some tests change the client of the process.
struct NewPhoneTrait: SuiteTrait, TestTrait, TestScoping {
  var isRecursive: Bool { true }

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    guard testCase != nil else { return try await function() }
    let client = try KeychainClient.onNewDevice(passcode: "0000")
    try await DefaultKeychain.using(client) { try await function() }
  }
}
