#if canImport(KeyhaulTesting)
  import Foundation
  import KeychainServices
  import KeyhaulTesting
  import VirtualDevice

  /// Creates a virtual phone for each row of the table, with the row's apps, state and authentication outcome.
  struct VirtualPhones: ComparedKeychain {
    let name = "Keyhaul's virtual phones"
    private static let groups: KeyValuePairs = [
      "mail": ["TEAM.mail", "TEAM.shared"], "shop": ["TEAM.shop", "TEAM.shared"], "all": ["TEAM.mail", "*"],
      "token-only": ["com.apple.token"], "apsd": ["com.apple.apsd"],
    ]
    private static let answers: [String: AuthenticationOutcome] = [
      "allow": .allow, "deny": .deny, "cancel": .cancel, "none": .unavailable,
    ]

    private var client: KeychainClient?

    /// An error for a call before `prepare(for:)`.
    struct NoPhone: Error {}

    private var phone: KeychainClient {
      get throws {
        guard let client else { throw NoPhone() }
        return client
      }
    }

    func missingRequirement(of row: CallRow) -> String? {
      if row.app == "clip" { return "an App Clip" }
      return row.queries.contains("ctx:deny") ? "a context whose user has refused before" : nil
    }

    mutating func prepare(for row: CallRow) throws {
      let passcode = row.conditions.contains("no-passcode") ? nil : Phone.standardPasscode
      client =
        if row.conditions.contains("syncing") {
          try KeychainClient.onNewDevice(
            app: "mail", accessGroups: ["TEAM.mail", "TEAM.shared"], passcode: passcode ?? "",
            options: DeviceOptions(isSyncing: true))
        } else {
          try Phone(passcode: passcode, apps: Self.groups).client(as: "mail")
        }
    }

    func enterConditions(of row: CallRow) throws {
      let phone = try phone
      phone.authenticationOutcome = row.conditions.compactMap { Self.answers[$0] }.first ?? .unavailable
      if row.conditions.contains("locked") { try phone.lock() }
      if row.conditions.contains("boot") { try phone.restart() }
    }

    func withGroups(_ text: String) -> String { text }

    func context(answered answer: String) throws -> LAContext {
      let phone = try phone
      let previousOutcome = phone.authenticationOutcome
      defer { phone.authenticationOutcome = previousOutcome }
      phone.authenticationOutcome = Self.answers[answer] ?? .unavailable
      let context = LAContext()
      let isDone = DispatchSemaphore(value: 0)
      context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "to compare keychain calls") { _, _ in
        isDone.signal()
      }
      isDone.wait()
      return context
    }

    func run<Result>(as app: String, _ body: () throws -> Result) throws -> Result {
      let phone = try phone
      // The table's app "none" is not installed, so its client has no access groups.
      return try DefaultKeychain.using(app == "mail" ? phone : KeychainClient(phone.device, as: app), body)
    }

    func clean() {}
  }
#endif
